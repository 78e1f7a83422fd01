import hashlib
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jumar.data.loading.division import (
    DividedData,
    Division,
    divided,
    is_divided,
    report_division,
)
from jumar.data.samples import fingerprint
from jumar.ground.errors import UserError
from jumar.settings import describe

SETS = st.lists(st.integers(0, 3), min_size=12, max_size=60)


def keys_of(labels: list[int]) -> list[bytes]:
    return [f"{label}/{index}.png".encode() for index, label in enumerate(labels)]


def held_keys(division: Division, keys: list[bytes]) -> set[bytes]:
    return {keys[index] for index in division.held_out}


@given(SETS, st.sampled_from([0.1, 0.25, 0.5]), st.integers(0, 5), st.randoms())
def test_order_of_a_listing_changes_nothing(
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
def test_held_out_share_is_exact_overall_and_per_class_to_within_one(
    labels: list[int],
) -> None:
    division = divided(DividedData(val_fraction=0.25), keys_of(labels), np.array(labels))
    assert abs(len(division.held_out) - len(labels) / 4) <= 1
    for label in set(labels):
        count = sum(labels[index] == label for index in division.held_out)
        assert abs(count - labels.count(label) / 4) <= 1
    both = np.concatenate([division.train, division.held_out])
    assert sorted(both.tolist()) == list(range(len(labels)))


def test_another_split_seed_holds_out_other_samples() -> None:
    labels = [0, 1] * 50
    one, other = (
        divided(DividedData(val_fraction=0.2, split_seed=seed), keys_of(labels), np.array(labels))
        for seed in (0, 1)
    )
    assert one.fingerprint != other.fingerprint
    assert len(set(one.held_out.tolist()) & set(other.held_out.tolist())) < 12


def test_samples_with_the_same_key_are_not_split() -> None:
    keys = [f"text {index // 3}".encode() for index in range(90)]
    labels = np.array([index % 2 for index in range(90)])
    for fold in range(3):
        division = divided(DividedData(folds=3, fold=fold), keys, labels)
        train = {keys[index] for index in division.train}
        assert not train & held_keys(division, keys)


@given(st.lists(st.integers(1, 9), min_size=6, max_size=20), st.integers(0, 3))
def test_groups_are_not_split_and_about_the_requested_share_is_held_out(
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


def test_indivisible_data_is_refused() -> None:
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


def test_nothing_is_divided_unless_requested() -> None:
    assert not is_divided(DividedData(), "val")
    assert is_divided(DividedData(folds=2), "")


def ranked(names: list[bytes], seed: int) -> list[bytes]:
    """The order of names by their keyed hashes."""
    salt = seed.to_bytes(8, "little")
    return sorted(names, key=lambda name: hashlib.blake2b(name, key=salt, digest_size=16).digest())


@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 25)), min_size=6, max_size=40),
    st.sampled_from([(0, 0, 0.2), (0, 0, 0.37), (2, 1, 0.0), (3, 0, 0.0), (5, 4, 0.0)]),
    st.integers(0, 2**40),
)
def test_samples_of_a_class_are_assigned_in_hash_order(
    samples: list[tuple[int, int]], division: tuple[int, int, float], seed: int
) -> None:
    folds, fold, share = division
    keys = [str(name).encode() for _, name in samples]
    labels = [label for label, _ in samples]
    # Of samples with the same key the lowest label counts.
    label_of = {
        key: min(lb for k, lb in zip(keys, labels, strict=True) if k == key) for key in keys
    }
    held: set[bytes] = set()
    before = 0
    for label in sorted(set(labels)):
        members = [key for key in ranked(list(label_of), seed) if label_of[key] == label]
        if folds:
            held |= {key for place, key in enumerate(members) if (before + place) % folds == fold}
        else:
            end = round((before + len(members)) * share) - round(before * share)
            held |= set(members[:end])
        before += len(members)
    data = DividedData(folds=folds, fold=fold, val_fraction=share, split_seed=seed)
    if not held or held == set(keys):
        with pytest.raises(UserError, match="would leave one side empty"):
            divided(data, keys, np.array(labels))
        return
    made = divided(data, keys, np.array(labels))
    places = [place for place, key in enumerate(keys) if key in held]
    assert made.held_out.tolist() == places
    assert made.train.tolist() == [place for place in range(len(keys)) if place not in places]
    assert made.fingerprint == fingerprint(*sorted(keys[place] for place in places))


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize(("folds", "share"), [(3, 0.0), (0, 0.25)])
def test_group_is_assigned_to_the_fold_most_short_of_its_classes(
    seed: int, folds: int, share: float
) -> None:
    random = np.random.default_rng(seed)
    groups = [f"g{number}" for number in random.integers(0, 9, 70).tolist()]
    labels = random.choice([2, 5, 7], 70, p=[0.6, 0.3, 0.1])
    shares = [Fraction(1, folds)] * folds if folds else [Fraction(1, 4), Fraction(3, 4)]
    classes = sorted(set(labels.tolist()))
    pairs = list(zip(groups, labels.tolist(), strict=True))
    wanted = [[part * max(1, labels.tolist().count(each)) for each in classes] for part in shares]
    have = [[Fraction(0) for _ in classes] for _ in shares]
    fold_of: dict[str, int] = {}
    for name in ranked([name.encode() for name in dict.fromkeys(groups)], seed):
        group = name.decode()
        counts = [pairs.count((group, each)) for each in classes]
        costs = [
            part
            * sum(
                ((has + count) / want) ** 2 - (has / want) ** 2
                for has, count, want in zip(have[number], counts, wanted[number], strict=True)
            )
            for number, part in enumerate(shares)
        ]
        chosen = costs.index(min(costs))
        fold_of[group] = chosen
        have[chosen] = [has + count for has, count in zip(have[chosen], counts, strict=True)]
    keys = [str(number).encode() for number in range(70)]
    for fold in range(max(1, folds)):
        data = DividedData(folds=folds, fold=fold, val_fraction=share, split_seed=seed)
        made = divided(data, keys, labels, groups=groups)
        assert made.held_out.tolist() == [
            place for place, group in enumerate(groups) if fold_of[group] == fold
        ]


def test_division_is_reported_with_classes_missing_on_one_side() -> None:
    labels = np.array([4, 4, 4, 5, 6, 7])
    division = Division(train=np.array([0, 1, 3]), held_out=np.array([2, 4, 5]), fingerprint="abc")
    lines: list[str] = []
    data = DividedData(val_fraction=0.5, split_seed=9)
    report_division(division, data, labels, lines.append, by="of each class")
    assert lines == [
        "evaluation: 3 of the 6 training samples (0.5, of each class, split seed 9, hash abc)",
        "evaluation: 2 classes without a sample in training",
        "evaluation: 1 class without a sample in evaluation",
    ]
    lines.clear()
    whole = Division(train=np.array([0]), held_out=np.array([1]), fingerprint="d")
    folds = DividedData(folds=3, fold=2)
    report_division(whole, folds, np.array([4, 4]), lines.append, by="by speaker")
    assert lines == [
        "evaluation: 1 of the 2 training samples (fold 2 of 3, by speaker, split seed 0, hash d)"
    ]


def test_refusals_name_the_setting_and_a_remedy() -> None:
    def refused(data: DividedData, eval_path: str = "") -> str:
        with pytest.raises(UserError) as error:
            is_divided(data, eval_path)
        return str(error.value)

    todo = "data.folds must be 2 or more, and data.fold from 0 to data.folds - 1."
    assert refused(DividedData(folds=2, fold=2)) == (
        f"data.fold: there is no fold 2 of 2 folds\n  {todo}"
    )
    assert refused(DividedData(folds=1)) == f"data.fold: there is no fold 0 of 1 fold\n  {todo}"
    assert refused(DividedData(fold=1)) == (
        "data.fold: data.fold=1 has no effect without data.folds"
    )
    assert refused(DividedData(folds=2, val_fraction=0.1)) == (
        "data.val_fraction: data.val_fraction and data.folds both hold out a part of the training "
        "set\n  Set one of them to 0."
    )
    for data, field in [
        (DividedData(folds=2, fold=1), "data.folds"),
        (DividedData(val_fraction=0.1), "data.val_fraction"),
    ]:
        assert is_divided(data, "") is True
        assert refused(data, "val") == (
            f"data.eval_path: {field} holds out a part of the training set, but data.eval_path "
            f"names other evaluation data\n  Use one of them: data.eval_path= (empty) or {field}=0."
        )
    assert is_divided(DividedData(), "") is False
    keys, labels = [b"a", b"b", b"c"], np.array([0, 0, 0])
    for data, groups, text in [
        (
            DividedData(val_fraction=0.1),
            None,
            "data.val_fraction: 3 samples cannot be divided: a fraction of 0.1 would leave one "
            "side empty",
        ),
        (
            DividedData(folds=4, fold=3),
            None,
            "data.folds: 3 samples cannot be divided: fold 3 of 4 would leave one side empty",
        ),
        (
            DividedData(val_fraction=0.5),
            ["g", "g", "g"],
            "data.val_fraction: 1 group cannot be divided: a fraction of 0.5 would leave one side "
            "empty",
        ),
    ]:
        with pytest.raises(UserError) as error:
            divided(data, keys, labels, groups=groups)
        assert str(error.value) == text


def test_settings_have_their_defaults_and_limits() -> None:
    assert [(row.path, row.value, row.allowed) for row in describe(DividedData())] == [
        ("val_fraction", 0.0, "0 to 0.9"),
        ("folds", 0, "0 to 1000"),
        ("fold", 0, "0 or more"),
        ("split_seed", 0, "0 or more"),
    ]
    fields = DividedData.__dataclass_fields__.values()
    assert not any(field.metadata["changeable"] for field in fields)
