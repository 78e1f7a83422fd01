from pathlib import Path
from typing import Any

import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.utils._python_dispatch import TorchDispatchMode

from jumar.data.samples import SampleKey
from jumar.training.settings import TrainingSettings
from jumar.training.step import split_batch, step_seed
from tests.training.small_tasks import point_task, small_plan, trainer_for


@given(size=st.integers(1, 40), micro=st.integers(0, 45), first=st.integers(0, 100))
def test_parts_cover_the_batch_once_and_weigh_as_their_samples(
    size: int, micro: int, first: int
) -> None:
    batch = {"x": torch.arange(size), "y": torch.arange(size) * 2}
    parts = split_batch(batch, micro, first)
    assert torch.equal(torch.cat([part.batch["x"] for part in parts]), batch["x"])
    assert abs(sum(part.weight for part in parts) - 1) < 1e-9
    assert [part.first_row for part in parts] == [first + int(part.batch["x"][0]) for part in parts]


@given(seed=st.integers(0, 2**31), step=st.integers(0, 10**7))
def test_seeds_of_steps_differ_from_step_to_step_and_run_to_run(seed: int, step: int) -> None:
    here = step_seed(seed, step)
    assert 0 <= here < 2**63
    assert here != step_seed(seed, step + 1)
    assert here != step_seed(seed + 1, step)


class Reads(TorchDispatchMode):
    """Counts the values that travel from a tensor to Python."""

    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.count += func is torch.ops.aten._local_scalar_dense.default
        return func(*args, **(kwargs or {}))


def test_a_step_reads_no_value_of_a_tensor(tmp_path: Path) -> None:
    """On a CPU the trainer looks at the guard between steps; on an accelerator nothing does.

    The whole run on a device is counted in tests/npu_standin/inside/test_read_backs.py.
    """
    plan = small_plan(training=TrainingSettings(clip="global_norm", ema_decay=0.9))
    trainer = trainer_for(point_task(), plan, tmp_path)
    batch = trainer.task.train_data.fetch([SampleKey(0, index) for index in range(8)]).batch
    reads = Reads()
    with reads:
        for _ in range(3):
            trainer._stepper.step(batch)
    assert trainer.state.step == 3
    assert reads.count == 0
