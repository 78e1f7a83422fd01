import copy
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jumar.data.loading.balanced import BalancedKeys
from jumar.data.loading.sampler import batch_keys, steps_per_epoch
from jumar.data.samples import SampleKey
from jumar.ground.errors import UserError

LABELS = st.lists(st.integers(0, 4), min_size=8, max_size=80).filter(
    lambda each: len(set(each)) > 1
)


@given(LABELS, st.integers(0, 9), st.integers(0, 3))
def test_every_class_is_taken_equally_often(labels: list[int], seed: int, epoch: int) -> None:
    keys = BalancedKeys(np.array(labels))(seed, epoch, slice(None))
    counts = Counter(labels[key.index] for key in keys)
    assert len(keys) == len(labels)
    assert len(counts) == len(set(labels))
    assert max(counts.values()) - min(counts.values()) <= 1


@given(LABELS)
def test_keys_never_repeat_in_a_run_so_augmentations_do_not(labels: list[int]) -> None:
    balanced = BalancedKeys(np.array(labels))
    keys = [key for epoch in range(4) for key in balanced(1, epoch, slice(None))]
    assert len(set(keys)) == len(keys)


def test_frequent_class_uses_all_of_its_samples_over_the_epochs() -> None:
    labels = [0] * 90 + [1] * 10
    balanced = BalancedKeys(np.array(labels))
    taken = {key.index for epoch in range(3) for key in balanced(1, epoch, slice(None))}
    assert len(taken) >= 96
    rare = Counter(key.index for key in balanced(1, 0, slice(None)) if key.index >= 90)
    assert set(rare.values()) == {5}


@given(LABELS, st.sampled_from([1, 2, 4]), st.integers(0, 20))
def test_ranks_together_draw_the_samples_of_one_rank(
    labels: list[int], world: int, step: int
) -> None:
    balanced, size = BalancedKeys(np.array(labels)), len(labels)
    batch = 8 // world
    assert steps_per_epoch(size, 8) >= 1
    whole = batch_keys(3, step, size=size, batch_per_rank=8, rank=0, world=1, epoch_keys=balanced)
    parts = [
        key
        for rank in range(world)
        for key in batch_keys(
            3, step, size=size, batch_per_rank=batch, rank=rank, world=world, epoch_keys=balanced
        )
    ]
    assert parts == whole


def test_copied_order_draws_the_same_samples() -> None:
    balanced = BalancedKeys(np.array([0, 3, 3, 3, -1, 0]))
    other = copy.deepcopy(balanced)
    assert other(2, 5, slice(0, 4)) == balanced(2, 5, slice(0, 4))
    assert all(key.index != 4 for key in balanced(2, 5, slice(None)))


def test_epochs_and_seeds_have_different_orders() -> None:
    balanced = BalancedKeys(np.array([0] * 40 + [1] * 20))
    orders = [balanced(seed, epoch, slice(None)) for seed in (0, 1) for epoch in (0, 1)]
    for number, order in enumerate(orders):
        for other in orders[:number]:
            assert np.mean([a.index == b.index for a, b in zip(order, other, strict=True)]) < 0.25


def test_single_class_cannot_be_balanced() -> None:
    with pytest.raises(UserError, match="nothing to balance"):
        BalancedKeys(np.array([1, 1]))


@pytest.mark.parametrize(("seed", "epoch"), [(0, 0), (3, 1), (3, 4)])
def test_vectorised_order_equals_drawing_one_by_one(seed: int, epoch: int) -> None:
    labels = [2, 0, 2, 2, -1, 2, 2, 0, 2, 7, 2, 2, 2, -3]
    members = [[1, 7], [0, 2, 3, 5, 6, 8, 10, 11, 12], [9]]
    random = np.random.default_rng((5, seed, epoch))
    # Fourteen places for three classes: four each, and two of them have one more.
    has_extra = (random.permutation(3) < 2).tolist()
    keys: list[SampleKey] = []
    for number, own in enumerate(members):
        taken: list[SampleKey] = []
        if len(own) < 5:
            passes = -(-5 // len(own))
            drawn = np.random.default_rng((6, seed, number, epoch))
            rows = drawn.permuted(np.tile(own, (passes, 1)), axis=1).tolist()
            for row, order in enumerate(rows):
                taken += [SampleKey(epoch * passes + row, item) for item in order]
        else:
            for place in range(epoch * 5, epoch * 5 + 5):
                drawn = np.random.default_rng((6, seed, number, place // len(own)))
                item = drawn.permutation(own)[place % len(own)]
                taken.append(SampleKey(place // len(own), int(item)))
        keys += taken[: 4 + has_extra[number]]
    mixed = [keys[place] for place in random.permutation(14).tolist()]
    balanced = BalancedKeys(np.array(labels))
    assert balanced(seed, epoch, slice(None)) == mixed
    assert balanced(seed, epoch, slice(3, 9)) == mixed[3:9]
    assert balanced.counts == [2, 9, 1]
    assert copy.deepcopy(balanced)(seed, epoch, slice(None)) == mixed


def test_unbalanceable_data_is_reported_with_the_setting() -> None:
    for labels, classes in (([1, 1, -1], "1 class"), ([-1, -2], "0 classes")):
        with pytest.raises(UserError) as error:
            BalancedKeys(np.array(labels))
        assert str(error.value) == (
            f"data.sampling: the training set has {classes}: there is nothing to balance\n"
            "  Use data.sampling=natural."
        )
    assert BalancedKeys(np.array([1, 0])).counts == [1, 1]
