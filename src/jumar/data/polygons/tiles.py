"""Splits large images into overlapping tiles, and merges the words of the tiles."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from jumar.data.pixels.crop_window import Window
from jumar.data.polygons.drawing import smallest_rectangles
from jumar.data.polygons.kernel_words import Detection
from jumar.data.polygons.overlaps import areas, as_polygons, overlap_areas, touching_pairs

OVERLAP = 0.25
"""Overlap of adjacent tiles, as a fraction of the side; words up to this size fit into one tile."""

_EDGE = 6.0
"""Distance from an edge, in pixels, within which a word may be cut: maps have one pixel for every
four image pixels."""
_SAME = 0.5
"""Overlap, as a fraction of the smaller outline, above which two outlines are the same word."""
_JOINED = 0.1
"""Overlap, as a fraction of the smaller outline, above which two cut outlines are parts of the same
word."""


def tiles_of(height: int, width: int, side: int) -> list[Window]:
    """Return tiles that cover an image, row by row; the whole image if it is not larger than one.

    Args:
        height: Height of the image.
        width: Width of the image.
        side: Side of a tile.
    """
    return [
        Window(top, left, min(side, height), min(side, width))
        for top in _starts(height, side)
        for left in _starts(width, side)
    ]


def _starts(length: int, side: int) -> list[int]:
    """Return where tiles start along an axis; the last one ends at the edge."""
    if length <= side:
        return [0]
    count = int(np.ceil((length - side) / (side * (1 - OVERLAP)))) + 1
    return np.linspace(0, length - side, count).round().astype(int).tolist()


def seamless(
    words_of_tiles: Sequence[tuple[Window, Sequence[Detection]]], size: tuple[int, int]
) -> list[Detection]:
    """Merge the words of tiles to the words of an image.

    For a word cut by an edge, the outline of the tile that contains all of it is used. If there is
    no such tile, it becomes the smallest rectangle around its parts.

    Args:
        words_of_tiles: Each tile with its words, in pixels of the tile.
        size: Height and width of the image.

    Returns:
        Words in pixels of the image, those not cut by an edge first.
    """
    words: list[Detection] = []
    cut_flags: list[bool] = []
    for window, detections in words_of_tiles:
        for word in detections:
            cut_flags.append(_is_cut(word, window, size))
            corner = np.array([window.left, window.top])
            words.append(replace(word, corners=word.corners + corner))
    whole_words = [word for word, is_cut in zip(words, cut_flags, strict=True) if not is_cut]
    parts = [word for word, is_cut in zip(words, cut_flags, strict=True) if is_cut]
    largest_words = _largest(whole_words)
    return [*largest_words, *_largest(_united(_uncovered(parts, largest_words)))]


def _is_cut(word: Detection, window: Window, size: tuple[int, int]) -> bool:
    """Return whether a word reaches an edge of its tile that is not an edge of the image."""
    low, high = word.corners.min(axis=0), word.corners.max(axis=0)
    return bool(
        (window.left > 0 and low[0] < _EDGE)
        or (window.top > 0 and low[1] < _EDGE)
        or (window.left + window.width < size[1] and high[0] > window.width - _EDGE)
        or (window.top + window.height < size[0] and high[1] > window.height - _EDGE)
    )


def _largest(words: Sequence[Detection]) -> list[Detection]:
    """Return the largest of mutually overlapping words, in their order."""
    firsts, seconds, overlaps = _overlapping_pairs(words, words)
    sizes = areas(as_polygons([word.corners for word in words]))
    is_dropped = np.zeros(len(words), bool)
    is_same = (overlaps > _SAME) & (firsts != seconds)
    for first, second in zip(firsts[is_same].tolist(), seconds[is_same].tolist(), strict=True):
        if (sizes[first], -first) < (sizes[second], -second):
            is_dropped[first] = True
    return [word for word, dropped in zip(words, is_dropped, strict=True) if not dropped]


def _uncovered(parts: Sequence[Detection], whole_words: Sequence[Detection]) -> list[Detection]:
    """Return the parts of words that are not covered by whole words."""
    part_indices, _, overlaps = _overlapping_pairs(parts, whole_words)
    covered_parts = set(part_indices[overlaps > _SAME].tolist())
    return [part for index, part in enumerate(parts) if index not in covered_parts]


def _united(parts: Sequence[Detection]) -> list[Detection]:
    """Merge overlapping parts into words, with the mean of their scores."""
    firsts, seconds, overlaps = _overlapping_pairs(parts, parts)
    leader = list(range(len(parts)))

    def first_of(index: int) -> int:
        while leader[index] != index:
            index = leader[index]
        return index

    is_joined = overlaps > _JOINED
    for first, second in zip(firsts[is_joined].tolist(), seconds[is_joined].tolist(), strict=True):
        low, high = sorted((first_of(first), first_of(second)))
        leader[high] = low
    groups: dict[int, list[Detection]] = {}
    for index, part in enumerate(parts):
        groups.setdefault(first_of(index), []).append(part)
    return [group[0] if len(group) == 1 else _around(group) for group in groups.values()]


def _around(parts: Sequence[Detection]) -> Detection:
    points = np.concatenate([part.corners for part in parts])
    return Detection(
        corners=smallest_rectangles([points])[0],
        score=float(np.mean([part.score for part in parts])),
    )


def _overlapping_pairs(
    first: Sequence[Detection], second: Sequence[Detection]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
    """Return pairs of indices, and their overlap as a fraction of the smaller outline."""
    first_polygons, second_polygons = (
        as_polygons([word.corners for word in words]) for words in (first, second)
    )
    firsts, seconds = touching_pairs(first_polygons, second_polygons)
    smaller_areas = np.minimum(areas(first_polygons)[firsts], areas(second_polygons)[seconds])
    return (
        firsts,
        seconds,
        overlap_areas(first_polygons[firsts], second_polygons[seconds])
        / np.maximum(smaller_areas, 1e-9),
    )
