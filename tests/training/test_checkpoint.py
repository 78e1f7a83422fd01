import json
import re
import subprocess
import sys
import time
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest
import torch

from jumar.ground.errors import UserError
from jumar.training import checkpoint as checkpoints
from jumar.training import checkpoint_retention
from jumar.training.checkpoint_files import DamagedError, mark_of, sealed
from jumar.training.checkpoint_state import SavedState
from jumar.training.run_directory import read_json, write_json


def write(directory: Path, step: int, value: float = 0.0, **more: object) -> checkpoints.Checkpoint:
    return checkpoints.write_checkpoint(
        directory,
        step=step,
        epoch=step / 10,
        model={"w": torch.full((3,), value)},
        ema=None,
        state=SavedState(
            values={"step": step, "numbers": [1, 2.5]}, slots={"tensor": torch.arange(3)}
        ),
        batch={"seed": 1},
    )


def test_checkpoint_round_trips(tmp_path: Path) -> None:
    written = write(tmp_path, 7, 2.0)
    assert [c.step for c in checkpoint_retention.list_checkpoints(tmp_path)] == [7]
    assert torch.equal(
        checkpoints.load_weights(written.model_file(ema=True))["w"], torch.full((3,), 2.0)
    )
    state = checkpoints.load_state(written)
    assert state.values == {"step": 7, "numbers": [1, 2.5]}
    assert torch.equal(state.slots["tensor"], torch.arange(3))


def test_record_has_step_epoch_time_batch_and_checksum_of_every_file(tmp_path: Path) -> None:
    written = checkpoints.write_checkpoint(
        tmp_path,
        step=12,
        epoch=1.5,
        model={"w": torch.ones(2)},
        ema={"w": torch.zeros(2)},
        state=SavedState(values={"step": 12}, slots={"o/w/m": torch.ones(1)}),
        batch={"seed": 1, "epoch_size": 40},
    )
    assert written.path == tmp_path / "step-00000012"
    record = json.loads((written.path / "checkpoint.json").read_text())
    when = datetime.strptime(record.pop("time"), "%Y-%m-%d %H:%M:%S").replace(tzinfo=timezone.utc)
    assert abs((datetime.now(timezone.utc) - when).total_seconds()) < 60
    assert re.fullmatch("[0-9a-f]{8}", record.pop("crc32c"))
    names = ["model.safetensors", "ema.safetensors", "optimizer.safetensors", "state.json"]
    marks = {name: mark_of(written.path / name) for name in names}
    assert record == {
        "format": 2,
        "step": 12,
        "epoch": 1.5,
        "metrics": {},
        "batch": {"seed": 1, "epoch_size": 40},
        "files": {name: {"size": m.size, "crc32c": m.crc32c} for name, m in marks.items()},
    }
    assert (written.step, written.epoch, written.metrics) == (12, 1.5, {})
    assert (written.has_ema, written.format, written.marks) == (True, 2, marks)
    assert written.batch == {"seed": 1, "epoch_size": 40}
    assert written.files == names
    assert written.model_file(ema=True).name == "ema.safetensors"
    assert written.model_file(ema=False).name == "model.safetensors"
    assert sorted(path.name for path in written.path.iterdir()) == sorted(
        [*names, "checkpoint.json"]
    )


def test_checkpoint_of_the_same_step_is_replaced(tmp_path: Path) -> None:
    write(tmp_path, 7, 1.0)
    again = write(tmp_path, 7, 2.0)
    assert [path.name for path in tmp_path.iterdir()] == ["step-00000007"]
    again.check(with_state=True)
    assert checkpoints.load_weights(again.model_file(ema=False))["w"].tolist() == [2.0, 2.0, 2.0]


def test_without_slots_there_is_no_slot_file_and_none_are_read(tmp_path: Path) -> None:
    written = checkpoints.write_checkpoint(
        tmp_path,
        step=1,
        epoch=0,
        model={"w": torch.ones(1)},
        ema=None,
        batch={},
        state=SavedState(values={"step": 1}),
    )
    assert written.files == ["model.safetensors", "state.json"]
    assert not written.has_ema
    assert written.model_file(ema=True).name == "model.safetensors"
    state = checkpoints.load_state(written)
    assert (state.values, state.slots) == ({"step": 1}, {})


def test_only_resuming_needs_the_complete_state(tmp_path: Path) -> None:
    written = write(tmp_path, 7)
    (written.path / "state.json").write_text("{}")
    written.check(with_state=False)
    with pytest.raises(DamagedError, match=r"state\.json: has 2 bytes instead of"):
        written.check(with_state=True)
    (written.path / "model.safetensors").unlink()
    with pytest.raises(DamagedError, match=r"model\.safetensors: is missing"):
        written.check(with_state=False)


def test_scores_including_nan_round_trip_through_the_record(
    tmp_path: Path,
) -> None:
    noted = checkpoints.record_metrics(write(tmp_path, 7), {"top1": 50.0, "loss": float("nan")})
    assert noted.metrics["top1"] == 50.0
    assert noted.metrics["loss"] != noted.metrics["loss"]
    assert read_json(noted.path / "checkpoint.json")["metrics"] == {"top1": 50.0, "loss": None}


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"step": "x"}, "has a missing or malformed field: invalid literal for int()"),
        ({"epoch": None}, "has a missing or malformed field: float() argument"),
        ({"metrics": []}, "has a missing or malformed field: 'list' object"),
        ({"batch": {"seed": "one"}}, "has a missing or malformed field: invalid literal"),
        ({"files": {"model.safetensors": {}}}, "has a missing or malformed field: 'size'"),
        ({"epoch": 10**400}, "has a missing or malformed field: int too large"),
        ({"step": 8}, "belongs to step 8"),
    ],
)
def test_inconsistent_record_is_damaged(
    tmp_path: Path, changed: dict[str, Any], message: str
) -> None:
    file = write(tmp_path, 7).path / "checkpoint.json"
    write_json(file, sealed({**read_json(file), **changed}))
    with pytest.raises(DamagedError) as result:
        checkpoints.read_checkpoint(file.parent)
    assert str(result.value).startswith(f"{file}: {message}")


def test_record_must_be_complete_but_may_be_of_an_earlier_version(tmp_path: Path) -> None:
    file = write(tmp_path, 7).path / "checkpoint.json"
    whole = read_json(file)
    for name in ("step", "epoch", "time", "metrics", "batch"):
        write_json(file, sealed({key: value for key, value in whole.items() if key != name}))
        with pytest.raises(DamagedError, match=f"malformed field: '{name}'"):
            checkpoints.read_checkpoint(file.parent)
    first = {k: v for k, v in whole.items() if k not in ("format", "files", "crc32c")}
    write_json(file, first)
    older = checkpoints.read_checkpoint(file.parent)
    assert (older.format, older.marks, older.has_ema) == (1, {}, False)
    assert older.files == ["model.safetensors", "state.pt"]
    (file.parent / "ema.safetensors").touch()
    older = checkpoints.read_checkpoint(file.parent)
    assert older.has_ema
    assert older.files == ["model.safetensors", "ema.safetensors", "state.pt"]
    write_json(file, {**whole, "epoch": 99.0})
    with pytest.raises(DamagedError) as result:
        checkpoints.read_checkpoint(file.parent)
    assert str(result.value) == f"{file}: is damaged: its content has changed since it was written"
    moved = file.parent.rename(tmp_path / "imported")
    write_json(moved / "checkpoint.json", first)
    assert checkpoints.read_checkpoint(moved).step == 7


def test_record_of_a_later_version_is_refused(tmp_path: Path) -> None:
    file = write(tmp_path, 7).path / "checkpoint.json"
    write_json(file, sealed({**read_json(file), "format": 3}))
    with pytest.raises(UserError) as refused:
        checkpoints.read_checkpoint(file.parent)
    assert str(refused.value) == (
        f"{file}: has format 3, but this version of jumar reads up to 2\n"
        "  Use the version that wrote the checkpoint, or a newer one."
    )


@pytest.mark.parametrize(
    ("name", "step"),
    [
        ("step-00000007", 7),
        ("step-123456789", 123456789),
        ("step-0000007", None),
        ("step-0000007x", None),
        ("step-00000007-2", None),
        (".step-00000007", None),
        ("damaged-step-00000007", None),
    ],
)
def test_names_give_the_step_or_are_foreign(name: str, step: int | None) -> None:
    assert checkpoints.step_of(Path("checkpoints") / name) == step


def caused(error: Exception, cause: Exception) -> Exception:
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (OSError(28, "No space left on device"), "No space left on device"),
        (OSError("odd"), "odd"),
        (RuntimeError("first line\nsecond line"), "first line"),
        (RuntimeError(""), "RuntimeError"),
        (UserError("is odd"), "is odd"),
        (caused(UserError("cannot be written"), OSError(30, "Read-only")), "Read-only"),
        (caused(RuntimeError("mine"), OSError(30, "Read-only")), "mine"),
    ],
)
def test_write_errors_are_reported_with_the_step(error: Exception, reason: str) -> None:
    beside = checkpoints.unfinished(Path("run/checkpoints"), 12)
    with pytest.raises(checkpoints.NotWrittenError) as result, checkpoints.not_written(beside):
        raise error
    assert str(result.value) == (
        f"run/checkpoints: the checkpoint of step 12 could not be written: {reason}\n"
        "  Free some space or choose another --run-dir; earlier checkpoints are intact."
    )


def test_tied_weights_are_stored_separately(tmp_path: Path) -> None:
    shared = torch.randn(4, 4)
    written = checkpoints.write_checkpoint(
        tmp_path,
        step=1,
        epoch=0,
        model={"a": shared, "b": shared.t()},
        ema=None,
        state=SavedState(),
        batch={},
    )
    loaded = checkpoints.load_weights(written.path / checkpoints.MODEL)
    assert torch.equal(loaded["a"], shared)
    assert torch.equal(loaded["b"], shared.t())


def test_failed_write_leaves_no_files_and_does_no_harm(tmp_path: Path) -> None:
    write(tmp_path, 1, 1.0)
    with pytest.raises(UserError, match="could not be written"):
        checkpoints.write_checkpoint(
            tmp_path,
            step=2,
            epoch=0,
            model={"w": torch.zeros(2).to_sparse()},
            ema=None,
            state=SavedState(),
            batch={},
        )
    assert [path.name for path in tmp_path.iterdir()] == ["step-00000001"]


def test_destination_without_a_creatable_folder_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(checkpoints.NotWrittenError) as result:
        write(tmp_path / "file" / "checkpoints", 12)
    assert str(result.value) == (
        f"{tmp_path}/file/checkpoints: the checkpoint of step 12 could not be written: "
        "Not a directory\n"
        "  Free some space or choose another --run-dir; earlier checkpoints are intact."
    )


FULL = """
import resource, sys, torch
from pathlib import Path
from jumar.training.checkpoint import NotWrittenError, write_checkpoint
from jumar.training.checkpoint_state import SavedState
resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
try:
    write_checkpoint(Path(sys.argv[1]), step=2, epoch=0.0, model={"w": torch.zeros(3)}, ema=None,
                     state=SavedState(values={"many": list(range(10_000))}), batch={})
except NotWrittenError as error:
    print(error.what)
"""


def test_unserialisable_numbers_leave_no_files(tmp_path: Path) -> None:
    write(tmp_path, 1, 1.0)
    done = subprocess.run(
        [sys.executable, "-c", FULL, str(tmp_path)], capture_output=True, text=True, check=True
    )
    assert done.stdout == "the checkpoint of step 2 could not be written: File too large\n"
    assert [path.name for path in tmp_path.iterdir()] == ["step-00000001"]


KILLED = """
import sys, torch
from pathlib import Path
from jumar.training.checkpoint import write_checkpoint
from jumar.training.checkpoint_state import SavedState
step = 0
while True:
    step += 1
    weights = {"w": torch.full((200_000,), float(step))}
    write_checkpoint(Path(sys.argv[1]), step=step, epoch=0.0, model=weights, ema=weights,
                     state=SavedState(values={"step": step}, slots=weights), batch={})
    print(step, flush=True)
"""


@pytest.mark.parametrize("delay", [0.0, 0.003, 0.011])
def test_every_checkpoint_is_intact_after_kill_9_at_any_moment(
    tmp_path: Path, delay: float
) -> None:
    child = subprocess.Popen(
        [sys.executable, "-c", KILLED, str(tmp_path)], stdout=subprocess.PIPE, text=True
    )
    assert child.stdout is not None
    for _ in range(3):
        child.stdout.readline()
    time.sleep(delay)
    child.kill()
    child.wait()
    result = checkpoint_retention.list_checkpoints(tmp_path)
    assert len(result) >= 3
    assert checkpoint_retention.intact_checkpoints(tmp_path, pytest.fail) == result
    for each in result:
        for name in (checkpoints.MODEL, checkpoints.EMA):
            assert float(checkpoints.load_weights(each.path / name)["w"][-1]) == each.step
        state = checkpoints.load_state(each)
        assert state.values["step"] == float(state.slots["w"][-1]) == each.step
    checkpoint_retention.remove_leftovers(tmp_path)
    assert all(path.name.startswith("step-") for path in tmp_path.iterdir())
