import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

from jumar.ground.errors import UserError
from jumar.training import checkpoint as checkpoints
from jumar.training import checkpoint_retention
from jumar.training.checkpoint_state import SavedState


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


def test_what_is_written_is_read_back(tmp_path: Path) -> None:
    written = write(tmp_path, 7, 2.0)
    assert [c.step for c in checkpoint_retention.list_checkpoints(tmp_path)] == [7]
    assert torch.equal(
        checkpoints.load_weights(written.model_file(ema=True))["w"], torch.full((3,), 2.0)
    )
    state = checkpoints.load_state(written)
    assert state.values == {"step": 7, "numbers": [1, 2.5]}
    assert torch.equal(state.slots["tensor"], torch.arange(3))


def test_tied_weights_are_stored_each(tmp_path: Path) -> None:
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


def test_a_write_that_fails_leaves_nothing_and_harms_nothing(tmp_path: Path) -> None:
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


def test_numbers_that_cannot_be_written_leave_nothing_either(tmp_path: Path) -> None:
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
    found = checkpoint_retention.list_checkpoints(tmp_path)
    assert len(found) >= 3
    assert checkpoint_retention.intact_checkpoints(tmp_path, pytest.fail) == found
    for each in found:
        for name in (checkpoints.MODEL, checkpoints.EMA):
            assert float(checkpoints.load_weights(each.path / name)["w"][-1]) == each.step
        state = checkpoints.load_state(each)
        assert state.values["step"] == float(state.slots["w"][-1]) == each.step
    checkpoint_retention.remove_leftovers(tmp_path)
    assert all(path.name.startswith("step-") for path in tmp_path.iterdir())
