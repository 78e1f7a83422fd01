"""Holds out a fraction of the training set for evaluation, or one of its k folds.

Which samples are held out depends only on their keys (such as a file's path below its class
folders, or a text) and on `split_seed`, not on the order of a listing or the number of ranks.
Samples with the same key, and all samples of a group such as a speaker, stay on one side.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from jumar.data.samples import Notice, fingerprint
from jumar.ground.errors import UserError
from jumar.ground.text import counted
from jumar.settings import setting


@dataclass(frozen=True, kw_only=True)
class DividedData:
    """Settings for dividing the training set."""

    val_fraction: float = setting(
        0.0,
        "Fraction of the training set, per class, held out for evaluation; 0: none.",
        minimum=0,
        maximum=0.9,
    )
    folds: int = setting(
        0, "Folds of a cross-validation over the training set; 0: none.", minimum=0, maximum=1000
    )
    fold: int = setting(0, "The fold to evaluate on; the others are trained on.", minimum=0)
    split_seed: int = setting(0, "Seed of the choice of held-out samples or folds.", minimum=0)


@dataclass(frozen=True, kw_only=True)
class Division:
    """Indices of the samples on both sides of a divided training set, in ascending order.

    Attributes:
        train: Training samples.
        held_out: Evaluation samples.
        fingerprint: Fingerprint of the held-out keys, independent of their order.
    """

    train: NDArray[np.int64]
    held_out: NDArray[np.int64]
    fingerprint: str


def is_divided(data: DividedData, eval_path: str) -> bool:
    """Return whether evaluation uses a part of the training set.

    Raises:
        UserError: The settings contradict each other.
    """
    if data.folds == 1 or (data.folds and data.fold >= data.folds):
        raise UserError(
            f"there is no fold {data.fold} of {counted(data.folds, 'fold')}",
            where="data.fold",
            todo="data.folds must be 2 or more, and data.fold from 0 to data.folds - 1.",
        )
    if data.fold and not data.folds:
        raise UserError(
            f"data.fold={data.fold} has no effect without data.folds", where="data.fold"
        )
    if data.folds and data.val_fraction:
        raise UserError(
            "data.val_fraction and data.folds both hold out a part of the training set",
            where="data.val_fraction",
            todo="Set one of them to 0.",
        )
    field = "data.folds" if data.folds else "data.val_fraction"
    divided = bool(data.folds or data.val_fraction)
    if divided and eval_path:
        raise UserError(
            f"{field} holds out a part of the training set, but data.eval_path names other "
            "evaluation data",
            where="data.eval_path",
            todo=f"Use one of them: data.eval_path= (empty) or {field}=0.",
        )
    return divided


def divided(
    data: DividedData,
    keys: Sequence[bytes],
    labels: NDArray[np.integer],
    *,
    groups: Sequence[str] | None = None,
) -> Division:
    """Divide a training set.

    Args:
        data: The settings.
        keys: The identifying key of each sample; samples with the same key stay together.
        labels: The class of each sample, [samples]; every class is divided in the same proportion.
        groups: The group of each sample, if groups must stay together; proportions of classes are
            then only approximate.

    Raises:
        UserError: There are too few samples or groups.
    """
    units = list(keys) if groups is None else [group.encode() for group in groups]
    names, unit_of = _numbered(units)
    ranks = _ranks(names, data.split_seed)
    classes, class_of = np.unique(labels, return_inverse=True)
    fraction = 1 / data.folds if data.folds else data.val_fraction
    if groups is None:
        fold_of = _by_class(ranks, _class_of_unit(unit_of, class_of, len(names)), data)
    else:
        counts = np.zeros((len(names), len(classes)), np.int64)
        np.add.at(counts, (unit_of, class_of), 1)
        shares = np.full(data.folds, fraction) if data.folds else np.array([fraction, 1 - fraction])
        fold_of = _by_group(ranks, counts, shares)
    held_fold = data.fold if data.folds else 0
    is_held_out = fold_of[unit_of] == held_fold
    if not is_held_out.any() or is_held_out.all():
        noun = "group" if groups is not None else "sample"
        part = f"fold {data.fold} of {data.folds}" if data.folds else f"a fraction of {fraction:g}"
        raise UserError(
            f"{counted(len(names), noun)} cannot be divided: {part} would leave one side empty",
            where="data.folds" if data.folds else "data.val_fraction",
        )
    held_out = np.flatnonzero(is_held_out)
    return Division(
        train=np.flatnonzero(~is_held_out),
        held_out=held_out,
        fingerprint=fingerprint(*sorted(keys[index] for index in held_out.tolist())),
    )


def report_division(
    division: Division, data: DividedData, labels: NDArray[np.integer], notice: Notice, by: str
) -> None:
    """Report how a training set was divided, and which classes have no sample on one side."""
    part = f"fold {data.fold} of {data.folds}" if data.folds else f"{data.val_fraction:g}"
    total = len(division.train) + len(division.held_out)
    notice(
        f"evaluation: {len(division.held_out)} of the {counted(total, 'training sample')} "
        f"({part}, {by}, split seed {data.split_seed}, hash {division.fingerprint})"
    )
    sides = {"training": division.train, "evaluation": division.held_out}
    for side, indices in sides.items():
        missing_labels = np.setdiff1d(labels, labels[indices])
        if len(missing_labels):
            notice(
                f"evaluation: {counted(len(missing_labels), 'class')} without a sample in {side}"
            )


def _numbered(units: Sequence[bytes]) -> tuple[list[bytes], NDArray[np.int64]]:
    numbers: dict[bytes, int] = {}
    unit_of = np.array([numbers.setdefault(unit, len(numbers)) for unit in units], np.int64)
    return list(numbers), unit_of


def _ranks(names: Sequence[bytes], seed: int) -> NDArray[np.int64]:
    """Return the units in a random order that depends only on names and seed."""
    salt = seed.to_bytes(8, "little")
    digests = [hashlib.blake2b(name, key=salt, digest_size=16).digest() for name in names]
    return np.array(sorted(range(len(names)), key=digests.__getitem__), np.int64)


def _class_of_unit(
    unit_of: NDArray[np.int64], class_of: NDArray[np.int64], units: int
) -> NDArray[np.int64]:
    """Return the lowest class of each unit: samples with the same key may differ in label."""
    lowest_class = np.full(units, np.iinfo(np.int64).max)
    np.minimum.at(lowest_class, unit_of, class_of)
    return lowest_class


def _by_class(
    ranks: NDArray[np.int64], class_of: NDArray[np.int64], data: DividedData
) -> NDArray[np.int64]:
    """Return the fold of each unit; without folds, 0 is the held-out part.

    With folds, each class continues where the previous one ended, so that fold sizes differ by at
    most one.
    """
    fold_of = np.empty(len(ranks), np.int64)
    count_before = 0
    for label in np.unique(class_of):
        members = ranks[class_of[ranks] == label]
        positions = np.arange(len(members))
        if data.folds:
            fold_of[members] = (count_before + positions) % data.folds
        else:
            # Rounding is cumulative, so that the total is right even for many small classes.
            first = round(count_before * data.val_fraction)
            fold_of[members] = (
                positions >= round((count_before + len(members)) * data.val_fraction) - first
            )
        count_before += len(members)
    return fold_of


def _by_group(
    ranks: NDArray[np.int64], counts: NDArray[np.int64], shares: NDArray[np.float64]
) -> NDArray[np.int64]:
    """Assign each group to the fold that needs its classes most.

    Args:
        ranks: The groups in the order of their assignment.
        counts: Number of samples of each group and class, [groups, classes].
        shares: The fraction of every class that each fold should have, [folds].
    """
    targets = shares[:, None] * np.maximum(counts.sum(axis=0), 1)
    totals = np.zeros_like(targets)
    fold_of = np.empty(len(ranks), np.int64)
    for group in ranks:
        increase = ((totals + counts[group]) / targets) ** 2 - (totals / targets) ** 2
        fold = int(np.argmin((shares[:, None] * increase).sum(axis=1)))
        fold_of[group] = fold
        totals[fold] += counts[group]
    return fold_of
