"""Problems and anomalies in a data set; the same rules apply to all kinds of items."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from jumar.data.checking.item import CheckedPart, Item
from jumar.data.checking.lookalikes import MAX_NEIGHBOURS, alike, groups_of
from jumar.ground.text import counted

FAR_FROM_MEDIAN = 4.0
"""A size is odd above this many times the median, or below this fraction of it."""
MAX_DEVIATIONS = 6.0
"""A size is not odd within this many median absolute deviations from the median."""
FEW_SAMPLES = 0.1
"""A class is small below this fraction of the median class."""
MIN_SAMPLES = 5
"""A class below this number is always small."""


class Place(NamedTuple):
    """An item of a part, and what is wrong with it."""

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
        groups: The places; those in a group belong together, such as copies of one image.
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


class _ReadableItem(NamedTuple):
    """An item without a fault, with the name of its part."""

    part: str
    item: Item

    @property
    def place(self) -> Place:
        return Place(self.part, self.item.where, self.item.label)


def findings_of(parts: Sequence[PartItems]) -> list[Finding]:
    """Return all findings about the parts of a data set, the worst first."""
    entries = [
        _ReadableItem(entry.part.name, item)
        for entry in parts
        for item in entry.items
        if not item.fault
    ]
    copy_pairs, copy_findings = _copies(entries)
    return [
        *_broken(parts),
        *copy_findings,
        *_look_alikes(entries, copy_pairs),
        *_odd_sizes(entries),
        *_odd_kinds(entries),
        *_classes(parts),
    ]


def _broken(parts: Sequence[PartItems]) -> Iterator[Finding]:
    groups: list[list[Place]] = []
    for entry in parts:
        name = entry.part.name
        groups += [[Place(name, item.where, item.fault)] for item in entry.items if item.fault]
        groups += [[Place(name, fault.origin, fault.reason)] for fault in entry.part.faults]
    if groups:
        yield Finding(kind="broken", what="cannot be used", groups=groups)


def _copies(entries: Sequence[_ReadableItem]) -> tuple[set[tuple[int, int]], list[Finding]]:
    """Return the pairs of items with the same bytes or decoded content, and findings about them."""
    same_content = _grouped(entries, lambda item: item.content)
    same_meaning = [
        group
        for group in _grouped(entries, lambda item: item.meaning)
        if len({entries[index].item.content for index in group}) > 1
    ]
    findings = [
        *_duplicates(entries, same_content, "the same content"),
        *_duplicates(entries, same_meaning, "the same after decoding"),
    ]
    pairs = {
        (group[0], duplicate) for group in (*same_content, *same_meaning) for duplicate in group[1:]
    }
    return pairs, findings


def _look_alikes(
    entries: Sequence[_ReadableItem], copy_pairs: set[tuple[int, int]]
) -> list[Finding]:
    """Return findings about images that look alike but are not copies of each other."""
    rows = [index for index, entry in enumerate(entries) if entry.item.look is not None]
    if not rows:
        return []
    looks = np.stack([look for row in rows if (look := entries[row].item.look) is not None])
    sizes = [dict(entries[row].item.size) for row in rows]
    aspects = np.array([size["width"] / size["height"] for size in sizes])
    row_indices = np.array(rows, np.int64)
    similar = alike(looks, aspects)
    pairs, crowded = row_indices[similar.pairs], row_indices[similar.crowded]
    copy_groups = groups_of(np.array(sorted(copy_pairs), np.int64).reshape(-1, 2), len(entries))
    first = {index: group[0] for group in copy_groups for index in group}
    new_pairs = [
        (a, b) for a, b in pairs.tolist() if first.get(int(a), int(a)) != first.get(int(b), int(b))
    ]
    groups = groups_of(np.array(new_pairs, np.int64).reshape(-1, 2), len(entries))
    findings = _duplicates(entries, groups, "looks the same")
    if len(crowded):
        message = (
            f"more than {MAX_NEIGHBOURS} others may look the same; only the nearest were compared"
        )
        crowd_places = [[entries[index].place] for index in crowded.tolist()]
        findings.append(Finding(kind="look-alike", what=message, groups=crowd_places))
    return findings


def _duplicates(
    entries: Sequence[_ReadableItem], groups: Sequence[Sequence[int]], similarity: str
) -> list[Finding]:
    """Return findings about groups within a part, across parts, and with different labels."""
    within_parts: list[list[Place]] = []
    across_parts: list[list[Place]] = []
    conflicts: list[list[Place]] = []
    for group in groups:
        places = [entries[index].place for index in group]
        (across_parts if len({place.part for place in places}) > 1 else within_parts).append(places)
        if len({place.detail for place in places}) > 1:
            conflicts.append(places)
    alike_only = similarity == "looks the same"
    kinds = (
        ("leak", f"{similarity} in training and in evaluation", across_parts),
        ("look-alike" if alike_only else "duplicate", similarity, within_parts),
        ("label conflict", f"{similarity}, with different labels", conflicts),
    )
    return [
        Finding(kind=kind, what=message, groups=places) for kind, message, places in kinds if places
    ]


def _grouped(entries: Sequence[_ReadableItem], key: Callable[[Item], bytes]) -> list[list[int]]:
    groups: defaultdict[bytes, list[int]] = defaultdict(list)
    for index, entry in enumerate(entries):
        if key(entry.item):
            groups[key(entry.item)].append(index)
    return [group for group in groups.values() if len(group) > 1]


def _odd_sizes(entries: Sequence[_ReadableItem]) -> Iterator[Finding]:
    sizes: defaultdict[str, list[tuple[float, _ReadableItem]]] = defaultdict(list)
    for entry in entries:
        for name, value in entry.item.size:
            sizes[name].append((value, entry))
        size = dict(entry.item.size)
        if size.get("height"):
            sizes["width by height"].append((size["width"] / size["height"], entry))
    for name, values in sizes.items():
        low, high, middle = _normal_range([value for value, _ in values])
        odd_places = [
            [Place(entry.part, entry.item.where, f"{value:.4g}")]
            for value, entry in values
            if not low <= value <= high
        ]
        if odd_places:
            message = f"{name} outside {low:.3g} to {high:.3g}, around a median of {middle:.4g}"
            yield Finding(kind="odd size", what=message, groups=odd_places)


def _normal_range(values: Sequence[float]) -> tuple[float, float, float]:
    """Return the bounds of sizes that are not odd, and the median.

    On a logarithmic scale, the range extends by `FAR_FROM_MEDIAN` to both sides of the median, and
    further if sizes vary widely, as lengths of texts do.
    """
    logs = np.log(np.maximum(values, 1e-9))
    middle = float(np.median(logs))
    deviation = float(np.median(np.abs(logs - middle)))
    reach = max(float(np.log(FAR_FROM_MEDIAN)), MAX_DEVIATIONS * deviation)
    low, high, median = np.exp([middle - reach, middle + reach, middle]).tolist()
    return low, high, median


def _odd_kinds(entries: Sequence[_ReadableItem]) -> Iterator[Finding]:
    counts = Counter(trait for entry in entries for trait in entry.item.traits)
    for trait, count in counts.items():
        if count <= len(entries) / 2:
            places = [
                [Place(entry.part, entry.item.where)]
                for entry in entries
                if trait in entry.item.traits
            ]
            message = f"{trait}: {count} of {counted(len(entries), 'item')}"
            yield Finding(kind="odd kind", what=message, groups=places)


def _classes(parts: Sequence[PartItems]) -> Iterator[Finding]:
    counts: dict[str, Mapping[str, int]] = {}
    for entry in parts:
        item_counts = Counter(name for item in entry.items for name in item.classes)
        counts[entry.part.name] = {**dict.fromkeys(entry.part.classes, 0), **item_counts}
    used = {name for items in counts.values() for name, count in items.items() if count}
    empty_classes = [
        [Place(part, name, "no item")]
        for part, class_counts in counts.items()
        for name in sorted(class_counts.keys() - used)
    ]
    if empty_classes:
        yield Finding(kind="class", what="without any item", groups=empty_classes)
    missing_classes = [
        [Place(part, name, "no item")]
        for part, class_counts in counts.items()
        for name in sorted(used)
        if not class_counts.get(name)
    ]
    if missing_classes:
        yield Finding(kind="class", what="missing on one side", groups=missing_classes)
    for part, class_counts in counts.items():
        nonzero_counts = [count for count in class_counts.values() if count]
        if not nonzero_counts:
            continue
        minimum = max(MIN_SAMPLES, FEW_SAMPLES * float(np.median(nonzero_counts)))
        rare_classes = [
            [Place(part, name, counted(count, "item"))]
            for name, count in sorted(class_counts.items())
            if 0 < count < minimum
        ]
        if rare_classes:
            message = f"fewer than {minimum:g} items in {part}"
            yield Finding(kind="class", what=message, groups=rare_classes)
