"""From a detector's maps to words, beside the plain loops that the originals have, as ratios.

    python benchmarks/detection_boxes.py

The maps are those of 200 written words in a picture of 736 x 1280, at every 4th pixel and at all of
them, and EAST's of enough words for 10,000 boxes. Peers: a queue of pixels, as in PSENet's C++
and Python; merging box by box with shapely. The clock is the CPU time of one thread, the best of
several rounds.
"""

import time
from collections import deque
from collections.abc import Callable
from typing import Any

import cv2
import numpy as np
import shapely
from numpy.typing import NDArray

from jumar.data.polygons.box_words import best, decoded, merged
from jumar.data.polygons.drawing import components
from jumar.data.polygons.expansion import expanded
from jumar.data.polygons.kernel_words import words_of_kernels
from jumar.data.polygons.kernels import kernel_maps
from jumar.data.polygons.regions import Region
from jumar.data.polygons.score_maps import score_maps

SIZE = (736, 1280)


def words(count: int) -> list[Region]:
    """Slanted words on a grid, so that few of them touch."""
    random = np.random.default_rng(0)
    columns = 10
    rows = -(-count // columns)
    regions: list[Region] = []
    for number in range(count):
        middle = (
            (number % columns + 0.5) * SIZE[1] / columns,
            (number // columns + 0.5) * SIZE[0] / rows,
        )
        angle = random.uniform(-0.15, 0.15)
        half = np.array([random.uniform(38, 56), random.uniform(9, 13)])
        turn = np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]])
        corners = np.array([[-1, -1], [1, -1], [1, 1], [-1, 1]]) * half @ turn + middle
        regions.append(Region(corners=corners))
    return regions


def seconds(run: Callable[[], Any], rounds: int) -> float:
    """CPU seconds of the best round, after one of warm-up."""
    times: list[float] = []
    for _ in range(rounds + 1):
        start = time.process_time()
        run()
        times.append(time.process_time() - start)
    return min(times[1:])


def queued(kernels: NDArray[np.bool_]) -> NDArray[np.int32]:
    """Progressive expansion from a queue of pixels."""
    _, labels, areas = components(np.ascontiguousarray(kernels[0]).view(np.uint8))
    labels = labels.copy()
    labels[(areas < 10)[labels]] = 0
    rows, columns = labels.shape
    queue = deque((y, x) for y, x in np.argwhere(labels).tolist())
    for kernel in kernels[1:]:
        later: deque[tuple[int, int]] = deque()
        while queue:
            y, x = queue.popleft()
            grew = False
            for b, a in ((y, x - 1), (y, x + 1), (y - 1, x), (y + 1, x)):
                if 0 <= b < rows and 0 <= a < columns and kernel[b, a] and not labels[b, a]:
                    labels[b, a] = labels[y, x]
                    queue.append((b, a))
                    grew = True
            if not grew:
                later.append((y, x))
        queue = later
    return labels


def merged_by_shapely(boxes: NDArray[np.float64], scores: NDArray[np.float64]) -> list[Any]:
    """Locality-aware merging, one box after the other."""
    runs: list[tuple[NDArray[np.float64], float]] = []
    for box, score in zip(boxes, scores.tolist(), strict=True):
        if runs:
            mean, weight = runs[-1]
            first, second = shapely.Polygon(mean), shapely.Polygon(box)
            common = first.intersection(second).area
            if common > 0.2 * (first.area + second.area - common):
                runs[-1] = ((mean * weight + box * score) / (weight + score), weight + score)
                continue
        runs.append((box, score))
    return runs


def report(what: str, ours: float, peer: float | None = None) -> None:
    """One line of the table."""
    ratio = f"{peer * 1e3:9.1f} ms {peer / ours:7.1f} x" if peer else ""
    print(f"{what:<58}{ours * 1e3:8.2f} ms{ratio}", flush=True)


def main() -> None:
    """Print the table."""
    cv2.setNumThreads(1)
    print(f"{'':<58}{'jumar':>11}{'loop':>12}{'ratio':>9}")
    for stride in (4, 1):
        kernels = kernel_maps(words(200), SIZE, stride)[0].transpose(2, 0, 1)
        kernels = np.ascontiguousarray(kernels).view(np.bool_)
        assert (expanded(kernels) == queued(kernels)).all()
        _, rows, columns = kernels.shape
        report(
            f"progressive expansion, {rows} x {columns}, 6 kernels, 200 words",
            seconds(lambda kernels=kernels: expanded(kernels), 9),
            seconds(lambda kernels=kernels: queued(kernels), 1),
        )
        maps = kernels.astype(np.float32)
        report(
            f"the same with thresholds and rectangles, {rows} x {columns}",
            seconds(lambda maps=maps: words_of_kernels(maps, SIZE), 5),
        )
    score, geometry, _ = score_maps(words(200), SIZE)
    random = np.random.default_rng(0)
    noisy = geometry.transpose(2, 0, 1) * random.normal(1, 0.05, (5, *score.shape))
    boxes, _ = decoded(score.astype(np.float32), noisy.astype(np.float32))
    boxes = boxes[:10_000]
    scores = random.uniform(0.8, 1, len(boxes))
    means, sums = merged(boxes, scores, 0.2)
    assert len(means) == len(merged_by_shapely(boxes, scores))

    def whole() -> None:
        means, sums = merged(boxes, scores, 0.2)
        best(means, sums, 0.2)

    report(
        f"locality-aware merging, {len(boxes):,} boxes to {len(means):,}",
        seconds(lambda: merged(boxes, scores, 0.2), 9),
        seconds(lambda: merged_by_shapely(boxes, scores), 1),
    )
    report(f"the same with suppression, to {len(best(means, sums, 0.2))}", seconds(whole, 9))


if __name__ == "__main__":
    main()
