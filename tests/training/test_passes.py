from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from jumar.data.samples import SampleKey
from jumar.observer import Observers
from jumar.training.exact_passes import ExactPasses
from jumar.training.parallel.ranks import Ranks
from jumar.training.passes import Passes, batch_length, split_batch, step_seed
from jumar.training.settings import TrainingSettings
from tests.training.small_tasks import point_task, small_plan, trainer_for


@given(size=st.integers(1, 40), micro=st.integers(0, 45), first=st.integers(0, 100))
def test_parts_cover_the_batch_once(size: int, micro: int, first: int) -> None:
    batch = {"x": torch.arange(size), "y": torch.arange(size) * 2}
    parts = split_batch(batch, micro, first)
    assert torch.equal(torch.cat([part.batch["x"] for part in parts]), batch["x"])
    assert [part.first_row for part in parts] == [first + int(part.batch["x"][0]) for part in parts]


@given(seed=st.integers(0, 2**31), step=st.integers(0, 10**7))
def test_step_seeds_differ_between_steps_and_runs(seed: int, step: int) -> None:
    here = step_seed(seed, step)
    assert 0 <= here < 2**63
    assert here != step_seed(seed, step + 1)
    assert here != step_seed(seed + 1, step)


@pytest.mark.parametrize(
    ("count", "output"),
    [(1, 0xE220A8397B1DCDAF), (2, 0x6E789E6AA1B965F4), (3, 0x06C45D188009454F)],
)
def test_seed_is_the_published_splitmix64_without_the_sign_bit(count: int, output: int) -> None:
    """Its first outputs from the state 0, as in the reference of Java's SplittableRandom."""
    assert step_seed(count, -1) == output % 2**63


def test_step_enters_the_seed_through_another_odd_constant() -> None:
    def mixed(value: int) -> int:
        z = np.uint64(value % 2**64)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return int(z ^ (z >> np.uint64(31))) % 2**63

    gamma, other = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9
    with np.errstate(over="ignore"):
        for seed, step in ((0, 0), (3, 7), (2**31 - 1, 10**6)):
            assert step_seed(seed, step) == mixed(seed * gamma + (step + 1) * other)


def test_batch_is_split_into_equal_parts_and_a_smaller_last_one() -> None:
    batch = {"x": torch.arange(7), "y": torch.arange(14).reshape(7, 2)}
    assert batch_length(batch) == 7
    parts = split_batch(batch, 3, 40)
    assert [(part.batch["x"].tolist(), part.first_row) for part in parts] == [
        ([0, 1, 2], 40),
        ([3, 4, 5], 43),
        ([6], 46),
    ]
    assert [len(part.batch["y"]) for part in parts] == [3, 3, 1]
    (whole,) = split_batch(batch, 0, 5)
    assert (len(whole.batch["x"]), whole.first_row) == (7, 5)


def test_rows_and_seeds_are_counted_over_all_ranks(tmp_path: Path) -> None:
    third = Ranks(rank=2, world=4, local_world=4)
    keys = [SampleKey(0, index) for index in range(8)]
    for training, kind, rows, number in (
        (TrainingSettings(micro_batch_size=3), Passes, [16, 19, 22], 2),
        # Of exact sums every part has a seed: this rank has the fifth and the sixth.
        (TrainingSettings(sums="exact", micro_batch_size=4), ExactPasses, [16, 20], 5),
    ):
        plan = small_plan(training=training)
        trainer = trainer_for(point_task(), plan, tmp_path)
        batch = trainer.task.train_data.fetch(keys).batch
        passes = kind(trainer.state, plan, third, Observers())
        assert [part.first_row for part in passes._parts(batch)] == rows
        passes.repeat(trainer.state.lanes[0], batch, 7)
        assert torch.initial_seed() == (step_seed(3, 7) + number) % 2**63
        assert trainer.state.lanes[0].sums == {}
