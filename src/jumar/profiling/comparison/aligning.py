"""Pairs the ops of steps with those of other steps."""

from bisect import bisect_left
from collections.abc import Hashable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

_Integers = NDArray[np.int64]


class Key(NamedTuple):
    """The identity of an op on both sides, without dtypes, which may have changed.

    `kind` is the type, `base` the type without its version.
    """

    kind: str
    shapes: str
    module: str
    base: str


class Tokens(NamedTuple):
    """The ops of some steps as numbers, equal for equal ops of both sides; sorted by `step`.

    `exact` stands for type, shapes and module, `near` for type and module, `base` for the type
    without its version.
    """

    step: _Integers
    exact: _Integers
    near: _Integers
    base: _Integers


class Aligned(NamedTuple):
    """Paired rows, sorted by `left`; unpaired rows; and the gap of each row.

    A gap is the range between two successive pairs that are in order on both sides. Unpaired rows
    of both sides in the same gap may be the same work done by different ops.
    """

    left: _Integers
    right: _Integers
    removed: _Integers
    added: _Integers
    gap_left: _Integers
    gap_right: _Integers


def longest_increasing(values: Sequence[int]) -> list[int]:
    """The positions of a longest strictly increasing subsequence."""
    smallest_ends: list[int] = []
    end_positions: list[int] = []
    predecessors: list[int] = []
    for position, value in enumerate(values):
        length = bisect_left(smallest_ends, value)
        predecessors.append(end_positions[length - 1] if length else -1)
        if length == len(smallest_ends):
            smallest_ends.append(value)
            end_positions.append(position)
        else:
            smallest_ends[length], end_positions[length] = value, position
    chosen: list[int] = []
    position = end_positions[-1] if end_positions else -1
    while position >= 0:
        chosen.append(position)
        position = predecessors[position]
    return chosen[::-1]


def token_columns(
    keys: Sequence[Key], numbers: dict[Hashable, int]
) -> tuple[_Integers, _Integers, _Integers]:
    """The columns `exact`, `near` and `base` of `Tokens`.

    Args:
        keys: The keys of the ops.
        numbers: The numbers assigned so far; new ones are added.
    """

    def number(parts: Hashable) -> int:
        return numbers.setdefault(parts, len(numbers))

    exact = [number(("exact", key.kind, key.shapes, key.module)) for key in keys]
    near = [number(("near", key.kind, key.module)) for key in keys]
    base = [number(("base", key.base)) for key in keys]
    return np.array(exact, np.int64), np.array(near, np.int64), np.array(base, np.int64)


def align_rows(before: Tokens, after: Tokens) -> Aligned:
    """Pair the ops of each step with those of the same step on the other side.

    The n-th op with the same type, shapes and module is paired with the n-th one on the other side,
    and the longest series of pairs that is in order on both sides is kept. In the gaps between
    these pairs, the remaining ops are paired by type and module, then by type. Finally, equal ops
    are paired at any position, since an op that moved is still the same op.
    """
    stride = 1 + max(
        (int(column.max()) for tokens in (before, after) for column in tokens if len(column)),
        default=0,
    )
    left, right = _equal_pairs(
        before.step * stride + before.exact, after.step * stride + after.exact
    )
    order = np.argsort(left)
    in_order = _longest_in_order(right[order])
    left, right = left[order][in_order], right[order][in_order]
    gap_left = _gap_numbers(left, before.step)
    gap_right = _gap_numbers(right, after.step)
    lefts, rights = [left], [right]
    is_free_left, is_free_right = np.ones(len(gap_left), bool), np.ones(len(gap_right), bool)
    is_free_left[left] = is_free_right[right] = False
    for tokens_left, tokens_right in (
        (gap_left * stride + before.near, gap_right * stride + after.near),
        (gap_left * stride + before.base, gap_right * stride + after.base),
        (before.step * stride + before.exact, after.step * stride + after.exact),
    ):
        rest_left, rest_right = np.flatnonzero(is_free_left), np.flatnonzero(is_free_right)
        if not len(rest_left) or not len(rest_right):
            break
        left, right = _equal_pairs(tokens_left[rest_left], tokens_right[rest_right])
        left, right = rest_left[left], rest_right[right]
        lefts.append(left)
        rights.append(right)
        is_free_left[left] = is_free_right[right] = False
    left, right = np.concatenate(lefts), np.concatenate(rights)
    order = np.argsort(left)
    return Aligned(
        left=left[order],
        right=right[order],
        removed=np.flatnonzero(is_free_left),
        added=np.flatnonzero(is_free_right),
        gap_left=gap_left,
        gap_right=gap_right,
    )


def _gap_numbers(anchors: _Integers, step: _Integers) -> _Integers:
    """The number of each row's gap between anchors.

    Adding the step separates the end of a step from the beginning of the next one.
    """
    count = np.zeros(len(step), np.int64)
    count[anchors] = 1
    return np.cumsum(count) + step


def _longest_in_order(values: _Integers) -> _Integers:
    """The positions of a longest increasing subsequence.

    Splits the values where all before are smaller than all after, and solves each part separately;
    for similar profiles, nearly all parts are single values.
    """
    if not len(values):
        return np.zeros(0, np.int64)
    highest = np.maximum.accumulate(values)
    lowest = np.minimum.accumulate(values[::-1])[::-1]
    edges = np.concatenate([[0], 1 + np.flatnonzero(highest[:-1] < lowest[1:]), [len(values)]])
    is_single = np.diff(edges) == 1
    is_kept = np.zeros(len(values), bool)
    is_kept[edges[:-1][is_single]] = True
    for index in np.flatnonzero(~is_single).tolist():
        low, high = int(edges[index]), int(edges[index + 1])
        is_kept[low + np.array(longest_increasing(values[low:high].tolist()), np.int64)] = True
    return np.flatnonzero(is_kept)


def _equal_pairs(before: _Integers, after: _Integers) -> tuple[_Integers, _Integers]:
    """The positions, on both sides, of the n-th occurrence of each token."""
    order_left, first_left, count_left, token_left = _token_runs(before)
    order_right, first_right, count_right, token_right = _token_runs(after)
    _, left, right = np.intersect1d(
        token_left, token_right, assume_unique=True, return_indices=True
    )
    counts = np.minimum(count_left[left], count_right[right])
    nth = np.arange(int(counts.sum())) - np.repeat(np.cumsum(counts) - counts, counts)
    return (
        order_left[np.repeat(first_left[left], counts) + nth],
        order_right[np.repeat(first_right[right], counts) + nth],
    )


def _token_runs(tokens: _Integers) -> tuple[_Integers, _Integers, _Integers, _Integers]:
    """The order that sorts tokens; per distinct token, its first index, its count, and itself."""
    order = np.argsort(tokens, kind="stable")
    ordered = tokens[order]
    first = np.flatnonzero(
        np.concatenate([np.ones(min(len(ordered), 1), bool), ordered[1:] != ordered[:-1]])
    )
    count = np.diff(np.append(first, len(ordered)))
    return order, first, count, ordered[first]
