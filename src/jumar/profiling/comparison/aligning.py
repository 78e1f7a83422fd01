"""Which op of one step is which op of another one."""

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import NamedTuple


class Key(NamedTuple):
    """By what an op is known again; dtypes are no part of it, since they may be what changed.

    `kind` is the type, `base` the type without its version.
    """

    kind: str
    shapes: str
    module: str
    base: str


@dataclass(frozen=True, kw_only=True)
class Alignment:
    """Pairs of rows, and the rows that have no partner, with the gap that each lies in.

    A gap is what stands between two pairs that are in order on both sides; rows of one gap on
    both sides may be the same work done by other ops.
    """

    pairs: tuple[tuple[int, int], ...]
    removed: tuple[tuple[int, int], ...]
    added: tuple[tuple[int, int], ...]


def longest_increasing(values: Sequence[int]) -> list[int]:
    """The places of a longest strictly increasing part of a sequence."""
    tails: list[int] = []
    places: list[int] = []
    before: list[int] = []
    for place, value in enumerate(values):
        at = bisect_left(tails, value)
        before.append(places[at - 1] if at else -1)
        if at == len(tails):
            tails.append(value)
            places.append(place)
        else:
            tails[at], places[at] = value, place
    found: list[int] = []
    place = places[-1] if places else -1
    while place >= 0:
        found.append(place)
        place = before[place]
    return found[::-1]


def align(before: Sequence[Key], after: Sequence[Key]) -> Alignment:
    """Pair the ops of two steps, in time that hardly grows faster than their number.

    The n-th op of a type, shape and module is paired with the n-th on the other side; the longest
    part that is in order on both sides holds the rest in place. What is left is paired by type
    and module between the same neighbours, then by type there; and then what is equal wherever it
    stands, since a moved op is still the same op.
    """
    matched = _same(
        [(row, key[:3]) for row, key in enumerate(before)],
        [(row, key[:3]) for row, key in enumerate(after)],
    )
    matched.sort()
    pairs = [matched[place] for place in longest_increasing([right for _, right in matched])]
    lefts, rights = [left for left, _ in pairs], sorted(right for _, right in pairs)

    def gap(row: int, anchors: Sequence[int]) -> int:
        return bisect_right(anchors, row)

    taken_left, taken_right = set(lefts), set(rights)
    for near, parts in ((True, (0, 2)), (True, (3,)), (False, (0, 1, 2))):
        rest_left = [row for row in range(len(before)) if row not in taken_left]
        rest_right = [row for row in range(len(after)) if row not in taken_right]
        if not rest_left or not rest_right:
            break
        found = _same(
            [
                (row, (gap(row, lefts) if near else 0, *(before[row][part] for part in parts)))
                for row in rest_left
            ],
            [
                (row, (gap(row, rights) if near else 0, *(after[row][part] for part in parts)))
                for row in rest_right
            ],
        )
        pairs += found
        taken_left.update(left for left, _ in found)
        taken_right.update(right for _, right in found)
    return Alignment(
        pairs=tuple(sorted(pairs)),
        removed=tuple(
            (row, gap(row, lefts)) for row in range(len(before)) if row not in taken_left
        ),
        added=tuple((row, gap(row, rights)) for row in range(len(after)) if row not in taken_right),
    )


def _same(
    before: Sequence[tuple[int, Hashable]], after: Sequence[tuple[int, Hashable]]
) -> list[tuple[int, int]]:
    """The n-th of each token with the n-th on the other side."""
    seen: Counter[Hashable] = Counter()
    places: dict[tuple[Hashable, int], int] = {}
    for row, token in before:
        places[token, seen[token]] = row
        seen[token] += 1
    seen.clear()
    found: list[tuple[int, int]] = []
    for row, token in after:
        partner = places.get((token, seen[token]))
        seen[token] += 1
        if partner is not None:
            found.append((partner, row))
    return found
