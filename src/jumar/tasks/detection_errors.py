"""Errors of a text detector, counted by kind and shown as crops."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from numpy.typing import NDArray

from jumar.data.pixels.outlines import FOUND, LABELLED, with_outlines
from jumar.data.pixels.picture_grid import picture_grid
from jumar.data.polygons.augmentation import resized
from jumar.data.polygons.protocol import PictureScore
from jumar.data.polygons.regions import Corners
from jumar.tasks.task import Illustration

KINDS = ("missed", "false", "merged", "split")
"""Words without a detection, detections without a word, several words in one detection, and one
word in several detections."""

_MAX_CROPS = 32
_MAX_CROPS_PER_IMAGE = 4
_COLUMNS = 4
_TILE = (96, 224)
"""Height and width of a crop."""
_MARGIN = 0.4
"""Margin, as a fraction of the shorter side."""
_MIN_MARGIN = 12
_GREY = 96


def errors_of(score: PictureScore) -> dict[str, list[tuple[list[int], list[int]]]]:
    """Return the errors of an image by kind, each as the indices of its words and detections.

    Each error is counted once: a missed word that shares a detection with others is `merged`, a
    false detection that covers part of a split word is `split`.
    """
    merged = [(sorted(words), [detection]) for detection, words in score.merged]
    split = [([word], sorted(detections)) for word, detections in score.split]
    words = {word for group, _ in (*merged, *split) for word in group}
    detections = {index for _, group in (*merged, *split) for index in group}
    return {
        "missed": [([word], []) for word in score.missed if word not in words],
        "false": [([], [index]) for index in score.false if index not in detections],
        "merged": merged,
        "split": split,
    }


@dataclass(frozen=True, eq=False)
class ErrorSheets:
    """Crops of the first errors of each kind, a few from each image.

    Attributes:
        crops: The crops by kind, uint8 [3, height, width].
        totals: Total number of errors of each kind.
    """

    crops: Mapping[str, list[torch.Tensor]] = field(
        default_factory=lambda: {kind: [] for kind in KINDS}
    )
    totals: dict[str, int] = field(default_factory=lambda: dict.fromkeys(KINDS, 0))

    def add(
        self,
        pixels: NDArray[np.uint8],
        words: Sequence[Corners],
        detections: Sequence[Corners],
        score: PictureScore,
    ) -> None:
        """Crop the errors of an image.

        Args:
            pixels: RGB [height, width, 3].
            words: Outlines of the labelled words, in coordinates of `pixels`.
            detections: Outlines of the detected words, likewise.
            score: The image's score.
        """
        outlines = [(corners, LABELLED) for corners in words]
        outlines += [(corners, FOUND) for corners in detections]
        for kind, errors in errors_of(score).items():
            self.totals[kind] += len(errors)
            for word_indexes, detection_indexes in errors[:_MAX_CROPS_PER_IMAGE]:
                if len(self.crops[kind]) < _MAX_CROPS:
                    shown_outlines = [words[index] for index in word_indexes]
                    shown_outlines += [detections[index] for index in detection_indexes]
                    crop = _crop(pixels, np.concatenate(shown_outlines), outlines)
                    self.crops[kind].append(crop)

    def illustrations(self, pictures: str) -> Iterator[Illustration]:
        """Yield a sheet of crops for each kind of error that occurred.

        Args:
            pictures: The examined images in words, such as `the first 50 images`.
        """
        for kind, crops in self.crops.items():
            if crops:
                yield Illustration(
                    name=f"errors-{kind}",
                    caption=f"{len(crops)} of {self.totals[kind]} {_MEANING[kind]} in {pictures}; "
                    "labels orange, detections green",
                    image=picture_grid(torch.stack(crops), columns=_COLUMNS),
                )


_MEANING = {
    "missed": "missed words",
    "false": "false detections",
    "merged": "detections that merge several words",
    "split": "words split into several detections",
}


def _crop(
    pixels: NDArray[np.uint8],
    points: Corners,
    outlines: Sequence[tuple[Corners, tuple[int, int, int]]],
) -> torch.Tensor:
    """Return a crop around some points, scaled to fit a tile, on a grey background."""
    low, high = points.min(axis=0), points.max(axis=0)
    margin = max(_MIN_MARGIN, _MARGIN * float((high - low).min()))
    left, top = np.floor(np.maximum(low - margin, 0)).astype(int).tolist()
    right, bottom = np.ceil(np.minimum(high + margin, pixels.shape[1::-1])).astype(int).tolist()
    part = pixels[top : max(bottom, top + 1), left : max(right, left + 1)]
    tile = np.full((*_TILE, 3), _GREY, np.uint8)
    if part.size:
        factor = min(_TILE[0] / part.shape[0], _TILE[1] / part.shape[1])
        size = tuple(
            max(1, min(largest, round(side * factor)))
            for side, largest in zip(part.shape, _TILE, strict=False)
        )
        moved_outlines = [
            ((corners - (left, top)) * factor, colour) for corners, colour in outlines
        ]
        rendered = with_outlines(resized(part, (size[0], size[1])), moved_outlines)
        tile[: size[0], : size[1]] = rendered
    return torch.from_numpy(tile).permute(2, 0, 1)
