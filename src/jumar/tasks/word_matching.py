"""Which words that were found are right: challenge 4 of ICDAR 2015, for one picture at a time."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from jumar.data.polygons.kernel_words import Detection
from jumar.data.polygons.overlaps import areas, as_polygons, overlap_areas
from jumar.data.polygons.regions import Region

LEAST_OVERLAP = 0.5
"""What a right word exceeds: intersection over union, and for ignored words the intersection's
share of the word found."""


class WordCounts(NamedTuple):
    """The counts of a picture.

    Attributes:
        right: Words found that match one of the labels.
        found: Words found, without those on ignored words.
        words: Words of the labels, without ignored ones.
    """

    right: int
    found: int
    words: int


def match_words(words: Sequence[Detection], regions: Sequence[Region]) -> WordCounts:
    """Match words found with labelled ones.

    The words of the labels are gone through in order, and of the words found the first that
    overlaps enough and matches no other is taken.
    """
    found = as_polygons([word.corners for word in words])
    sizes = areas(found)
    counts = np.ones(len(words), bool)
    for region in (each for each in regions if each.ignored):
        ignored = as_polygons([region.corners])[0]
        counts &= overlap_areas(found, ignored) <= LEAST_OVERLAP * sizes
    wanted = [region for region in regions if not region.ignored]
    free = counts.copy()
    for region in wanted:
        label = as_polygons([region.corners])
        common = overlap_areas(found, label[0])
        matches = np.flatnonzero(free & (common > LEAST_OVERLAP * (sizes + areas(label) - common)))
        free[matches[:1]] = False
    return WordCounts(
        right=int(counts.sum() - free.sum()), found=int(counts.sum()), words=len(wanted)
    )
