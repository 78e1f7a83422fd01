"""Matching the ops of one step with those of another."""

from bisect import bisect_left
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

_Whole = NDArray[np.int64]


class Key(NamedTuple):
    """The identity of an op on both sides; not its dtypes, which may have changed.

    `kind` is the type, `base` the type without its version.
    """

    kind: str
    shapes: str
    module: str
    base: str


@dataclass(frozen=True, kw_only=True)
class Alignment:
    """Pairs of rows, and the unpaired rows with the gap each is in.

    A gap is the part between two pairs that are in order on both sides; rows of one gap on
    both sides may be the same work done by different ops.
    """

    pairs: tuple[tuple[int, int], ...]
    removed: tuple[tuple[int, int], ...]
    added: tuple[tuple[int, int], ...]


class Tokens(NamedTuple):
    """The ops of some steps, one row per op: equal ops have equal numbers on both sides.

    `step` does not decrease. `exact` stands for type, shapes and module, `near` for type and
    module, `base` for the type without its version.
    """

    step: _Whole
    exact: _Whole
    near: _Whole
    base: _Whole


class Aligned(NamedTuple):
    """Paired rows, by `left`; rows without a partner; the gap of every row."""

    left: _Whole
    right: _Whole
    removed: _Whole
    added: _Whole
    gap_left: _Whole
    gap_right: _Whole


def longest_increasing(values: Sequence[int]) -> list[int]:
    """The positions of a longest strictly increasing subsequence."""
    tails: list[int] = []
    places: list[int] = []
    before: list[int] = []
    for place, value in enumerate(values):
        at = len(tails) if not tails or value > tails[-1] else bisect_left(tails, value)
        before.append(places[at - 1] if at else -1)
        if at == len(tails):
            tails.append(value)
            places.append(place)
        else:
            tails[at], places[at] = value, place
    chosen: list[int] = []
    place = places[-1] if places else -1
    while place >= 0:
        chosen.append(place)
        place = before[place]
    return chosen[::-1]


def align(before: Sequence[Key], after: Sequence[Key]) -> Alignment:
    """Pair the ops of two steps, as `align_rows` does with those of many."""
    numbers: dict[Hashable, int] = {}

    def tokens(keys: Sequence[Key]) -> Tokens:
        return Tokens(np.zeros(len(keys), np.int64), *token_columns(keys, numbers))

    aligned = align_rows(tokens(before), tokens(after))
    return Alignment(
        pairs=_both(aligned.left, aligned.right),
        removed=_both(aligned.removed, aligned.gap_left[aligned.removed]),
        added=_both(aligned.added, aligned.gap_right[aligned.added]),
    )


def _both(first: _Whole, second: _Whole) -> tuple[tuple[int, int], ...]:
    return tuple(zip(first.tolist(), second.tolist(), strict=True))


def token_columns(
    keys: Sequence[Key], numbers: dict[Hashable, int]
) -> tuple[_Whole, _Whole, _Whole]:
    """The columns `exact`, `near` and `base` of `Tokens` for keys.

    Args:
        keys: What identifies the ops.
        numbers: The numbers given so far, to which new ones are added.
    """

    def number(parts: Hashable) -> int:
        return numbers.setdefault(parts, len(numbers))

    exact = [number(("exact", key.kind, key.shapes, key.module)) for key in keys]
    near = [number(("near", key.kind, key.module)) for key in keys]
    base = [number(("base", key.base)) for key in keys]
    return np.array(exact, np.int64), np.array(near, np.int64), np.array(base, np.int64)


def align_rows(before: Tokens, after: Tokens) -> Aligned:
    """Pair the ops of the n-th step with those of the n-th step on the other side, for all steps.

    The n-th op of a type, shape and module is paired with the n-th on the other side; the longest
    part that is in order on both sides holds the rest in place. What is left is paired by type
    and module between the same neighbours, then by type there; and then what is equal, wherever
    it is, since a moved op is still the same op.
    """
    scale = 1 + max(
        (int(part.max()) for side in (before, after) for part in side if len(part)), default=0
    )
    left, right = _same(before.step * scale + before.exact, after.step * scale + after.exact)
    order = np.argsort(left)
    kept = _in_order(right[order])
    left, right = left[order][kept], right[order][kept]
    gap_left = _gaps(left, before.step)
    gap_right = _gaps(right, after.step)
    lefts, rights = [left], [right]
    free_left, free_right = np.ones(len(gap_left), bool), np.ones(len(gap_right), bool)
    free_left[left] = free_right[right] = False
    for tokens_left, tokens_right in (
        (gap_left * scale + before.near, gap_right * scale + after.near),
        (gap_left * scale + before.base, gap_right * scale + after.base),
        (before.step * scale + before.exact, after.step * scale + after.exact),
    ):
        rest_left, rest_right = np.flatnonzero(free_left), np.flatnonzero(free_right)
        if not len(rest_left) or not len(rest_right):
            break
        left, right = _same(tokens_left[rest_left], tokens_right[rest_right])
        left, right = rest_left[left], rest_right[right]
        lefts.append(left)
        rights.append(right)
        free_left[left] = free_right[right] = False
    left, right = np.concatenate(lefts), np.concatenate(rights)
    order = np.argsort(left)
    return Aligned(
        left=left[order],
        right=right[order],
        removed=np.flatnonzero(free_left),
        added=np.flatnonzero(free_right),
        gap_left=gap_left,
        gap_right=gap_right,
    )


def _gaps(anchors: _Whole, step: _Whole) -> _Whole:
    """For each row, the number of the gap between two anchors that it is in.

    With the step added, the end of a step and the beginning of the next one, between which no
    anchor may be, are two gaps.
    """
    count = np.zeros(len(step), np.int64)
    count[anchors] = 1
    return np.cumsum(count) + step


def _in_order(values: _Whole) -> _Whole:
    """The positions of a longest increasing subsequence.

    Between places before which everything is smaller than everything after, the parts are found
    one by one; where profiles are alike, nearly all of these hold a single value.
    """
    if not len(values):
        return np.zeros(0, np.int64)
    highest = np.maximum.accumulate(values)
    lowest = np.minimum.accumulate(values[::-1])[::-1]
    edges = np.concatenate([[0], 1 + np.flatnonzero(highest[:-1] < lowest[1:]), [len(values)]])
    alone = np.diff(edges) == 1
    kept = np.zeros(len(values), bool)
    kept[edges[:-1][alone]] = True
    for at in np.flatnonzero(~alone).tolist():
        low, high = int(edges[at]), int(edges[at + 1])
        kept[low + np.array(longest_increasing(values[low:high].tolist()), np.int64)] = True
    return np.flatnonzero(kept)


def _same(before: _Whole, after: _Whole) -> tuple[_Whole, _Whole]:
    """The positions of the n-th occurrence of each token on either side."""
    order_left, first_left, count_left, token_left = _runs(before)
    order_right, first_right, count_right, token_right = _runs(after)
    _, left, right = np.intersect1d(
        token_left, token_right, assume_unique=True, return_indices=True
    )
    counts = np.minimum(count_left[left], count_right[right])
    nth = np.arange(int(counts.sum())) - np.repeat(np.cumsum(counts) - counts, counts)
    return (
        order_left[np.repeat(first_left[left], counts) + nth],
        order_right[np.repeat(first_right[right], counts) + nth],
    )


def _runs(tokens: _Whole) -> tuple[_Whole, _Whole, _Whole, _Whole]:
    """The order by token; for each token its start in that order, its count, and itself."""
    order = np.argsort(tokens, kind="stable")
    ordered = tokens[order]
    first = np.flatnonzero(
        np.concatenate([np.ones(min(len(ordered), 1), bool), ordered[1:] != ordered[:-1]])
    )
    count = np.diff(np.append(first, len(ordered)))
    return order, first, count, ordered[first]
