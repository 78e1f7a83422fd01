"""Detection scores: ICDAR 2015's protocol, extended to outlines of any shape.

Every protocol counts the words and the detections of an image, and how many of each are right;
precision, recall and H-mean are ratios of the sums over all images. In ICDAR's, a detection is not
counted if more than half of it is within one ignored region (`###`). Pairs of a word and a
detection are visited in order of words, then detections; the first unmatched pair with an IoU
above one half is a match.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

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
    """Lower and upper bound of each score."""

    precision: tuple[float, float]
    recall: tuple[float, float]
    hmean: tuple[float, float]


@dataclass(frozen=True, kw_only=True)
class PictureScore:
    """The matches in one image; words and detections are identified by index.

    Attributes:
        matched: Matching pairs of a word and a detection.
        missed: Words without a detection, except ignored ones.
        false: Detections without a word, except ignored ones.
        merged: False detections that cover more than half of several words, with these words.
        split: Missed words of which several detections cover a part, with these detections.
        ignored: Detections that are not counted.
    """

    matched: Sequence[tuple[int, int]]
    missed: Sequence[int]
    false: Sequence[int]
    merged: Sequence[tuple[int, Sequence[int]]]
    split: Sequence[tuple[int, Sequence[int]]]
    ignored: Sequence[int]

    @property
    def counts(self) -> NDArray[np.int64]:
        """The counts of ICDAR's protocol; see `Protocol`."""
        matched = len(self.matched)
        words, detections = matched + len(self.missed), matched + len(self.false)
        return np.array([matched, words, matched, detections], np.int64)


@dataclass(frozen=True, kw_only=True)
class Protocol:
    """A way to count right words and detections.

    Attributes:
        title: Its name in words.
        counts: Returns right words, words, right detections, detections [4] of an image, to be
            summed over images. It takes the labelled words, including ignored ones, the outlines
            of the detections, and ICDAR's matches of both, which lists of errors need anyway.
    """

    title: str
    counts: Callable[[Sequence[Region], Sequence[Corners], PictureScore], NDArray[Any]]


ICDAR2015 = Protocol(
    title="ICDAR 2015's protocol", counts=lambda _words, _detections, score: score.counts
)


def picture_score(words: Sequence[Region], detections: Sequence[Corners]) -> PictureScore:
    """Match the detections of an image with its words.

    Args:
        words: The labelled words, including ignored ones.
        detections: Outlines in the same coordinates.
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
    merged = _with_several_partners(
        detection_indices, word_indices, counts & (covered > _COVERED_SHARE), false
    )
    split = _with_several_partners(
        word_indices, detection_indices, counts & (within > _COVERED_SHARE), missed
    )
    return PictureScore(
        matched=sorted(matched.items()),
        missed=missed,
        false=false,
        merged=merged,
        split=split,
        ignored=np.flatnonzero(is_ignored).tolist(),
    )


def scores_of(counts: NDArray[Any]) -> Scores:
    """Return precision, recall and H-mean of summed counts; see `Protocol`."""
    precision, recall, hmean = _ratios(np.asarray(counts, np.float64))
    return Scores(float(precision), float(recall), float(hmean))


def intervals_of(
    counts: NDArray[Any], *, share: float = 0.95, rounds: int = 2000, seed: int = 0
) -> Intervals:
    """Return bootstrap intervals of the scores, for images resampled with replacement.

    Args:
        counts: Counts of each image [images, 4]; see `Protocol`.
        share: Fraction of resamples within an interval.
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
        for low, high in (np.quantile(values, tails) for values in _ratios(sums))
    ]
    return Intervals(*low_and_high)


def _ratios(
    sums: NDArray[np.float64],
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Return precision, recall and H-mean; as in the official script, 0 when dividing by zero.

    Args:
        sums: Summed counts [4, ...]; see `Protocol`.
    """
    right_words, words, right_detections, detections = sums
    precision = right_detections / np.maximum(detections, 1)
    recall = right_words / np.maximum(words, 1)
    total = precision + recall
    return precision, recall, 2 * precision * recall / np.where(total > 0, total, 1)


def _pairs(
    first: NDArray[np.int64], second: NDArray[np.int64], mask: NDArray[np.bool_]
) -> list[tuple[int, int]]:
    return list(zip(first[mask].tolist(), second[mask].tolist(), strict=True))


def _with_several_partners(
    items: NDArray[np.int64],
    partner_items: NDArray[np.int64],
    mask: NDArray[np.bool_],
    included: Sequence[int],
) -> list[tuple[int, Sequence[int]]]:
    """Return the items that are paired with at least two others, with these others."""
    partners: dict[int, list[int]] = {item: [] for item in included}
    for item, partner in _pairs(items, partner_items, mask):
        if item in partners:
            partners[item].append(partner)
    return [
        (item, sorted(item_partners))
        for item, item_partners in partners.items()
        if len(item_partners) > 1
    ]
