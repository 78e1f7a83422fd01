import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from jumar.data.loading.sampler import (
    batch_keys,
    epoch_order,
    evaluation_keys,
    sample_random,
    steps_per_epoch,
)
from jumar.data.samples import SampleKey
from jumar.ground.errors import UserError

SEEDS = st.integers(0, 2**31)
SIZES = st.integers(1, 200)


@given(seed=SEEDS, epoch=st.integers(0, 100), size=SIZES)
def test_order_of_an_epoch_is_a_permutation(seed: int, epoch: int, size: int) -> None:
    assert sorted(epoch_order(seed, epoch, size).tolist()) == list(range(size))


def test_order_changes_with_the_epoch_and_with_the_seed() -> None:
    orders = [epoch_order(seed, epoch, 1000) for seed in (0, 1) for epoch in (0, 1)]
    for number, order in enumerate(orders):
        for other in orders[:number]:
            assert (order == other).mean() < 0.02


def test_cached_order_is_read_only() -> None:
    with pytest.raises(ValueError, match="read-only"):
        epoch_order(0, 0, 10)[0] = 5


@st.composite
def training_sets(draw: st.DrawFn) -> tuple[int, int, int, int]:
    """Seed, size, batch of a rank, ranks, such that a global batch fits."""
    world, batch = draw(st.integers(1, 5)), draw(st.integers(1, 8))
    size = draw(st.integers(world * batch, 200))
    return draw(SEEDS), size, batch, world


@given(training_sets())
def test_epoch_repeats_no_sample_and_drops_less_than_a_batch(
    given_set: tuple[int, int, int, int],
) -> None:
    seed, size, batch, world = given_set
    keys = [
        key
        for step in range(steps_per_epoch(size, batch * world))
        for rank in range(world)
        for key in batch_keys(seed, step, size=size, batch_per_rank=batch, rank=rank, world=world)
    ]
    assert {key.epoch for key in keys} == {0}
    assert len({key.index for key in keys}) == len(keys) > size - batch * world


@given(training_sets(), st.integers(0, 500))
def test_ranks_together_draw_the_samples_of_one_rank_in_the_same_order(
    given_set: tuple[int, int, int, int], step: int
) -> None:
    seed, size, batch, world = given_set
    together = [
        key
        for rank in range(world)
        for key in batch_keys(seed, step, size=size, batch_per_rank=batch, rank=rank, world=world)
    ]
    assert together == batch_keys(
        seed, step, size=size, batch_per_rank=batch * world, rank=0, world=1
    )


@given(training_sets(), st.lists(st.integers(0, 1000), max_size=5))
def test_keys_of_a_step_do_not_depend_on_earlier_calls(
    given_set: tuple[int, int, int, int], others: list[int]
) -> None:
    seed, size, batch, world = given_set

    def keys(step: int) -> list[SampleKey]:
        return batch_keys(seed, step, size=size, batch_per_rank=batch, rank=0, world=world)

    first = keys(77)
    for other in others:
        keys(other)
    assert keys(77) == first


def test_batch_larger_than_the_set_is_an_error_with_both_numbers() -> None:
    with pytest.raises(UserError, match=r"64 samples .* 50 samples"):
        batch_keys(0, 0, size=50, batch_per_rank=32, rank=0, world=2)


@given(size=st.integers(0, 200), batch=st.integers(1, 30), world=st.integers(1, 5))
def test_evaluation_takes_each_sample_exactly_once_over_all_ranks(
    size: int, batch: int, world: int
) -> None:
    taken = [
        key
        for rank in range(world)
        for keys in evaluation_keys(size, batch, rank, world)
        for key in keys
    ]
    assert sorted(taken) == [SampleKey(0, index) for index in range(size)]


@given(size=st.integers(0, 200), batch=st.integers(1, 30), world=st.integers(1, 5))
def test_no_evaluation_batch_is_empty_or_too_large(size: int, batch: int, world: int) -> None:
    for rank in range(world):
        for keys in evaluation_keys(size, batch, rank, world):
            assert 1 <= len(keys) <= batch


def test_randomness_of_a_sample_depends_only_on_seed_epoch_and_index() -> None:
    drawn = {
        (seed, epoch, index): tuple(sample_random(seed, SampleKey(epoch, index)).random(3))
        for seed in range(3)
        for epoch in range(3)
        for index in range(3)
    }
    assert len(set(drawn.values())) == 27
    for (seed, epoch, index), values in drawn.items():
        assert tuple(sample_random(seed, SampleKey(epoch, index)).random(3)) == values


@example(seed=2**32, epoch=0, index=0)
@example(seed=2**32 - 1, epoch=0, index=0)
@given(seed=st.integers(0, 2**70), epoch=st.integers(0, 2**32), index=st.integers(0, 2**31))
def test_randomness_of_a_sample_equals_numpys_for_the_same_seed_sequence(
    seed: int, epoch: int, index: int
) -> None:
    plain = np.random.default_rng((2, seed, epoch, index))
    assert sample_random(seed, SampleKey(epoch, index)).random() == plain.random()


def test_randomness_of_samples_is_independent_of_the_order() -> None:
    order = epoch_order(5, 0, 100)
    assert not np.array_equal(order, sample_random(5, SampleKey(0, 0)).permutation(100))


def test_last_epoch_of_a_long_run_is_reached_as_fast_as_the_first() -> None:
    keys = batch_keys(1, 10**9, size=1000, batch_per_rank=10, rank=0, world=1)
    assert {key.epoch for key in keys} == {10**7}


def test_order_is_numpys_permutation_by_seed_and_epoch() -> None:
    for seed, epoch, size in ((0, 0, 10), (7, 3, 25)):
        expected = np.random.default_rng((1, seed, epoch)).permutation(size)
        assert epoch_order(seed, epoch, size).tolist() == expected.tolist()
        assert epoch_order(seed, epoch, size).dtype == np.int64


def test_rank_takes_its_rows_of_the_step_in_the_epoch() -> None:
    # Eleven samples, two ranks of two: two whole steps an epoch.
    orders = [np.random.default_rng((1, 5, epoch)).permutation(11).tolist() for epoch in (0, 1)]
    for step, rank, epoch, start in [(0, 0, 0, 0), (0, 1, 0, 2), (1, 1, 0, 6), (3, 0, 1, 4)]:
        keys = batch_keys(5, step, size=11, batch_per_rank=2, rank=rank, world=2)
        assert keys == [SampleKey(epoch, index) for index in orders[epoch][start : start + 2]]
    asked: list[tuple[int, int, slice]] = []

    def own_order(seed: int, epoch: int, rows: slice) -> list[SampleKey]:
        asked.append((seed, epoch, rows))
        return []

    batch_keys(5, 3, size=11, batch_per_rank=2, rank=1, world=2, epoch_keys=own_order)
    assert asked == [(5, 1, slice(6, 8))]


def test_set_of_one_batch_has_one_step_and_a_smaller_one_is_refused() -> None:
    assert [steps_per_epoch(size, 4) for size in (4, 7, 8)] == [1, 1, 2]
    with pytest.raises(UserError) as error:
        steps_per_epoch(3, 4)
    assert str(error.value) == (
        "a batch of 4 samples over all ranks is larger than the training set of 3 samples\n"
        "  Choose a batch size of at most 3 over all ranks."
    )


def test_ranks_take_turns_in_an_evaluation() -> None:
    def indices(rank: int) -> list[list[int]]:
        batches = list(evaluation_keys(8, 3, rank, 2))
        assert {key.epoch for keys in batches for key in keys} == {0}
        return [[key.index for key in keys] for keys in batches]

    assert [indices(rank) for rank in (0, 1)] == [[[0, 1, 2], [6, 7]], [[3, 4, 5]]]
