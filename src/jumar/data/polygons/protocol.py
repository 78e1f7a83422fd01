"""Detection scores: ICDAR 2015's protocol, extended to outlines of any shape.

A detection of which more than half lies within one ignored region (`###`) does not count. Pairs of
a word and a detection are visited by word and then by detection; the first with an IoU above one
half match. Precision, recall and H-mean use sums over all images.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from jumar.data.polygons.overlaps import areas, as_polygons, overlap_areas, touching_pairs
from jumar.data.polygons.regions import Corners, Region

OVERLAP = 0.5
"""The intersection over union that a pair must exceed."""

_IGNORED_SHARE = 0.5
_COVERED_SHARE = 0.5


class Scores(NamedTuple):
    """The scores of a set of images, each 0 to 1."""

    precision: float
    recall: float
    hmean: float


class Intervals(NamedTuple):
    """Lower and upper end of each score."""

    precision: tuple[float, float]
    recall: tuple[float, float]
    hmean: tuple[float, float]


@dataclass(frozen=True, kw_only=True)
class PictureScore:
    """The matches in one image; words and detections are given by position.

    Attributes:
        matched: Pairs of word and detection.
        missed: Words that count and have no detection.
        false: Detections that count and have no word.
        merged: Of these, detections that cover more than half of several words, with the words.
        split: Missed words of which several detections cover a part each, with the detections.
        ignored: Detections that do not count.
    """

    matched: Sequence[tuple[int, int]]
    missed: Sequence[int]
    false: Sequence[int]
    merged: Sequence[tuple[int, Sequence[int]]]
    split: Sequence[tuple[int, Sequence[int]]]
    ignored: Sequence[int]

    @property
    def counts(self) -> NDArray[np.int64]:
        """Matches, counted detections and counted words [3], to be summed over images."""
        matched = len(self.matched)
        return np.array([matched, matched + len(self.false), matched + len(self.missed)], np.int64)


def picture_score(words: Sequence[Region], detections: Sequence[Corners]) -> PictureScore:
    """The detections of an image matched with its words.

    Args:
        words: The labelled words, including ignored ones.
        detections: Outlines in the same pixels.
    """
    truth = as_polygons([word.corners for word in words])
    detected = as_polygons(detections)
    truth_areas, found_areas = areas(truth), areas(detected)
    word_indices, detection_indices = touching_pairs(truth, detected)
    intersections = overlap_areas(truth[word_indices], detected[detection_indices])
    is_ignored_word = np.array([word.ignored for word in words], bool)
    with np.errstate(invalid="ignore", divide="ignore"):
        within = intersections / found_areas[detection_indices]
        covered = intersections / truth_areas[word_indices]
        union = truth_areas[word_indices] + found_areas[detection_indices] - intersections
        pairs = intersections / union > OVERLAP
    is_ignored = np.zeros(len(detected), bool)
    is_ignored[detection_indices[is_ignored_word[word_indices] & (within > _IGNORED_SHARE)]] = True
    counts = ~is_ignored_word[word_indices] & ~is_ignored[detection_indices]
    matched: dict[int, int] = {}
    matched_detections: set[int] = set()
    for word, detection in _pairs(word_indices, detection_indices, pairs & counts):
        if word not in matched and detection not in matched_detections:
            matched[word] = detection
            matched_detections.add(detection)
    missed = [word for word in np.flatnonzero(~is_ignored_word).tolist() if word not in matched]
    false = [
        detection
        for detection in np.flatnonzero(~is_ignored).tolist()
        if detection not in matched_detections
    ]
    merged = _several(detection_indices, word_indices, counts & (covered > _COVERED_SHARE), false)
    split = _several(word_indices, detection_indices, counts & (within > _COVERED_SHARE), missed)
    return PictureScore(
        matched=sorted(matched.items()),
        missed=missed,
        false=false,
        merged=merged,
        split=split,
        ignored=np.flatnonzero(is_ignored).tolist(),
    )


def scores_of(counts: NDArray[np.int64]) -> Scores:
    """Precision, recall and H-mean of summed counts (`PictureScore.counts`)."""
    matched, detections, words = np.asarray(counts, np.float64)
    precision, recall, hmean = _ratios(matched, detections, words)
    return Scores(float(precision), float(recall), float(hmean))


def intervals_of(
    counts: NDArray[np.int64], *, share: float = 0.95, rounds: int = 2000, seed: int = 0
) -> Intervals:
    """Bootstrap intervals of the scores: images are resampled with replacement.

    Args:
        counts: Those of each image [pictures, 3].
        share: Fraction of rounds within an interval.
        rounds: Number of resamples.
        seed: Seed of the draws.
    """
    pictures = len(counts)
    random = np.random.default_rng(seed)
    resamples = random.multinomial(pictures, np.full(pictures, 1 / pictures), size=rounds)
    sums = (resamples @ counts).astype(np.float64).T
    tails = [(1 - share) / 2, (1 + share) / 2]
    low_and_high = [
        (float(low), float(high))
        for low, high in (np.quantile(values, tails) for values in _ratios(*sums))
    ]
    return Intervals(*low_and_high)


def _ratios(
    matched: NDArray[np.float64], detections: NDArray[np.float64], words: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """As in the official script: 0 when dividing by zero."""
    precision = matched / np.maximum(detections, 1)
    recall = matched / np.maximum(words, 1)
    total = precision + recall
    return precision, recall, 2 * precision * recall / np.where(total > 0, total, 1)


def _pairs(
    first: NDArray[np.int64], second: NDArray[np.int64], mask: NDArray[np.bool_]
) -> list[tuple[int, int]]:
    return list(zip(first[mask].tolist(), second[mask].tolist(), strict=True))


def _several(
    items: NDArray[np.int64],
    partner_items: NDArray[np.int64],
    mask: NDArray[np.bool_],
    included: Sequence[int],
) -> list[tuple[int, Sequence[int]]]:
    """Items paired with at least two others, with these others."""
    partners: dict[int, list[int]] = {item: [] for item in included}
    for item, partner in _pairs(items, partner_items, mask):
        if item in partners:
            partners[item].append(partner)
    return [
        (item, sorted(item_partners))
        for item, item_partners in partners.items()
        if len(item_partners) > 1
    ]
