import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

from jumar.errors import UserError
from jumar.training import checkpoint as checkpoints


def write(directory: Path, step: int, value: float = 0.0, **more: object) -> checkpoints.Checkpoint:
    return checkpoints.write_checkpoint(
        directory,
        step=step,
        epoch=step / 10,
        model={"w": torch.full((3,), value)},
        ema=None,
        state={"step": step, "numbers": [1, 2.5], "tensor": torch.arange(3)},
        batch={"seed": 1},
    )


def test_what_is_written_is_read_back(tmp_path: Path) -> None:
    written = write(tmp_path, 7, 2.0)
    assert [c.step for c in checkpoints.list_checkpoints(tmp_path)] == [7]
    assert torch.equal(
        checkpoints.load_weights(written.model_file(ema=True))["w"], torch.full((3,), 2.0)
    )
    assert checkpoints.load_state(written)["numbers"] == [1, 2.5]


def test_tied_weights_are_stored_each(tmp_path: Path) -> None:
    shared = torch.randn(4, 4)
    written = checkpoints.write_checkpoint(
        tmp_path,
        step=1,
        epoch=0,
        model={"a": shared, "b": shared.t()},
        ema=None,
        state={},
        batch={},
    )
    loaded = checkpoints.load_weights(written.path / checkpoints.MODEL)
    assert torch.equal(loaded["a"], shared)
    assert torch.equal(loaded["b"], shared.t())


def test_retention_keeps_the_newest_and_the_best(tmp_path: Path) -> None:
    for step, score in ((1, 10.0), (2, 90.0), (3, 50.0), (4, 60.0)):
        checkpoints.note_metrics(write(tmp_path, step), {"top1": score})
    checkpoints.drop_checkpoints(tmp_path, keep=2, keep_best=True, headline=("top1", True))
    assert [c.step for c in checkpoints.list_checkpoints(tmp_path)] == [2, 3, 4]
    assert checkpoints.find_checkpoint(tmp_path, "best", ("top1", True)).step == 2
    checkpoints.drop_checkpoints(tmp_path, keep=1, keep_best=False, headline=("top1", True))
    assert [c.step for c in checkpoints.list_checkpoints(tmp_path)] == [4]


def test_a_score_that_is_no_number_is_never_the_best(tmp_path: Path) -> None:
    checkpoints.note_metrics(write(tmp_path, 1), {"loss": 2.0})
    checkpoints.note_metrics(write(tmp_path, 2), {"loss": float("nan")})
    assert checkpoints.find_checkpoint(tmp_path, "best", ("loss", False)).step == 1


def test_a_missing_step_is_named_with_those_that_are_there(tmp_path: Path) -> None:
    write(tmp_path, 5)
    with pytest.raises(UserError, match="5, last, best"):
        checkpoints.find_checkpoint(tmp_path, "6")


@pytest.mark.parametrize("name", [checkpoints.STATE, checkpoints.MODEL, checkpoints.RECORD])
def test_a_damaged_file_is_a_clear_error(tmp_path: Path, name: str) -> None:
    written = write(tmp_path, 5)
    path = written.path / name
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    with pytest.raises(UserError, match="step-00000005"):
        _read_all(tmp_path)


def test_state_that_would_run_code_is_refused(tmp_path: Path) -> None:
    written = write(tmp_path, 5)
    torch.save({"step": Path("x")}, written.path / checkpoints.STATE)
    with pytest.raises(UserError, match="cannot be read"):
        checkpoints.load_state(written)


def test_a_write_that_fails_leaves_nothing_and_harms_nothing(tmp_path: Path) -> None:
    write(tmp_path, 1, 1.0)
    with pytest.raises(UserError, match="could not be written"):
        checkpoints.write_checkpoint(
            tmp_path,
            step=2,
            epoch=0,
            model={"w": torch.zeros(2).to_sparse()},
            ema=None,
            state={},
            batch={},
        )
    assert [path.name for path in tmp_path.iterdir()] == ["step-00000001"]


KILLED = """
import sys, torch
from pathlib import Path
from jumar.training.checkpoint import write_checkpoint
step = 0
while True:
    step += 1
    weights = {"w": torch.full((200_000,), float(step))}
    write_checkpoint(Path(sys.argv[1]), step=step, epoch=0.0, model=weights, ema=weights,
                     state={"step": step}, batch={})
    print(step, flush=True)
"""


@pytest.mark.parametrize("delay", [0.0, 0.003, 0.011])
def test_every_checkpoint_is_whole_after_kill_9_at_any_moment(tmp_path: Path, delay: float) -> None:
    child = subprocess.Popen(
        [sys.executable, "-c", KILLED, str(tmp_path)], stdout=subprocess.PIPE, text=True
    )
    assert child.stdout is not None
    for _ in range(3):
        child.stdout.readline()
    time.sleep(delay)
    child.kill()
    child.wait()
    found = checkpoints.list_checkpoints(tmp_path)
    assert len(found) >= 3
    for each in found:
        for name in (checkpoints.MODEL, checkpoints.EMA):
            assert float(checkpoints.load_weights(each.path / name)["w"][-1]) == each.step
        assert checkpoints.load_state(each)["step"] == each.step
    checkpoints.remove_leftovers(tmp_path)
    assert all(path.name.startswith("step-") for path in tmp_path.iterdir())


def _read_all(directory: Path) -> None:
    found = checkpoints.list_checkpoints(directory)[0]
    checkpoints.load_weights(found.model_file(ema=False))
    checkpoints.load_state(found)
