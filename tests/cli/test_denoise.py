"""`jumar denoise`: which files become which, one after the other, and what is refused."""

import json
import signal
import sys
import time
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from jumar.data.pixels.picture_files import write_picture
from jumar.data.pixels.video import VideoReader, VideoWriter
from jumar.data.pixels.whole_picture import WholePicture, decode_whole
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
        ("brightest", "brightest", []),
    ):
        here("train", recipe, *RECIPES, "--run-dir", name, *fields, cwd=folder)
    return folder


def frames(*levels: int, side: int = 12) -> dict[str, bytes]:
    """Flat images 1.png, 2.png, ... of these levels."""
    flat = [np.full((side, side, 3), level, np.uint8) for level in levels]
    return {f"{number}.png": png(pixels) for number, pixels in enumerate(flat, start=1)}


def pixels(path: Path) -> np.ndarray:
    with Image.open(path) as image:
        return np.asarray(image)


def written(folder: Path) -> list[str]:
    """All files below a folder, also hidden ones."""
    result = [path for path in folder.rglob("*") if path.is_file()]
    return sorted(str(path.relative_to(folder)) for path in result)


@pytest.mark.parametrize("zipped", [False, True])
def test_images_in_a_tree_keep_their_names_and_become_png(
    runs: Path, tmp_path: Path, zipped: bool
) -> None:
    files = {"a/2.png": png(scene()), "a/10.png": png(scene(seed=2)), "b.bmp.txt": b"-"}
    write = write_zip if zipped else write_files
    source = write(tmp_path / ("noisy.zip" if zipped else "noisy"), files)
    done = here("denoise", runs / "inverse", source, "--to", "clean", cwd=tmp_path)
    assert written(tmp_path / "clean") == ["a/10.png", "a/2.png"]
    assert np.array_equal(pixels(tmp_path / "clean/a/2.png"), 255 - scene())
    assert "skipped 1 non-image file" in done.out
    assert "2 frames with the weights of step 1" in done.out


def test_single_image_is_written_to_the_named_file_or_into_a_folder(
    runs: Path, tmp_path: Path
) -> None:
    write_files(tmp_path, {"noisy.png": png(scene())})
    for to, file in (("clean.bmp", "clean.bmp"), ("folder", "folder/noisy.png")):
        here("denoise", runs / "inverse", "noisy.png", "--to", to, cwd=tmp_path)
        assert np.array_equal(pixels(tmp_path / file), 255 - scene())


def test_grey_network_denoises_channels_separately_and_keeps_grey_images_grey(
    runs: Path, tmp_path: Path
) -> None:
    grey = np.ascontiguousarray(scene()[..., 0])
    source = write_files(tmp_path / "noisy", {"1.png": png(scene()), "2.png": png(grey)})
    here("denoise", runs / "grey", source, "--to", "clean", cwd=tmp_path)
    assert np.array_equal(pixels(tmp_path / "clean/1.png"), 255 - scene())
    assert np.array_equal(pixels(tmp_path / "clean/2.png"), 255 - grey)


def test_frames_are_ordered_by_number_and_clips_stay_separate(runs: Path, tmp_path: Path) -> None:
    one, other = frames(*range(10, 130, 10)), frames(7, 8)
    clips = {**{f"a/{k}": v for k, v in one.items()}, **{f"b/{k}": v for k, v in other.items()}}
    source = write_files(tmp_path / "noisy", clips)
    here("denoise", runs / "previous", source, "--to", "clean", cwd=tmp_path)
    result = [pixels(tmp_path / f"clean/a/{number}.png")[0, 0, 0] for number in range(1, 13)]
    assert result == [10, *range(10, 120, 10)]
    assert [pixels(tmp_path / f"clean/b/{n}.png")[0, 0, 0] for n in (1, 2)] == [7, 7]


def test_existing_output_is_not_overwritten_and_resume_completes_it(
    runs: Path, tmp_path: Path
) -> None:
    source = write_files(tmp_path / "noisy", frames(10, 20, 30))
    command = ("denoise", runs / "inverse", source, "--to", "clean")
    here(*command, cwd=tmp_path)
    refused = here(*command, cwd=tmp_path, code=2)
    assert "3 of 3 files exist" in refused.message
    (tmp_path / "clean/2.png").unlink()
    (tmp_path / "clean/1.png").write_bytes(b"mine")
    assert "1 frame with" in here(*command, "--resume", cwd=tmp_path).out
    assert (tmp_path / "clean/1.png").read_bytes() == b"mine"
    assert pixels(tmp_path / "clean/2.png")[0, 0, 0] == 235


def test_clip_with_dependent_frames_is_resumed_as_a_whole(runs: Path, tmp_path: Path) -> None:
    clips = {f"{clip}/{k}": v for clip in "ab" for k, v in frames(10, 20, 30).items()}
    source = write_files(tmp_path / "noisy", clips)
    command = ("denoise", runs / "previous", source, "--to", "clean")
    here(*command, cwd=tmp_path)
    (tmp_path / "clean/b/3.png").unlink()
    (tmp_path / "clean/b/1.png").write_bytes(b"mine")
    done = here(*command, "--resume", cwd=tmp_path).out
    assert "1 frame with" in done
    assert "5 kept" in done
    assert pixels(tmp_path / "clean/b/3.png")[0, 0, 0] == 20
    assert (tmp_path / "clean/b/1.png").read_bytes() == b"mine"


def test_nothing_to_denoise_is_an_error(runs: Path, tmp_path: Path) -> None:
    (tmp_path / "noisy.png").write_bytes(b"no image")
    command = ("denoise", runs / "inverse", "noisy.png", "--to", "clean.png")
    done = here(*command, "--skip-corrupt", "1", cwd=tmp_path, code=2)
    assert "no image could be denoised" in done.message
    assert not (tmp_path / "clean.png").exists()
    done = here(*command, "--skip-corrupt", "-1", cwd=tmp_path, code=2)
    assert "--skip-corrupt: it cannot be -1" in done.message


@pytest.mark.parametrize("recipe", ["inverse", "previous"])
def test_unreadable_frame_stops_the_run_or_is_skipped_if_allowed(
    runs: Path, tmp_path: Path, recipe: str
) -> None:
    files = {**frames(10, 20, 30), "2.png": b"no image"}
    source = write_files(tmp_path / "noisy", files)
    command = ("denoise", runs / recipe, source, "--to", "clean")
    refused = here(*command, cwd=tmp_path, code=2)
    assert "2.png" in refused.message
    assert "--skip-corrupt" in refused.message
    assert "2.png" not in written(tmp_path / "clean")
    done = here(*command, "--skip-corrupt", "1", "--resume", cwd=tmp_path)
    assert "skipped 1 unreadable sample" in done.out
    assert written(tmp_path / "clean") == ["1.png", "3.png"]


def test_sizes_may_differ_unless_frames_belong_together(runs: Path, tmp_path: Path) -> None:
    files = {**frames(10, 20), "3.png": png(scene())}
    source = write_files(tmp_path / "noisy", files)
    here("denoise", runs / "inverse", source, "--to", "clean", cwd=tmp_path)
    refused = here("denoise", runs / "previous", source, "--to", "clip", cwd=tmp_path, code=2)
    assert "noisy/3.png: is 56 x 40 pixels, the frames before it 12 x 12" in refused.message


@pytest.mark.parametrize(
    ("source", "to", "message"),
    [
        ("nowhere", "clean", "no such file or folder"),
        ("empty", "clean", "no images in it"),
        ("notes.txt", "clean", "not a folder, a zip or an image"),
        ("noisy", "noisy/clean", "would be written among the noisy ones"),
        ("noisy/1.png", "noisy/1.png", "would overwrite the noisy image"),
        ("noisy", "notes.txt", "a folder is needed"),
        ("noisy", "clean.png", "cannot be written to one file"),
        ("noisy", "clean.mp4", "cannot be written as a video"),
        ("noisy/1.png", "clean.tif", "cannot be written as '.tif'"),
    ],
)
def test_wrong_destination_is_refused_before_anything_is_written(
    runs: Path, tmp_path: Path, source: str, to: str, message: str
) -> None:
    write_files(tmp_path / "noisy", frames(10))
    write_files(tmp_path, {"notes.txt": b"-", "empty/notes.txt": b"-"})
    before = written(tmp_path)
    done = here("denoise", runs / "inverse", source, "--to", to, cwd=tmp_path, code=2)
    assert message in done.message
    assert written(tmp_path) == before


def test_run_of_another_kind_is_refused(tmp_path: Path) -> None:
    source = write_files(tmp_path / "noisy", frames(10))
    write_files(tmp_path / "alexnet", {"recipe.json": b'{"recipe": "alexnet", "settings": {}}'})
    done = here("denoise", "alexnet", source, "--to", "clean", cwd=tmp_path, code=2)
    assert "does not denoise" in done.message


def test_video_becomes_a_video_or_frames(runs: Path, tmp_path: Path) -> None:
    pytest.importorskip("av", reason="needs PyAV, the extra 'video'")
    with VideoWriter(tmp_path / "noisy.mkv", Fraction(30)) as video:
        for seed in range(4):
            video.write(scene(seed=seed))
    here("denoise", runs / "inverse", "noisy.mkv", "--to", "clean.mkv", cwd=tmp_path)
    reader = VideoReader(tmp_path / "clean.mkv")
    assert reader.rate == 30
    for seed, frame in enumerate(reader.frames()):
        assert np.array_equal(frame, 255 - scene(seed=seed))
    again = here(
        "denoise", runs / "inverse", "noisy.mkv", "--to", "clean.mkv", cwd=tmp_path, code=2
    )
    assert "clean.mkv: already exists" in again.message
    command = ("denoise", runs / "inverse", "noisy.mkv", "--to", "frames")
    here(*command, cwd=tmp_path)
    assert written(tmp_path / "frames") == [f"{number:06d}.png" for number in range(1, 5)]
    assert "already exists and is not empty" in here(*command, cwd=tmp_path, code=2).message
    for to, line in (("clean.mkv", "already complete: "), ("frames", "all 4 already exist: ")):
        done = here("denoise", runs / "inverse", "noisy.mkv", "--to", to, "--resume", cwd=tmp_path)
        assert f"{line}{to}" in done.out


def test_without_pyav_a_video_is_refused_with_a_remedy(
    runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "av", None)
    (tmp_path / "noisy.mp4").write_bytes(b"-")
    done = here("denoise", runs / "inverse", "noisy.mp4", "--to", "clean", cwd=tmp_path, code=2)
    assert "jumar[video]" in done.message


def test_ctrl_c_leaves_whole_images_and_says_how_to_resume(runs: Path, tmp_path: Path) -> None:
    count = 150
    source = write_files(
        tmp_path / "noisy", frames(*[number % 250 for number in range(count)], side=200)
    )
    command = ["denoise", runs / "inverse", source, "--to", tmp_path / "clean", *RECIPES]
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


def noisy_video(path: Path, count: int, bits: int = 8) -> list[np.ndarray]:
    """A video of different frames."""
    random = np.random.default_rng(3)
    kind = np.uint8 if bits == 8 else np.uint16
    frames = [random.integers(0, 2**bits, (32, 48, 3)).astype(kind) for _ in range(count)]
    with VideoWriter(path, Fraction(25), bits=bits) as video:
        for frame in frames:
            video.write(frame)
    return frames


def frames_of(path: Path) -> list[np.ndarray]:
    result = list(VideoReader(path).frames())
    assert all(isinstance(frame, np.ndarray) for frame in result)
    return result


@pytest.mark.parametrize(
    ("recipe", "name", "bits"),
    [
        ("inverse", "clean.mkv", 8),
        ("inverse", "clean.mp4", 10),
        ("previous", "clean.mkv", 10),
        ("brightest", "clean.mp4", 8),
    ],
)
def test_resumed_video_equals_an_uninterrupted_one(
    runs: Path, tmp_path: Path, recipe: str, name: str, bits: int
) -> None:
    """An unreadable frame ends it as a signal does, but always at the same frame."""
    pytest.importorskip("av", reason="needs PyAV, the extra 'video'")
    noisy_video(tmp_path / "noisy.mkv", 12, bits)
    whole = (tmp_path / "noisy.mkv").read_bytes()
    command = ("denoise", runs / recipe, "noisy.mkv", "--to")
    here(*command, f"whole-{name}", cwd=tmp_path)
    (tmp_path / "noisy.mkv").write_bytes(damaged(tmp_path / "noisy.mkv"))
    here(*command, name, cwd=tmp_path, code=2)
    assert not (tmp_path / name).exists()
    again = here(*command, name, cwd=tmp_path, code=2)
    assert "continue it with --resume" in again.message.lower()
    refused = here("denoise", runs / "grey", *command[2:], name, "--resume", cwd=tmp_path, code=2)
    assert "were made with other options or input: run is" in refused.message
    (tmp_path / "noisy.mkv").write_bytes(whole)
    (record,) = tmp_path.glob("*.unfinished.json")
    text = record.read_text()
    record.write_text(json.dumps({**json.loads(text), "frames": None}))
    damage = here(*command, name, "--resume", cwd=tmp_path, code=2)
    assert "the number of frames is None, not an integer" in damage.message
    assert f"remove '{record.name}' and '{record.stem}" in damage.message
    record.write_text(text)
    done = here(*command, name, "--resume", cwd=tmp_path)
    assert " kept" in done.out
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(
        [name, "noisy.mkv", f"whole-{name}"]
    )
    expected, result = (frames_of(tmp_path / file) for file in (f"whole-{name}", name))
    assert len(result) == 12
    if name.endswith(".mkv"):
        assert all(map(np.array_equal, result, expected))
    else:
        # x264 now and then encodes the same frames differently: 25 of 1000 times in one process,
        # even with one thread, never in another.
        peak = VideoReader(tmp_path / name).peak
        assert psnr(np.stack(result), np.stack(expected), peak=peak) > 35


def psnr(image: np.ndarray, other: np.ndarray, *, peak: int) -> float:
    squared_error = np.square(image.astype(float) - other).mean()
    return 20 * np.log10(peak) - 10 * np.log10(max(squared_error, 1e-9))


def damaged(video: Path) -> bytes:
    """The same length, unreadable from the seventh frame on."""
    import av

    with av.open(str(video)) as container:
        starts = [packet.pos for packet in container.demux() if packet.pos is not None]
    whole = video.read_bytes()
    return whole[: starts[6]].ljust(len(whole), b"\0")


def test_stopped_folder_of_frames_resumes(runs: Path, tmp_path: Path) -> None:
    pytest.importorskip("av", reason="needs PyAV, the extra 'video'")
    for recipe in ("inverse", "previous", "brightest"):
        noisy_video(tmp_path / "noisy.mkv", 6)
        command = ("denoise", runs / recipe, "noisy.mkv", "--to", recipe)
        here(*command, cwd=tmp_path)
        expected = {
            name: (tmp_path / recipe / name).read_bytes() for name in written(tmp_path / recipe)
        }
        for name in ("000003.png", "000005.png"):
            (tmp_path / recipe / name).unlink()
        done = here(*command, "--resume", cwd=tmp_path)
        assert "2 frames with" in done.out
        result = {
            name: (tmp_path / recipe / name).read_bytes() for name in written(tmp_path / recipe)
        }
        assert result == expected


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 128 + signal.SIGTERM)]
)
def test_signal_stops_a_video_after_a_frame_and_says_how_to_resume(
    runs: Path, tmp_path: Path, number: signal.Signals, code: int
) -> None:
    pytest.importorskip("av", reason="needs PyAV, the extra 'video'")
    with VideoWriter(tmp_path / "noisy.mkv", Fraction(25)) as video:
        for _ in range(400):
            video.write(scene())
    command = ["denoise", runs / "inverse", tmp_path / "noisy.mkv", "--to", tmp_path / "clean.mp4"]
    command += RECIPES
    process = start(command, cwd=Path.cwd())
    while process.poll() is None and not list(tmp_path.glob(".clean*.mkv")):
        time.sleep(0.01)
    process.send_signal(number)
    out, err = process.communicate(timeout=60)
    assert process.returncode == code, out + err
    assert "stopped after" in out
    assert "resume with the same command and --resume" in out
    assert not (tmp_path / "clean.mp4").exists()
    here(*command, "--resume", cwd=Path.cwd())
    assert len(frames_of(tmp_path / "clean.mp4")) == 400


def test_ten_bit_video_stays_ten_bit(runs: Path, tmp_path: Path) -> None:
    pytest.importorskip("av", reason="needs PyAV, the extra 'video'")
    frames = noisy_video(tmp_path / "noisy.mkv", 3, bits=10)
    for to in ("clean.mkv", "clean.mp4", "frames"):
        done = here("denoise", runs / "inverse", "noisy.mkv", "--to", to, cwd=tmp_path)
        assert "not kept" not in done.out
    assert all(map(np.array_equal, frames_of(tmp_path / "clean.mkv"), [1023 - f for f in frames]))
    assert VideoReader(tmp_path / "clean.mp4").bits == 10
    result = decode_whole((tmp_path / "frames/000001.png").read_bytes()).pixels
    assert np.array_equal(result, np.rint((1023 - frames[0].astype(float)) / 1023 * 65535))
    noisy_video(tmp_path / "deep.mkv", 3, bits=12)
    done = here("denoise", runs / "inverse", "deep.mkv", "--to", "deep.mp4", cwd=tmp_path)
    assert "not kept: 2 of 12 bits: deep.mkv" in done.out


def test_transparency_and_sixteen_bits_are_kept_and_losses_reported_once_per_kind(
    runs: Path, tmp_path: Path
) -> None:
    random = np.random.default_rng(5)
    deep = random.integers(0, 2**16, (40, 56, 3), dtype=np.uint16)
    alpha = random.integers(0, 2**8, (40, 56), dtype=np.uint8)
    write_picture(WholePicture(pixels=deep), tmp_path / "noisy/deep.png")
    write_picture(WholePicture(pixels=scene(), alpha=alpha), tmp_path / "noisy/cut-out.png")
    done = here("denoise", runs / "inverse", "noisy", "--to", "clean", cwd=tmp_path)
    assert "not kept" not in done.out
    result = decode_whole((tmp_path / "clean/deep.png").read_bytes())
    assert np.array_equal(result.pixels, 65535 - deep)
    result = decode_whole((tmp_path / "clean/cut-out.png").read_bytes())
    assert np.array_equal(result.pixels, 255 - scene())
    assert np.array_equal(result.alpha, alpha)
    for name, what in (("cut-out", "transparency"), ("deep", "8 of 16 bits")):
        to = f"{name}.jpg"
        done = here("denoise", runs / "inverse", f"noisy/{name}.png", "--to", to, cwd=tmp_path)
        assert f"not kept: {what} (JPEG has" in done.out
        assert f"noisy/{name}.png" in done.out
    grey = np.repeat(deep[..., :1], 3, axis=2)
    write_picture(WholePicture(pixels=grey), tmp_path / "grey.png")
    here("denoise", runs / "grey", "grey.png", "--to", "one.png", cwd=tmp_path)
    with Image.open(tmp_path / "one.png") as image:
        assert np.array_equal(np.asarray(image), 65535 - grey[..., 0])


def test_pages_and_frames_after_the_first_are_counted(runs: Path, tmp_path: Path) -> None:
    (tmp_path / "noisy").mkdir()
    pages = [Image.fromarray(scene(seed=seed)) for seed in range(3)]
    for name in ("a.tif", "b.tif", "c.tif", "d.tif"):
        pages[0].save(tmp_path / "noisy" / name, save_all=True, append_images=pages[1:])
    done = here("denoise", runs / "inverse", "noisy", "--to", "clean", cwd=tmp_path)
    assert "not kept: 2 of 3 pages: noisy/a.tif, noisy/b.tif, noisy/c.tif and 1 more" in done.out
    assert np.array_equal(pixels(tmp_path / "clean/a.png"), 255 - scene(seed=0))


def test_images_that_differ_only_in_their_suffix_keep_it(runs: Path, tmp_path: Path) -> None:
    names = ["1.bmp", "1.png", "1.png.png", "2.png", "a/1.png"]
    source = write_files(tmp_path / "noisy", {name: png(scene()) for name in names})
    done = here("denoise", runs / "inverse", source, "--to", "clean", cwd=tmp_path)
    assert written(tmp_path / "clean") == [
        "1.bmp.png",
        "1.png.png",
        "1.png.png.png",
        "2.png",
        "a/1.png",
    ]
    assert "keep it: 1.bmp.png, 1.png.png, 1.png.png.png" in done.out
