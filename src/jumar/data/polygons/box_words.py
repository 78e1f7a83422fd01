"""Converts EAST's maps to words: merges boxes of pixels, and keeps the best of overlapping ones."""

import numpy as np
from numpy.typing import NDArray

from jumar.data.polygons.drawing import fill
from jumar.data.polygons.kernel_words import Detection
from jumar.data.polygons.overlaps import areas, as_polygons, overlap_areas

Boxes = NDArray[np.float64]
"""Corners [boxes, 4, 2], clockwise from the corner that is the upper left one before rotation."""

_MAX_ITERATIONS = 24
"""Maximum number of iterations of parallel merging, after which boxes are merged one by one."""


def words_of_boxes(
    score: NDArray[np.float32],
    geometry: NDArray[np.float32],
    *,
    stride: int = 4,
    threshold: float = 0.8,
    overlap: float = 0.2,
    least_score: float = 0.1,
) -> list[Detection]:
    """Return the words in the maps of an image.

    Args:
        score: Score map, 0 to 1, [rows, columns].
        geometry: Distances to the upper, right, lower, left edge, and the angle, [5, rows,
            columns].
        stride: Image pixels per map pixel.
        threshold: Only pixels with a higher score have boxes.
        overlap: Minimum intersection over union of boxes that belong to the same word.
        least_score: Minimum mean score of the pixels in a word's box.

    Returns:
        Words in pixels of the image, with their mean score, the largest sum of scores first.
    """
    boxes, scores = decoded(score, geometry, stride=stride, threshold=threshold)
    boxes, scores = merged(boxes, scores, overlap)
    boxes = boxes[best(boxes, scores, overlap)]
    means = mean_scores(boxes / stride, score)
    return [
        Detection(corners=box, score=float(mean))
        for box, mean in zip(boxes, means, strict=True)
        if mean > least_score
    ]


def decoded(
    score: NDArray[np.float32],
    geometry: NDArray[np.float32],
    *,
    stride: int = 4,
    threshold: float = 0.8,
) -> tuple[Boxes, NDArray[np.float64]]:
    """Return box and score of each pixel above a threshold, row by row, if its box is finite."""
    rows, columns = np.nonzero((score > threshold) & np.isfinite(geometry).all(axis=0))
    return (
        boxes_at(columns * stride, rows * stride, geometry[:, rows, columns].astype(np.float64)),
        score[rows, columns].astype(np.float64),
    )


def boxes_at(x: NDArray[np.int64], y: NDArray[np.int64], geometry: NDArray[np.float64]) -> Boxes:
    """Return the boxes of pixels from their distances and angles [5, pixels]."""
    top, right, bottom, left, angle = geometry
    cosine, sine = np.cos(angle), np.sin(angle)
    corners = [(-left, -top), (right, -top), (right, bottom), (-left, bottom)]
    return np.stack(
        [
            np.stack([x + cosine * along + sine * across, y - sine * along + cosine * across], -1)
            for along, across in corners
        ],
        axis=1,
    )


def merged(
    boxes: Boxes, scores: NDArray[np.float64], overlap: float
) -> tuple[Boxes, NDArray[np.float64]]:
    """Merge boxes of neighbouring pixels, weighted by score (locality-aware merging).

    Each box is compared with the mean of the run before it, and starts a new run unless they
    overlap, so each comparison depends on all earlier boxes. Here, runs are first guessed from
    neighbouring boxes, then means are computed from sums, and all comparisons are repeated until
    none changes; the result is then the same as from merging box by box.

    Returns:
        One box for each run, with the sum of its scores.
    """
    if not len(boxes):
        return boxes, scores
    means, starts = boxes, np.ones(len(boxes), bool)
    for _ in range(_MAX_ITERATIONS):
        previous_starts = starts
        starts = np.append(True, ~_overlap_more(means[:-1], boxes[1:], overlap))
        if (starts == previous_starts).all():
            firsts = np.flatnonzero(starts)
            ends = np.append(firsts[1:], len(boxes)) - 1
            return means[ends], np.add.reduceat(scores, firsts)
        means = _running_means(boxes, scores, starts)
    return merged_one_by_one(boxes, scores, overlap)


def merged_one_by_one(
    boxes: Boxes, scores: NDArray[np.float64], overlap: float
) -> tuple[Boxes, NDArray[np.float64]]:
    """Return the result of `merged`, computed box by box."""
    means: list[Boxes] = []
    sums: list[float] = []
    for box, score in zip(boxes, scores.tolist(), strict=True):
        if means and _overlap_more(means[-1][None], box[None], overlap)[0]:
            weight = sums[-1] + score
            means[-1] = (means[-1] * sums[-1] + box * score) / weight
            sums[-1] = weight
        else:
            means.append(box)
            sums.append(score)
    return np.array(means), np.array(sums)


def best(boxes: Boxes, scores: NDArray[np.float64], overlap: float) -> NDArray[np.int64]:
    """Return the boxes that overlap no better one (non-maximum suppression), the best first."""
    if not len(boxes):
        return np.zeros(0, np.int64)
    import shapely

    order = np.argsort(-scores, kind="stable")
    polygons = as_polygons(boxes[order])
    sizes = areas(polygons)
    tree = shapely.STRtree(polygons)
    is_left = np.ones(len(order), bool)
    kept_positions: list[int] = []
    # Compared only with kept boxes: all pairs of an untrained network's boxes would fill memory.
    while (position := int(is_left.argmax())) or is_left[0]:
        kept_positions.append(position)
        near = np.asarray(tree.query(polygons[position]), np.int64)
        near = near[is_left[near]]
        shared = overlap_areas(polygons[near], polygons[position])
        is_left[near[shared > overlap * (sizes[near] + sizes[position] - shared)]] = False
        is_left[position] = False
    return order[kept_positions]


def mean_scores(boxes: Boxes, score: NDArray[np.float32]) -> NDArray[np.float64]:
    """Return the mean score of the pixels in each box, in pixels of the map; 0 outside the map."""
    rows, columns = score.shape
    means = np.zeros(len(boxes))
    for index, box in enumerate(boxes.astype(np.int32)):
        left, top = np.maximum(box.min(axis=0), 0).tolist()
        right, bottom = np.minimum(box.max(axis=0) + 1, (columns, rows)).tolist()
        if right <= left or bottom <= top:
            continue
        mask = np.zeros((bottom - top, right - left), np.uint8)
        fill(mask, box - (left, top), 1)
        scores = score[top:bottom, left:right][mask > 0]
        means[index] = scores.mean(dtype=np.float64) if len(scores) else 0.0
    return means


def _running_means(boxes: Boxes, scores: NDArray[np.float64], starts: NDArray[np.bool_]) -> Boxes:
    """Return the weighted mean of each box and those before it in its run."""
    firsts = np.flatnonzero(starts)
    run = np.cumsum(starts) - 1
    # Sums restart at each run, with corners relative to its first box, to keep values small.
    corners = boxes - boxes[firsts][run]
    weighted = np.cumsum(corners * scores[:, None, None], axis=0)
    weights = np.cumsum(scores)
    weighted -= (weighted[firsts] - corners[firsts] * scores[firsts, None, None])[run]
    weights -= (weights[firsts] - scores[firsts])[run]
    return weighted / weights[:, None, None] + boxes[firsts][run]


def _overlap_more(first: Boxes, second: Boxes, overlap: float) -> NDArray[np.bool_]:
    """Return whether the intersection over union of each pair is above a limit.

    For most pairs, bounds from rectangles along the second box, inside and around both boxes, are
    sufficient; GEOS computes the others.
    """
    along = second[:, 1] - second[:, 0] + second[:, 2] - second[:, 3]
    along /= np.maximum(np.hypot(along[:, 0], along[:, 1]), 1e-12)[:, None]
    spans: list[list[NDArray[np.float64]]] = []
    sizes = np.zeros(len(first))
    for boxes in (first, second):
        x = [(boxes[:, corner] * along).sum(axis=1) for corner in range(4)]
        y = [
            boxes[:, corner, 1] * along[:, 0] - boxes[:, corner, 0] * along[:, 1]
            for corner in range(4)
        ]
        # Left, right, top and bottom of the inner rectangle, then of the outer one.
        spans.append(
            [
                *(np.maximum(x[0], x[3]), np.minimum(x[1], x[2])),
                *(np.maximum(y[0], y[1]), np.minimum(y[2], y[3])),
                *(np.minimum.reduce(x), np.maximum.reduce(x)),
                *(np.minimum.reduce(y), np.maximum.reduce(y)),
            ]
        )
        sizes += np.abs((x[2] - x[0]) * (y[3] - y[1]) - (y[2] - y[0]) * (x[3] - x[1])) / 2
    first_spans, second_spans = spans
    sides = [
        np.maximum(
            np.minimum(first_spans[end], second_spans[end])
            - np.maximum(first_spans[end - 1], second_spans[end - 1]),
            0,
        )
        for end in (1, 3, 5, 7)
    ]
    lower_bound, upper_bound = sides[0] * sides[1], sides[2] * sides[3]
    is_above = lower_bound > overlap * (sizes - lower_bound)
    undecided = np.flatnonzero(~is_above & (upper_bound > overlap * (sizes - upper_bound)))
    if len(undecided):
        polygons = as_polygons(first[undecided]), as_polygons(second[undecided])
        intersections = overlap_areas(*polygons)
        is_above[undecided] = intersections > overlap * (sum(map(areas, polygons)) - intersections)
    return is_above
