"""DetEval, which scores Total-Text's curved words: split and merged ones count less.

A word and a detection belong together if the detection covers more than 0.7 of the word and more
than 0.6 of it lies within the word. A word of several detections, or a detection of several words,
counts 0.8. The rules and their order are those of Total-Text's evaluation, including that a pair is
searched for by the two fractions separately.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from jumar.data.polygons.overlaps import areas, as_polygons, overlap_areas, touching_pairs
from jumar.data.polygons.protocol import Scores
from jumar.data.polygons.regions import Corners, Region

COVERED = 0.7
"""The part of a word that must be covered."""
WITHIN = 0.6
"""The part of a detection that must lie within the word."""
SHARED = 0.8
"""Weight of a split or merged match."""

_IGNORED_SHARE = 0.5


def deteval_counts(words: Sequence[Region], detections: Sequence[Corners]) -> NDArray[np.float64]:
    """Counts to be summed over images: recalled, words, precise, detections [4].

    Args:
        words: The labelled words, including ignored ones.
        detections: Outlines in the same pixels.
    """
    truth = as_polygons([word.corners for word in words])
    detected = as_polygons(detections)
    covered = np.zeros((len(truth), len(detected)))
    within = np.zeros_like(covered)
    word_indices, detection_indices = touching_pairs(truth, detected)
    intersections = overlap_areas(truth[word_indices], detected[detection_indices])
    with np.errstate(invalid="ignore", divide="ignore"):
        covered[word_indices, detection_indices] = np.nan_to_num(
            intersections / areas(truth)[word_indices]
        )
        within[word_indices, detection_indices] = np.nan_to_num(
            intersections / areas(detected)[detection_indices]
        )
    ignored = np.array([word.ignored for word in words], bool)
    counts = ~(within[ignored] > _IGNORED_SHARE).any(axis=0)
    covered, within = covered[~ignored][:, counts], within[~ignored][:, counts]
    recalled, precise = _matched(covered, within)
    return np.array([recalled, covered.shape[0], precise, covered.shape[1]])


def deteval_scores(counts: NDArray[np.float64]) -> Scores:
    """Precision, recall and H-mean of summed counts."""
    recalled, words, precise, detections = counts.tolist()
    recall, precision = recalled / max(words, 1), precise / max(detections, 1)
    total = precision + recall
    return Scores(precision, recall, 2 * precision * recall / total if total else 0.0)


def _matched(covered: NDArray[np.float64], within: NDArray[np.float64]) -> tuple[float, float]:
    words, detections = covered.shape
    word_left, detection_left = np.ones(words, bool), np.ones(detections, bool)
    recalled = precise = 0.0
    for word in range(words):
        candidates = np.flatnonzero(covered[word] > COVERED)
        if len(candidates) == 1 and (within[word] > WITHIN).sum() == 1:
            word_left[word] = detection_left[candidates] = False
            recalled, precise = recalled + 1, precise + 1
    for word in np.flatnonzero(word_left).tolist():
        if (covered[word] > 0).sum() < 2:
            continue
        parts = np.flatnonzero((within[word] >= WITHIN) & detection_left)
        if covered[word, parts].sum() >= COVERED:
            several = len(parts) > 1
            word_left[word] = detection_left[parts] = False
            recalled += SHARED if several else 1
            precise += SHARED * len(parts) if several else 1
    for detection in np.flatnonzero(detection_left).tolist():
        if (within[:, detection] > 0).sum() < 2:
            continue
        parts = np.flatnonzero((covered[:, detection] >= WITHIN) & word_left)
        alone = len(parts) == 1
        if within[parts, detection].sum() < WITHIN:
            continue
        if alone and covered[parts[0], detection] < COVERED:
            continue
        word_left[parts] = False
        recalled += 1 if alone else SHARED * len(parts)
        precise += 1 if alone else SHARED
    return recalled, precise
