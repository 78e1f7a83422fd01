from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jumar.data.loading.division import DividedData, Division, divided, is_divided
from jumar.ground.errors import UserError

SETS = st.lists(st.integers(0, 3), min_size=12, max_size=60)


def keys_of(labels: list[int]) -> list[bytes]:
    return [f"{label}/{index}.png".encode() for index, label in enumerate(labels)]


def held_keys(division: Division, keys: list[bytes]) -> set[bytes]:
    return {keys[index] for index in division.held_out}


@given(SETS, st.sampled_from([0.1, 0.25, 0.5]), st.integers(0, 5), st.randoms())
def test_the_order_of_a_listing_changes_nothing(
    labels: list[int], share: float, seed: int, random: object
) -> None:
    data = DividedData(val_fraction=share, split_seed=seed)
    keys = keys_of(labels)
    order = np.random.default_rng(seed).permutation(len(keys))
    try:
        one = divided(data, keys, np.array(labels))
    except UserError:
        return
    other_keys = [keys[index] for index in order]
    other = divided(data, other_keys, np.array(labels)[order])
    assert held_keys(one, keys) == held_keys(other, other_keys)
    assert one.fingerprint == other.fingerprint


@given(SETS, st.integers(2, 5))
def test_each_sample_is_held_out_in_exactly_one_fold_and_classes_keep_their_proportion(
    labels: list[int], folds: int
) -> None:
    keys = keys_of(labels)
    parts = [
        divided(DividedData(folds=folds, fold=fold), keys, np.array(labels)).held_out
        for fold in range(folds)
    ]
    assert sorted(np.concatenate(parts).tolist()) == list(range(len(labels)))
    sizes = [len(part) for part in parts]
    assert max(sizes) - min(sizes) <= 1
    for label in set(labels):
        counts = [sum(labels[index] == label for index in part) for part in parts]
        assert max(counts) - min(counts) <= 1


@given(SETS)
def test_a_share_is_the_share_of_the_whole_and_of_each_class_to_within_one(
    labels: list[int],
) -> None:
    division = divided(DividedData(val_fraction=0.25), keys_of(labels), np.array(labels))
    assert abs(len(division.held_out) - len(labels) / 4) <= 1
    for label in set(labels):
        count = sum(labels[index] == label for index in division.held_out)
        assert abs(count - labels.count(label) / 4) <= 1
    both = np.concatenate([division.train, division.held_out])
    assert sorted(both.tolist()) == list(range(len(labels)))


def test_another_split_seed_holds_out_others() -> None:
    labels = [0, 1] * 50
    one, other = (
        divided(DividedData(val_fraction=0.2, split_seed=seed), keys_of(labels), np.array(labels))
        for seed in (0, 1)
    )
    assert one.fingerprint != other.fingerprint
    assert len(set(one.held_out.tolist()) & set(other.held_out.tolist())) < 12


def test_samples_with_the_same_key_are_on_one_side() -> None:
    keys = [f"text {index // 3}".encode() for index in range(90)]
    labels = np.array([index % 2 for index in range(90)])
    for fold in range(3):
        division = divided(DividedData(folds=3, fold=fold), keys, labels)
        train = {keys[index] for index in division.train}
        assert not train & held_keys(division, keys)


@given(st.lists(st.integers(1, 9), min_size=6, max_size=20), st.integers(0, 3))
def test_groups_are_on_one_side_and_about_the_wanted_share_is_held_out(
    sizes: list[int], seed: int
) -> None:
    groups = [f"speaker {number}" for number, size in enumerate(sizes) for _ in range(size)]
    labels = np.array([index % 3 for index in range(len(groups))])
    keys = [f"{index}".encode() for index in range(len(groups))]
    data = DividedData(val_fraction=0.5, split_seed=seed)
    division = divided(data, keys, labels, groups=groups)
    sides = [{groups[index] for index in side} for side in (division.train, division.held_out)]
    assert not sides[0] & sides[1]
    assert abs(len(division.held_out) - len(groups) / 2) <= 9 + len(groups) / 4


def test_what_cannot_be_divided_is_refused() -> None:
    with pytest.raises(UserError, match="leave one side empty"):
        divided(DividedData(val_fraction=0.1), [b"a", b"b"], np.array([0, 1]))


@dataclass(frozen=True)
class Refused:
    """Settings, and a part of what is said about them."""

    settings: DividedData
    eval_path: str
    says: str


@pytest.mark.parametrize(
    "case",
    [
        Refused(DividedData(folds=3, fold=3), "", "no fold 3 of 3"),
        Refused(DividedData(folds=1), "", "no fold 0 of 1"),
        Refused(DividedData(fold=1), "", "no effect"),
        Refused(DividedData(folds=3, val_fraction=0.1), "", "both hold out"),
        Refused(DividedData(val_fraction=0.1), "val", "eval_path names other"),
        Refused(DividedData(folds=3), "none", "eval_path names other"),
    ],
)
def test_contradictory_settings_are_refused(case: Refused) -> None:
    with pytest.raises(UserError, match=case.says):
        is_divided(case.settings, case.eval_path)


def test_nothing_is_divided_unless_asked_for() -> None:
    assert not is_divided(DividedData(), "val")
    assert is_divided(DividedData(folds=2), "")
