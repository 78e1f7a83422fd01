"""`jumar detect`: what is written for which pictures, and what is refused."""

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from safetensors.torch import load_file, save_file

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
    """A folder with a run whose network takes the whole picture for a word."""
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
def test_words_are_written_as_json_as_icdars_text_and_as_pictures(
    place: Path, tmp_path: Path, zipped: bool
) -> None:
    files = {"a/2.png": picture(kind="PNG", size=(50, 40)), "b.jpg": picture(size=(64, 32))}
    photos = tmp_path / ("photos.zip" if zipped else "photos")
    (write_zip if zipped else write_files)(photos, files)
    done = here("detect", place / "all", photos, "--to", "found", "--device", "cpu", cwd=tmp_path)
    assert "2 words in 2 pictures: found" in done.out
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


def test_a_threshold_can_be_changed_and_pictures_left_undrawn(place: Path, tmp_path: Path) -> None:
    write_files(tmp_path / "photos", {"1.png": picture(kind="PNG", size=(50, 40))})
    options = ("--device", "cpu", "--set", "reading.threshold=1", "--no-pictures")
    here("detect", place / "all", "photos", "--to", "found", *options, cwd=tmp_path)
    assert json.loads((tmp_path / "found" / "words.json").read_text()) == {"1.png": []}
    assert not (tmp_path / "found" / "drawn").exists()
    assert (tmp_path / "found" / "icdar" / "res_1.txt").read_text() == ""


def test_unreadable_pictures_are_named_and_skipped_only_on_request(
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


def test_an_existing_folder_and_runs_of_other_recipes_are_refused(
    place: Path, tmp_path: Path
) -> None:
    (tmp_path / "found").mkdir()
    error = here("detect", place / "all", "x", "--to", "found", cwd=tmp_path, code=2).message
    assert "already exists" in error
    recipe = json.loads((place / "all" / "recipe.json").read_text())
    other = tmp_path / "other"
    other.mkdir()
    (other / "recipe.json").write_text(json.dumps({**recipe, "recipe": "vqvae", "settings": {}}))
    error = here("detect", "other", "x", "--to", "new", cwd=tmp_path, code=2).message
    assert "the recipe 'vqvae' does not detect text" in error
