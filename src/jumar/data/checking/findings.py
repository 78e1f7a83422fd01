"""Problems and oddities of a data set, by the same rules for all kinds of items."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from jumar.data.checking.item import CheckedPart, Item
from jumar.data.checking.lookalikes import MOST_NEIGHBOURS, alike, groups_of
from jumar.ground.text import counted

FAR_FROM_MEDIAN = 4.0
"""A size is odd above this many times the median, or below this fraction of it."""
SPREADS = 6.0
"""But only if it is this many times as far from it as half of the items."""
FEW_SAMPLES = 0.1
"""A class is small below this fraction of the median class."""
FEWEST_SAMPLES = 5
"""A class below this number is always small."""


class Place(NamedTuple):
    """An item of a part, and its problem."""

    part: str
    where: str
    detail: str = ""


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One kind of problem with all of its places.

    Attributes:
        kind: `broken`, `duplicate`, `leak`, `look-alike`, `label conflict`, `odd size`, `odd kind`
            or `class`.
        what: A short description, with numbers.
        groups: The places; those of a group belong together, such as copies of one image.
    """

    kind: str
    what: str
    groups: Sequence[Sequence[Place]]

    @property
    def count(self) -> int:
        """Number of groups or single places."""
        return len(self.groups)


@dataclass(frozen=True, kw_only=True)
class PartItems:
    """A part with all of its items."""

    part: CheckedPart
    items: Sequence[Item]


class _Known(NamedTuple):
    """An item that could be read, with the name of its part."""

    part: str
    item: Item

    @property
    def place(self) -> Place:
        return Place(self.part, self.item.where, self.item.label)


def findings_of(parts: Sequence[PartItems]) -> list[Finding]:
    """All findings about the parts of a data set, the worst first."""
    known = [
        _Known(entry.part.name, item) for entry in parts for item in entry.items if not item.fault
    ]
    same, copies = _copies(known)
    findings = [
        *_broken(parts),
        *copies,
        *_near(known, same),
        *_odd_sizes(known),
        *_odd_kinds(known),
    ]
    return [*findings, *_classes(parts)]


def _broken(parts: Sequence[PartItems]) -> Iterator[Finding]:
    groups: list[list[Place]] = []
    for entry in parts:
        name = entry.part.name
        groups += [[Place(name, item.where, item.fault)] for item in entry.items if item.fault]
        groups += [[Place(name, fault.origin, fault.reason)] for fault in entry.part.faults]
    if groups:
        yield Finding(kind="broken", what="cannot be used", groups=groups)


def _copies(known: Sequence[_Known]) -> tuple[set[tuple[int, int]], list[Finding]]:
    """Items with the same bytes or the same content, and their pairs."""
    findings: list[Finding] = []
    by_content = _grouped(known, lambda item: item.content)
    by_meaning = [
        group
        for group in _grouped(known, lambda item: item.meaning)
        if len({known[index].item.content for index in group}) > 1
    ]
    findings += _duplicates(known, by_content, "the same content")
    findings += _duplicates(known, by_meaning, "the same after decoding")
    pairs = {(group[0], other) for group in (*by_content, *by_meaning) for other in group[1:]}
    return pairs, findings


def _near(known: Sequence[_Known], same: set[tuple[int, int]]) -> list[Finding]:
    """Images that look alike but are not copies of each other."""
    rows = [index for index, entry in enumerate(known) if entry.item.look is not None]
    if not rows:
        return []
    looks = np.stack([look for row in rows if (look := known[row].item.look) is not None])
    sizes = [dict(known[row].item.size) for row in rows]
    aspects = np.array([size["width"] / size["height"] for size in sizes])
    places = np.array(rows, np.int64)
    near = alike(looks, aspects)
    pairs, crowded = places[near.pairs], places[near.crowded]
    of_copies = groups_of(np.array(sorted(same), np.int64).reshape(-1, 2), len(known))
    first = {index: group[0] for group in of_copies for index in group}
    new = [
        (a, b) for a, b in pairs.tolist() if first.get(int(a), int(a)) != first.get(int(b), int(b))
    ]
    groups = groups_of(np.array(new, np.int64).reshape(-1, 2), len(known))
    duplicates = _duplicates(known, groups, "looks the same")
    if len(crowded):
        what = (
            f"more than {MOST_NEIGHBOURS} others may look the same; only the nearest were compared"
        )
        each = [[known[index].place] for index in crowded.tolist()]
        duplicates.append(Finding(kind="look-alike", what=what, groups=each))
    return duplicates


def _duplicates(
    known: Sequence[_Known], groups: Sequence[Sequence[int]], how: str
) -> list[Finding]:
    """Groups within a part, across parts, and with different labels."""
    within: list[list[Place]] = []
    across: list[list[Place]] = []
    conflicts: list[list[Place]] = []
    for group in groups:
        places = [known[index].place for index in group]
        (across if len({place.part for place in places}) > 1 else within).append(places)
        if len({place.detail for place in places}) > 1:
            conflicts.append(places)
    alike_only = how == "looks the same"
    kinds = (
        ("leak", f"{how} in training and in evaluation", across),
        ("look-alike" if alike_only else "duplicate", how, within),
        ("label conflict", f"{how}, with different labels", conflicts),
    )
    return [Finding(kind=kind, what=what, groups=places) for kind, what, places in kinds if places]


def _grouped(known: Sequence[_Known], key: Callable[[Item], bytes]) -> list[list[int]]:
    groups: defaultdict[bytes, list[int]] = defaultdict(list)
    for index, entry in enumerate(known):
        if key(entry.item):
            groups[key(entry.item)].append(index)
    return [group for group in groups.values() if len(group) > 1]


def _odd_sizes(known: Sequence[_Known]) -> Iterator[Finding]:
    sizes: defaultdict[str, list[tuple[float, _Known]]] = defaultdict(list)
    for entry in known:
        for name, value in entry.item.size:
            sizes[name].append((value, entry))
        size = dict(entry.item.size)
        if size.get("height"):
            sizes["width by height"].append((size["width"] / size["height"], entry))
    for name, values in sizes.items():
        low, high, middle = _usual([value for value, _ in values])
        odd = [
            [Place(entry.part, entry.item.where, f"{value:.4g}")]
            for value, entry in values
            if not low <= value <= high
        ]
        if odd:
            what = f"{name} outside of {low:.3g} to {high:.3g}, around a median of {middle:.4g}"
            yield Finding(kind="odd size", what=what, groups=odd)


def _usual(values: Sequence[float]) -> tuple[float, float, float]:
    """The range of sizes that are not odd, and the median.

    On a logarithmic scale it extends `FAR_FROM_MEDIAN` to both sides of the median, and further if
    sizes vary widely, such as lengths of texts.
    """
    logs = np.log(np.maximum(values, 1e-9))
    middle = float(np.median(logs))
    spread = float(np.median(np.abs(logs - middle)))
    reach = max(float(np.log(FAR_FROM_MEDIAN)), SPREADS * spread)
    low, high, median = np.exp([middle - reach, middle + reach, middle]).tolist()
    return low, high, median


def _odd_kinds(known: Sequence[_Known]) -> Iterator[Finding]:
    counts = Counter(trait for entry in known for trait in entry.item.traits)
    for trait, count in counts.items():
        if count <= len(known) / 2:
            places = [
                [Place(entry.part, entry.item.where)]
                for entry in known
                if trait in entry.item.traits
            ]
            what = f"{trait}: {count} of {counted(len(known), 'item')}"
            yield Finding(kind="odd kind", what=what, groups=places)


def _classes(parts: Sequence[PartItems]) -> Iterator[Finding]:
    counts: dict[str, Mapping[str, int]] = {}
    for entry in parts:
        of_items = Counter(name for item in entry.items for name in item.classes)
        counts[entry.part.name] = {**dict.fromkeys(entry.part.classes, 0), **of_items}
    everywhere = sorted({name for each in counts.values() for name in each})
    missing = [
        [Place(part, name, "no item")]
        for part, each in counts.items()
        for name in everywhere
        if not each.get(name)
    ]
    if missing:
        yield Finding(kind="class", what="missing on one side", groups=missing)
    for part, each in counts.items():
        present = [count for count in each.values() if count]
        if not present:
            continue
        least = max(FEWEST_SAMPLES, FEW_SAMPLES * float(np.median(present)))
        few = [
            [Place(part, name, counted(count, "item"))]
            for name, count in sorted(each.items())
            if 0 < count < least
        ]
        if few:
            what = f"fewer than {least:g} items in {part}"
            yield Finding(kind="class", what=what, groups=few)
