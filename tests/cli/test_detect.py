"""`jumar detect`: what is written for which images, and what is refused."""

import json
import shutil
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from safetensors.torch import load_file, save_file

from jumar.data.pixels.video import VideoReader, VideoWriter
from jumar.runs.detect import words_of
from jumar.runs.open_trained import TrainedRequest, open_trained
from tests.cli.command_line import on_two_ranks
from tests.cli.in_process import here, settings
from tests.data.pictures import picture, write_files, write_zip
from tests.recipes.small_data import write_signs

SMALL = settings(
    model__backbone="resnet18",
    model__width=4,
    data__image_size=32,
    data__eval_path="none",
    data__batch_size=2,
    data__workers=0,
    training__duration="1it",
    training__ema_decay=0,
)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a run whose network takes the whole image for a word."""
    folder = tmp_path_factory.mktemp("detectors")
    write_signs(folder / "signs")
    where = ("--device", "cpu", "--run-dir", "run", "--set", "data.path=signs")
    here("train", "psenet-small", *where, *SMALL, cwd=folder)
    everywhere(folder / "run")
    return folder


def everywhere(run: Path) -> None:
    """All maps are 1, as the bias of the last convolution has it; the checkpoint is read back."""
    (file,) = run.glob("checkpoints/*/model.safetensors")
    weights = load_file(file)
    weights["head.conv.weight"].zero_()
    weights["head.conv.bias"].fill_(20.0)
    imported = run.parent / "everywhere.safetensors"
    save_file(weights, imported)
    start = ("--set", f"transfer.start_from={imported}", "--set", "optimizer.learning_rate=0")
    where = ("--device", "cpu", "--run-dir", "all", "--set", "data.path=signs")
    here("train", "psenet-small", *where, *start, *SMALL, cwd=run.parent)


@pytest.mark.parametrize("zipped", [False, True])
def test_words_are_written_as_json_icdar_text_and_images(
    place: Path, tmp_path: Path, zipped: bool
) -> None:
    files = {"a/2.png": picture(kind="PNG", size=(50, 40)), "b.jpg": picture(size=(64, 32))}
    photos = tmp_path / ("photos.zip" if zipped else "photos")
    (write_zip if zipped else write_files)(photos, files)
    done = here("detect", place / "all", photos, "--to", "found", "--device", "cpu", cwd=tmp_path)
    assert "2 words in 2 images: found" in done.out
    listed = json.loads((tmp_path / "found" / "words.json").read_text())
    assert set(listed) == {"a/2.png", "b.jpg"}
    (word,) = listed["a/2.png"]
    assert word["score"] == pytest.approx(1.0)
    corners = np.array(word["points"])
    np.testing.assert_allclose(corners.min(axis=0), (0, 0), atol=1)
    np.testing.assert_allclose(corners.max(axis=0), (50, 40), atol=1.5)
    text = (tmp_path / "found" / "icdar" / "a" / "res_2.txt").read_text()
    assert [int(number) for number in text.strip().split(",")] == np.rint(corners).ravel().tolist()
    with Image.open(tmp_path / "found" / "drawn" / "a" / "2.png") as image:
        assert image.size == (50, 40)
        assert (np.asarray(image) == (0, 220, 0)).all(axis=2).any()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["found", photos.name]


def test_threshold_can_be_changed_and_images_left_undrawn(place: Path, tmp_path: Path) -> None:
    write_files(tmp_path / "photos", {"1.png": picture(kind="PNG", size=(50, 40))})
    options = ("--device", "cpu", "--set", "reading.threshold=1", "--no-pictures")
    here("detect", place / "all", "photos", "--to", "found", *options, cwd=tmp_path)
    assert json.loads((tmp_path / "found" / "words.json").read_text()) == {"1.png": []}
    assert not (tmp_path / "found" / "drawn").exists()
    assert (tmp_path / "found" / "icdar" / "res_1.txt").read_text() == ""


def test_unreadable_images_are_named_and_skipped_only_on_request(
    place: Path, tmp_path: Path
) -> None:
    write_files(
        tmp_path / "photos", {"1.png": picture(kind="PNG", size=(50, 40)), "2.png": b"none"}
    )
    command = ("detect", place / "all", "photos", "--to", "found", "--device", "cpu")
    assert "2.png" in here(*command, cwd=tmp_path, code=2).err
    assert not (tmp_path / "found").exists()
    assert "2.png" in here(*command, "--skip-corrupt", "1", cwd=tmp_path).out
    assert list(json.loads((tmp_path / "found" / "words.json").read_text())) == ["1.png"]


def test_existing_folder_and_runs_of_other_recipes_are_refused(place: Path, tmp_path: Path) -> None:
    (tmp_path / "found").mkdir()
    error = here("detect", place / "all", "x", "--to", "found", cwd=tmp_path, code=2).message
    assert "already exists" in error
    recipe = json.loads((place / "all" / "recipe.json").read_text())
    other = tmp_path / "other"
    other.mkdir()
    (other / "recipe.json").write_text(json.dumps({**recipe, "recipe": "vqvae", "settings": {}}))
    error = here("detect", "other", "x", "--to", "new", cwd=tmp_path, code=2).message
    assert "the recipe 'vqvae' does not detect text" in error


def write_halves(folder: Path) -> Path:
    """An image that two words fill: one detection around it is none of them, but has both."""
    folder.mkdir()
    Image.new("RGB", (64, 64)).save(folder / "img_1.png")
    (folder / "gt_img_1.txt").write_text("2,2,62,2,62,31,2,31,up\n2,33,62,33,62,62,2,62,down\n")
    return folder


def scores_in(printed: str) -> dict[str, str]:
    """The scores in percent, and the number of errors of each kind."""
    names = ("hmean", "precision", "recall", "missed", "false", "merged", "split")
    lines = [line.split() for line in printed.splitlines()]
    return {line[0]: line[1] for line in lines if line and line[0] in names}


def test_evaluation_uses_the_chosen_protocol_and_names_it(place: Path, tmp_path: Path) -> None:
    data = ("--device", "cpu", "--set", f"data.eval_path={write_halves(tmp_path / 'halves')}")
    usual = here("evaluate", place / "all", *data, cwd=tmp_path).out
    chosen = ("--set", "data.protocol=total-text")
    curved = here("evaluate", place / "all", *data, *chosen, cwd=tmp_path).out
    errors = {"missed": "0", "false": "0", "merged": "1", "split": "0"}
    assert scores_in(usual) == {"hmean": "0.00", "precision": "0.00", "recall": "0.00", **errors}
    assert scores_in(curved) == dict.fromkeys(("hmean", "precision", "recall"), "80.00") | errors
    assert "words found:" in usual
    assert "protocol" not in usual
    assert "evaluation: words are scored by Total-Text's protocol" in curved
    assert "words found (Total-Text's protocol):" in curved
    assert "errors (ICDAR 2015's protocol):" in curved


def test_run_that_names_no_protocol_is_scored_by_icdars(place: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    shutil.copytree(place / "all", run)
    stored = json.loads((run / "recipe.json").read_text())
    assert stored["settings"]["data"].pop("protocol") == "icdar2015"
    (run / "recipe.json").write_text(json.dumps(stored))
    data = ("--device", "cpu", "--set", f"data.eval_path={write_halves(tmp_path / 'halves')}")
    printed = here("evaluate", run, *data, cwd=tmp_path).out
    assert scores_in(printed)["hmean"] == "0.00"
    assert "words found:" in printed


@pytest.mark.slow
@pytest.mark.parametrize(("protocol", "recall"), [("icdar2015", "37.50"), ("total-text", "95.00")])
def test_two_ranks_score_like_one_even_with_uneven_shares(
    place: Path, tmp_path: Path, protocol: str, recall: str
) -> None:
    signs = tmp_path / "signs"
    write_signs(signs)
    extra = next(signs.rglob("*.png"), None) or next(signs.rglob("*.jpg"))
    words = "2,2,60,2,60,60,2,60,whole\n"
    for number in range(3):
        (signs / "eval").mkdir(exist_ok=True)
        shutil.copy(extra, signs / "eval" / f"more_{number}{extra.suffix}")
        (signs / "eval" / f"gt_more_{number}.txt").write_text(words * (number + 1))
    write_halves(signs / "eval" / "halves")
    data = ("--device", "cpu", *settings(data__eval_path=signs / "eval", data__protocol=protocol))
    alone = here("evaluate", place / "all", *data, cwd=tmp_path).out
    code, out, error = on_two_ranks("evaluate", place / "all", *data, cwd=tmp_path)
    assert code == 0, error
    assert scores_in(out) == scores_in(alone)
    assert scores_in(out)["recall"] == recall


def test_large_images_are_processed_in_full_resolution_tiles(place: Path, tmp_path: Path) -> None:
    """A network that detects words everywhere finds one around the whole image."""
    write_files(tmp_path / "photos", {"1.png": picture(kind="PNG", size=(300, 150))})
    command = ("detect", place / "all", "photos", "--device", "cpu", "--tile", "128")
    here(*command, "--to", "found", cwd=tmp_path)
    (word,) = json.loads((tmp_path / "found" / "words.json").read_text())["1.png"]
    corners = np.array(word["points"])
    np.testing.assert_allclose(corners.min(axis=0), (0, 0), atol=1)
    np.testing.assert_allclose(corners.max(axis=0), (300, 150), atol=4)
    error = here(*command[:-1], "8", "--to", "other", cwd=tmp_path, code=2).message
    assert "--tile" in error


def test_network_sees_tiles_unshrunk_and_whole_images_shrunk(place: Path) -> None:
    trained = open_trained(TrainedRequest(run_dir=place / "all", device="cpu"))
    seen: list[tuple[int, ...]] = []
    trained.model.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0].shape[2:]))
    pixels = np.zeros((700, 1300, 3), np.uint8)
    words_of(trained, pixels)
    assert seen == [(352, 640)]
    seen.clear()
    words_of(trained, pixels, tile=640)
    assert seen == [(640, 640)] * 6
    seen.clear()
    data = replace(trained.recipe.data, eval_scale=2.0)
    enlarged = replace(trained, recipe=replace(trained.recipe, data=data))
    words_of(enlarged, pixels[:320, :320], tile=640)
    assert seen == [(640, 640)]
    trained.policy.close()


def test_video_frames_are_read_and_drawn_into_a_video(place: Path, tmp_path: Path) -> None:
    pytest.importorskip("av")
    with VideoWriter(tmp_path / "clip.mkv", Fraction(10)) as video:
        for level in range(5):
            video.write(np.full((32, 64, 3), 40 * level, np.uint8))
    command = ("detect", place / "all", "clip.mkv", "--device", "cpu")
    done = here(*command, "--to", "found", "--every", "2", cwd=tmp_path)
    assert "3 words in 3 images: found" in done.out
    listed = json.loads((tmp_path / "found" / "words.json").read_text())
    assert list(listed) == [f"clip.mkv/{number:06d}" for number in (1, 3, 5)]
    assert (tmp_path / "found" / "icdar" / "clip" / "res_000003.txt").exists()
    reader = VideoReader(tmp_path / "found" / "drawn" / "clip.mp4")
    frames = list(reader.frames())
    levels = [float(np.median(frame)) for frame in frames]
    np.testing.assert_allclose(levels, [0, 80, 160], atol=8)
    assert reader.rate == 5
    reader.close()
    assert "--every" in here(*command, "--to", "x", "--every", "0", cwd=tmp_path, code=2).message


def test_nothing_readable_is_an_error_even_if_images_may_be_skipped(
    place: Path, tmp_path: Path
) -> None:
    write_files(tmp_path / "photos", {"1.png": b"none"})
    command = ("detect", place / "all", "photos", "--to", "found", "--skip-corrupt", "3")
    assert "no image could be read" in here(*command, cwd=tmp_path, code=2).message
    assert not (tmp_path / "found").exists()
