"""`jumar denoise`: which files become which, one after the other, and what is refused."""

import signal
import sys
import time
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from jumar.data.pixels.video import VideoReader, VideoWriter
from tests.cli.command_line import start
from tests.cli.in_process import here, settings
from tests.data.photographs import png, scene
from tests.data.pictures import write_files, write_zip

RECIPES = ("--import", "tests.cli.small_denoisers", "--device", "cpu")


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the runs `inverse`, `grey` and `previous`."""
    folder = tmp_path_factory.mktemp("runs")
    for name, recipe, fields in (
        ("inverse", "inverse", []),
        ("grey", "inverse", settings(data__channels="grey")),
        ("previous", "previous", []),
    ):
        here("train", recipe, *RECIPES, "--run-dir", name, *fields, cwd=folder)
    return folder


def frames(*levels: int, side: int = 12) -> dict[str, bytes]:
    """Flat pictures 1.png, 2.png, ... of these levels."""
    flat = [np.full((side, side, 3), level, np.uint8) for level in levels]
    return {f"{number}.png": png(pixels) for number, pixels in enumerate(flat, start=1)}


def pixels(path: Path) -> np.ndarray:
    with Image.open(path) as image:
        return np.asarray(image)


def written(folder: Path) -> list[str]:
    """All files below a folder, also hidden ones."""
    found = [path for path in folder.rglob("*") if path.is_file()]
    return sorted(str(path.relative_to(folder)) for path in found)


@pytest.mark.parametrize("zipped", [False, True])
def test_pictures_of_a_tree_keep_their_names_and_become_png(
    runs: Path, tmp_path: Path, zipped: bool
) -> None:
    files = {"a/2.png": png(scene()), "a/10.png": png(scene(seed=2)), "b.bmp.txt": b"-"}
    write = write_zip if zipped else write_files
    source = write(tmp_path / ("noisy.zip" if zipped else "noisy"), files)
    done = here("denoise", runs / "inverse", source, "--to", "clean", cwd=tmp_path)
    assert written(tmp_path / "clean") == ["a/10.png", "a/2.png"]
    assert np.array_equal(pixels(tmp_path / "clean/a/2.png"), 255 - scene())
    assert "1 files that are not pictures are left out" in done.out
    assert "2 frames by the weights of step 1" in done.out


def test_one_picture_becomes_the_file_that_is_named_or_one_in_a_folder(
    runs: Path, tmp_path: Path
) -> None:
    write_files(tmp_path, {"noisy.png": png(scene())})
    for to, file in (("clean.bmp", "clean.bmp"), ("folder", "folder/noisy.png")):
        here("denoise", runs / "inverse", "noisy.png", "--to", to, cwd=tmp_path)
        assert np.array_equal(pixels(tmp_path / file), 255 - scene())


def test_a_grey_network_cleans_the_colours_one_by_one_and_keeps_grey_pictures_grey(
    runs: Path, tmp_path: Path
) -> None:
    grey = np.ascontiguousarray(scene()[..., 0])
    source = write_files(tmp_path / "noisy", {"1.png": png(scene()), "2.png": png(grey)})
    here("denoise", runs / "grey", source, "--to", "clean", cwd=tmp_path)
    assert np.array_equal(pixels(tmp_path / "clean/1.png"), 255 - scene())
    assert np.array_equal(pixels(tmp_path / "clean/2.png"), 255 - grey)


def test_frames_of_a_clip_come_in_the_order_of_their_numbers_and_clips_are_apart(
    runs: Path, tmp_path: Path
) -> None:
    one, other = frames(*range(10, 130, 10)), frames(7, 8)
    clips = {**{f"a/{k}": v for k, v in one.items()}, **{f"b/{k}": v for k, v in other.items()}}
    source = write_files(tmp_path / "noisy", clips)
    here("denoise", runs / "previous", source, "--to", "clean", cwd=tmp_path)
    found = [pixels(tmp_path / f"clean/a/{number}.png")[0, 0, 0] for number in range(1, 13)]
    assert found == [10, *range(10, 120, 10)]
    assert [pixels(tmp_path / f"clean/b/{n}.png")[0, 0, 0] for n in (1, 2)] == [7, 7]


def test_what_is_there_is_not_overwritten_and_resume_does_the_rest(
    runs: Path, tmp_path: Path
) -> None:
    source = write_files(tmp_path / "noisy", frames(10, 20, 30))
    command = ("denoise", runs / "inverse", source, "--to", "clean")
    here(*command, cwd=tmp_path)
    refused = here(*command, cwd=tmp_path, code=2)
    assert "3 of 3 files are there" in refused.message
    (tmp_path / "clean/2.png").unlink()
    (tmp_path / "clean/1.png").write_bytes(b"mine")
    assert "1 frame by" in here(*command, "--resume", cwd=tmp_path).out
    assert (tmp_path / "clean/1.png").read_bytes() == b"mine"
    assert pixels(tmp_path / "clean/2.png")[0, 0, 0] == 235


def test_a_clip_whose_frames_need_each_other_is_resumed_as_a_whole(
    runs: Path, tmp_path: Path
) -> None:
    clips = {f"{clip}/{k}": v for clip in "ab" for k, v in frames(10, 20, 30).items()}
    source = write_files(tmp_path / "noisy", clips)
    command = ("denoise", runs / "previous", source, "--to", "clean")
    here(*command, cwd=tmp_path)
    (tmp_path / "clean/b/3.png").unlink()
    (tmp_path / "clean/b/1.png").write_bytes(b"mine")
    done = here(*command, "--resume", cwd=tmp_path).out
    assert "1 frame by" in done
    assert "5 kept" in done
    assert pixels(tmp_path / "clean/b/3.png")[0, 0, 0] == 20
    assert (tmp_path / "clean/b/1.png").read_bytes() == b"mine"


def test_where_nothing_can_be_cleaned_that_is_an_error(runs: Path, tmp_path: Path) -> None:
    (tmp_path / "noisy.png").write_bytes(b"no picture")
    command = ("denoise", runs / "inverse", "noisy.png", "--to", "clean.png")
    done = here(*command, "--skip-corrupt", "1", cwd=tmp_path, code=2)
    assert "not one picture of it could be cleaned" in done.message
    assert not (tmp_path / "clean.png").exists()
    done = here(*command, "--skip-corrupt", "-1", cwd=tmp_path, code=2)
    assert "--skip-corrupt: it cannot be -1" in done.message


@pytest.mark.parametrize("recipe", ["inverse", "previous"])
def test_an_unreadable_frame_stops_or_is_left_out_as_allowed(
    runs: Path, tmp_path: Path, recipe: str
) -> None:
    files = {**frames(10, 20, 30), "2.png": b"no picture"}
    source = write_files(tmp_path / "noisy", files)
    command = ("denoise", runs / recipe, source, "--to", "clean")
    refused = here(*command, cwd=tmp_path, code=2)
    assert "2.png" in refused.message
    assert "--skip-corrupt" in refused.message
    assert "2.png" not in written(tmp_path / "clean")
    done = here(*command, "--skip-corrupt", "1", "--resume", cwd=tmp_path)
    assert "1 sample could not be read" in done.out
    assert written(tmp_path / "clean") == ["1.png", "3.png"]


def test_sizes_may_differ_unless_frames_belong_together(runs: Path, tmp_path: Path) -> None:
    files = {**frames(10, 20), "3.png": png(scene())}
    source = write_files(tmp_path / "noisy", files)
    here("denoise", runs / "inverse", source, "--to", "clean", cwd=tmp_path)
    refused = here("denoise", runs / "previous", source, "--to", "clip", cwd=tmp_path, code=2)
    assert "noisy/3.png: is 56 x 40 pixels, the frames before 12 x 12" in refused.message


@pytest.mark.parametrize(
    ("source", "to", "message"),
    [
        ("nowhere", "clean", "no such file or folder"),
        ("empty", "clean", "no pictures in it"),
        ("notes.txt", "clean", "neither a folder, a zip nor a picture"),
        ("noisy", "noisy/clean", "would lie among the noisy ones"),
        ("noisy/1.png", "noisy/1.png", "would overwrite the noisy one"),
        ("noisy", "notes.txt", "a folder is needed"),
        ("noisy", "clean.png", "do not go into one file"),
        ("noisy", "clean.mp4", "not put together to a video"),
        ("twins", "clean", "would both become '1.png'"),
    ],
)
def test_a_wrong_place_is_told_before_anything_is_written(
    runs: Path, tmp_path: Path, source: str, to: str, message: str
) -> None:
    write_files(tmp_path / "noisy", frames(10))
    write_files(tmp_path / "twins", {"1.png": png(scene()), "1.bmp": png(scene())})
    write_files(tmp_path, {"notes.txt": b"-", "empty/notes.txt": b"-"})
    before = written(tmp_path)
    done = here("denoise", runs / "inverse", source, "--to", to, cwd=tmp_path, code=2)
    assert message in done.message
    assert written(tmp_path) == before


def test_a_run_of_another_kind_is_refused(tmp_path: Path) -> None:
    source = write_files(tmp_path / "noisy", frames(10))
    write_files(tmp_path / "alexnet", {"recipe.json": b'{"recipe": "alexnet", "settings": {}}'})
    done = here("denoise", "alexnet", source, "--to", "clean", cwd=tmp_path, code=2)
    assert "takes no noise away" in done.message


def test_a_video_becomes_a_video_or_frames(runs: Path, tmp_path: Path) -> None:
    pytest.importorskip("av", reason="needs PyAV, the extra 'video'")
    with VideoWriter(tmp_path / "noisy.mkv", Fraction(30)) as video:
        for seed in range(4):
            video.write(scene(seed=seed))
    here("denoise", runs / "inverse", "noisy.mkv", "--to", "clean.mkv", cwd=tmp_path)
    reader = VideoReader(tmp_path / "clean.mkv")
    assert reader.rate == 30
    for seed, frame in enumerate(reader.frames()):
        assert np.array_equal(frame, 255 - scene(seed=seed))
    command = ("denoise", runs / "inverse", "noisy.mkv", "--to", "frames")
    here(*command, cwd=tmp_path)
    assert written(tmp_path / "frames") == [f"{number:06d}.png" for number in range(1, 5)]
    assert "there is something already" in here(*command, cwd=tmp_path, code=2).message


def test_without_pyav_a_video_is_refused_with_the_way_out(
    runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "av", None)
    (tmp_path / "noisy.mp4").write_bytes(b"-")
    done = here("denoise", runs / "inverse", "noisy.mp4", "--to", "clean", cwd=tmp_path, code=2)
    assert "jumar[video]" in done.message


def test_ctrl_c_leaves_whole_pictures_and_says_how_to_go_on(runs: Path, tmp_path: Path) -> None:
    count = 150
    source = write_files(
        tmp_path / "noisy", frames(*[number % 250 for number in range(count)], side=200)
    )
    command = ["denoise", runs / "inverse", source, "--to", tmp_path / "clean"]
    process = start(command, cwd=Path.cwd())
    while process.poll() is None and not (tmp_path / "clean/3.png").exists():
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert "--resume" in out
    assert "Traceback" not in err
    done = written(tmp_path / "clean")
    assert 3 <= len(done) < count
    assert all(pixels(tmp_path / "clean" / name).shape == (200, 200, 3) for name in done)


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 128 + signal.SIGTERM)]
)
def test_a_stopped_video_is_not_there_and_the_way_out_is_said(
    runs: Path, tmp_path: Path, number: signal.Signals, code: int
) -> None:
    pytest.importorskip("av", reason="needs PyAV, the extra 'video'")
    with VideoWriter(tmp_path / "noisy.mkv", Fraction(25)) as video:
        for _ in range(400):
            video.write(scene())
    command = ["denoise", runs / "inverse", tmp_path / "noisy.mkv", "--to", tmp_path / "clean.mkv"]
    process = start(command, cwd=Path.cwd())
    while process.poll() is None and not list(tmp_path.glob(".clean*.mkv")):
        time.sleep(0.01)
    process.send_signal(number)
    out, err = process.communicate(timeout=60)
    assert process.returncode == code, out + err
    assert "a video is written whole or not at all" in out
    assert not list(tmp_path.glob("*clean*"))
