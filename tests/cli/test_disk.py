"""A disk that is too small, becomes full, or cannot be written."""

import json
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from tests.cli.filling_source import fill
from tests.cli.in_process import here, settings, train

Mounted = Callable[[str], Path]


@pytest.fixture
def mounted(tmp_path: Path) -> Iterator[Mounted]:
    """Makes a disk of its own in memory with these mount options."""
    places: list[Path] = []

    def mount(options: str) -> Path:
        place = tmp_path / f"disk{len(places)}"
        place.mkdir()
        command = ["mount", "-t", "tmpfs", "-o", options, "none", str(place)]
        try:
            done = subprocess.run(command, capture_output=True, text=True, check=False)
        except FileNotFoundError as error:
            pytest.skip(f"needs the right to mount a disk: {error}")
        if done.returncode:
            pytest.skip(f"needs the right to mount a disk: {done.stderr.strip()}")
        places.append(place)
        return place

    yield mount
    for place in places:
        # Lazily: a process that was just killed may hold on to it for a moment.
        subprocess.run(["umount", "--lazy", str(place)], check=True)


def test_disk_too_small_for_the_checkpoints_is_refused_before_the_first_step(
    mounted: Mounted, tmp_path: Path
) -> None:
    disk = mounted("size=3m")
    done = train("--run-dir", disk / "run", *settings(model__width=20000), cwd=tmp_path, code=2)
    assert ", but only 3 MiB is free" in done.err
    assert "step: " not in done.out
    assert list(disk.iterdir()) == []


def test_required_space_does_not_exceed_what_the_run_writes(
    mounted: Mounted, tmp_path: Path
) -> None:
    """checkpoints.keep=5 asks for no room where only one checkpoint is ever written."""
    disk = mounted("size=3m")
    train("--run-dir", disk / "run", *settings(model__width=3000), cwd=tmp_path)
    assert len(list((disk / "run" / "checkpoints").iterdir())) == 1


def test_full_disk_leaves_earlier_checkpoints_intact(
    mounted: Mounted, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = mounted("size=4m")
    monkeypatch.setenv("FILLED_FOLDER", str(disk))
    options = settings(
        data__path="filling",
        data__eval_path="digits",
        model__width=1000,
        training__duration="8it",
        training__log_every="100it",
        checkpoints__every="1it",
        checkpoints__keep=2,
        checkpoints__keep_best="false",
    )
    source = ("--import", "tests.cli.filling_source")
    run = disk / "run"
    monkeypatch.setenv("AWAITED_CHECKPOINTS", str(run / "checkpoints"))
    done = train("--run-dir", run, *source, *options, cwd=tmp_path, code=2)
    assert "the checkpoint of step 4 could not be written: " in done.message
    assert "earlier checkpoints are intact" in done.err
    assert sorted(path.name for path in (run / "checkpoints").iterdir()) == [
        "step-00000002",
        "step-00000003",
    ]
    kept = load_file(run / "checkpoints" / "step-00000003" / "model.safetensors")
    (disk / "filler").unlink()
    monkeypatch.setenv("FILLED_FOLDER", str(tmp_path))
    monkeypatch.setattr("tests.cli.filling_source.FILLS_AT", -1)
    again = here("train", "--resume", "--run-dir", run, "--device", "cpu", cwd=tmp_path)
    assert "resuming from step 3" in again.out
    assert json.loads((run / "results.json").read_text())["steps"] == 8
    assert all(torch.isfinite(value).all() for value in kept.values())


def test_disk_too_full_for_the_log_ends_the_run_with_a_message(
    mounted: Mounted, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = mounted("size=1m")
    monkeypatch.setenv("FILLED_FOLDER", str(disk))
    options = settings(data__path="filling", data__eval_path="digits", training__duration="200it")
    source = ("--import", "tests.cli.filling_source")
    done = train("--run-dir", disk / "run", *source, *options, cwd=tmp_path, code=2)
    assert "No space left on device" in done.err or "could not be written" in done.err
    records = (disk / "run" / "metrics.jsonl").read_text().splitlines()
    assert all(json.loads(record) for record in records[:-1])


def test_disk_full_from_the_start_is_refused(mounted: Mounted, tmp_path: Path) -> None:
    disk = mounted("size=1m")
    fill(disk)
    done = train("--run-dir", disk / "run", cwd=tmp_path, code=2)
    assert ", but only 0 B is free" in done.err
    assert [path.name for path in disk.iterdir()] == ["filler"]


@pytest.mark.parametrize("more", [(), ("--dry-run",)])
def test_read_only_disk_is_refused(mounted: Mounted, tmp_path: Path, more: tuple[str, ...]) -> None:
    disk = mounted("size=1m,ro")
    done = train("--run-dir", disk / "a" / "run", *more, cwd=tmp_path, code=2)
    assert "not writable" in done.err


def test_run_on_a_read_only_disk_cannot_resume_but_can_be_evaluated(
    mounted: Mounted, tmp_path: Path
) -> None:
    disk = mounted("size=2m")
    train("--run-dir", disk / "run", cwd=tmp_path)
    subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
    longer = settings(training__duration="9it")
    done = train("--run-dir", disk / "run", *longer, cwd=tmp_path, code=2)
    assert "not writable: Read-only file system" in done.err
    scored = here("evaluate", disk / "run", cwd=tmp_path)
    assert "evaluation data: 296 samples" in scored.out
    assert "scores not saved in the run" in scored.out


@pytest.mark.parametrize("place", ["file", "file/run", "/proc/none/run"])
def test_impossible_run_directory_is_refused(tmp_path: Path, place: str) -> None:
    (tmp_path / "file").write_text("x")
    done = train("--run-dir", place, cwd=tmp_path, code=2)
    assert "is a file" in done.err or "not writable" in done.err
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_checkpoint_files_have_the_same_permissions_as_others(tmp_path: Path) -> None:
    train("--run-dir", "run", cwd=tmp_path)
    (folder,) = (tmp_path / "run" / "checkpoints").iterdir()
    modes = {path.stat().st_mode & 0o777 for path in folder.iterdir()}
    assert modes == {(tmp_path / "run" / "recipe.json").stat().st_mode & 0o777}
