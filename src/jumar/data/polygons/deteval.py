"""DetEval, the score for Total-Text's curved words, in which split and merged words count less.

A word and a detection match if the detection covers more than 0.7 of the word and more than 0.6 of
the detection is within the word. A word of several detections, or a detection of several words,
counts 0.8. Rules and their order are those of Total-Text's evaluation, including that a pair is
searched for by each fraction separately.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from jumar.data.polygons.overlaps import areas, as_polygons, overlap_areas, touching_pairs
from jumar.data.polygons.protocol import Protocol
from jumar.data.polygons.regions import Corners, Region

COVERED = 0.7
"""Minimum fraction of a word that must be covered."""
WITHIN = 0.6
"""Minimum fraction of a detection that must be within the word."""
SHARED = 0.8
"""Weight of a split or merged match."""

_IGNORED_SHARE = 0.5


def deteval_counts(words: Sequence[Region], detections: Sequence[Corners]) -> NDArray[np.float64]:
    """Return the counts of an image; see `Protocol`. Split and merged ones count 0.8 each.

    Args:
        words: The labelled words, including ignored ones.
        detections: Outlines in the same coordinates.
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


TOTAL_TEXT = Protocol(
    title="Total-Text's protocol",
    counts=lambda words, detections, _score: deteval_counts(words, detections),
)


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
            is_split = len(parts) > 1
            word_left[word] = detection_left[parts] = False
            recalled += SHARED if is_split else 1
            precise += SHARED * len(parts) if is_split else 1
    for detection in np.flatnonzero(detection_left).tolist():
        if (within[:, detection] > 0).sum() < 2:
            continue
        parts = np.flatnonzero((covered[:, detection] >= WITHIN) & word_left)
        is_single = len(parts) == 1
        if within[parts, detection].sum() < WITHIN:
            continue
        if is_single and covered[parts[0], detection] < COVERED:
            continue
        word_left[parts] = False
        recalled += 1 if is_single else SHARED * len(parts)
        precise += 1 if is_single else SHARED
    return recalled, precise
