"""Text detection: find the outlines of words in images, and score them.

Networks accept RGB images [N, 3, height, width] with values from 0 to 255. Their output differs by
network; a `Reader` converts it to words.
"""

from abc import ABC
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from jumar.data.loading.collate import SIZES
from jumar.data.pixels.outlines import FOUND, LABELLED, with_outlines
from jumar.data.polygons.box_words import words_of_boxes
from jumar.data.polygons.detection_set import STRIDE, batch_regions
from jumar.data.polygons.kernel_words import Detection, Outline, words_of_kernels
from jumar.data.polygons.protocol import (
    ICDAR2015,
    Protocol,
    intervals_of,
    picture_score,
    scores_of,
)
from jumar.data.samples import Batch, SampleKey, SampleSet
from jumar.ground.text import counted
from jumar.models.east import East
from jumar.models.psenet import PSENet
from jumar.models.slim_convolution import decays
from jumar.tasks.detection_errors import KINDS, ErrorSheets, errors_of
from jumar.tasks.detection_losses import BoxLoss, KernelLoss
from jumar.tasks.task import Headline, Illustration, Objective, ScoreTable, Task

Reader = Callable[[Tensor, Sequence[tuple[int, int]]], list[list[Detection]]]
"""Finds the words in a batch of images, in pixels, with a network in evaluation mode and without
gradients. Each image has its own height and width, at the top left of the batch."""

_SCORES = ("hmean", "precision", "recall")
_SHOWN = 3
_EXAMINED = 50
"""Number of images whose errors are shown."""


Network = TypeVar("Network", bound=nn.Module)
Loss = TypeVar("Loss")


class DetectionObjective(Objective, ABC, Generic[Network, Loss]):
    """The loss of a text detector; weight decay excludes biases and batch norms.

    Args:
        network: Images in, maps out.
        loss: The loss of these maps.
    """

    name = "detection"

    def __init__(self, network: Network, *, loss: Loss) -> None:
        super().__init__()
        self.trained = self._network = network
        self._loss = loss

    def decays(self, name: str, parameter: nn.Parameter) -> bool:
        """Decide as the originals do."""
        return decays(name, parameter)


class KernelObjective(DetectionObjective[PSENet, KernelLoss]):
    """PSENet's loss: `text` for the whole words, and `kernels` for their shrunken copies."""

    minimized = ("text", "kernels")

    def sums(self, batch: Batch) -> dict[str, Tensor]:
        """Return both terms of a batch of `image`, `kernels` and `mask`."""
        maps = self._network(batch["image"].float())
        return self._loss.terms(maps, batch["kernels"].float(), batch["mask"].float())


class BoxObjective(DetectionObjective[East, BoxLoss]):
    """EAST's loss: `score` for the position of text, and `geometry` for the boxes around it."""

    minimized = ("score", "geometry")

    def sums(self, batch: Batch) -> dict[str, Tensor]:
        """Return both terms of a batch of `image`, `score`, `geometry` and `mask`."""
        maps = self._network(batch["image"].float())
        score, mask = batch["score"].float(), batch["mask"].float()
        return self._loss.terms(maps.score[:, 0], maps.geometry, score, batch["geometry"], mask)


@dataclass(frozen=True, kw_only=True, eq=False)
class KernelReader:
    """Reads words from PSENet's maps: a `Reader`; see `words_of_kernels` for the attributes."""

    network: PSENet
    threshold: float
    least_area: int
    least_score: float
    outline: Outline

    def __call__(self, images: Tensor, sizes: Sequence[tuple[int, int]]) -> list[list[Detection]]:
        """See `Reader`."""
        maps = self.network(images.float()).cpu().numpy()
        return [
            words_of_kernels(
                _image_part(image_maps, size),
                size,
                threshold=self.threshold,
                least_area=self.least_area,
                least_score=self.least_score,
                outline=self.outline,
            )
            for image_maps, size in zip(maps, sizes, strict=True)
        ]


@dataclass(frozen=True, kw_only=True, eq=False)
class BoxReader:
    """Reads words from EAST's maps: a `Reader`; see `words_of_boxes` for the attributes."""

    network: East
    threshold: float
    overlap: float
    least_score: float

    def __call__(self, images: Tensor, sizes: Sequence[tuple[int, int]]) -> list[list[Detection]]:
        """See `Reader`."""
        scores, geometry = (maps.cpu().numpy() for maps in self.network(images.float()))
        return [
            words_of_boxes(
                _image_part(score[0], size),
                _image_part(boxes, size),
                stride=STRIDE,
                threshold=self.threshold,
                overlap=self.overlap,
                least_score=self.least_score,
            )
            for score, boxes, size in zip(scores, geometry, sizes, strict=True)
        ]


def _image_part(maps: NDArray[np.float32], size: tuple[int, int]) -> NDArray[np.float32]:
    """Return the part of the maps that covers an image, without the padding of its batch."""
    height, width = size
    return maps[..., : -(-height // STRIDE), : -(-width // STRIDE)]


class TextDetectionTask(Task):
    """A text detector, scored by detected words, all with equal weight.

    Errors are counted and shown by ICDAR 2015's matches, whatever the protocol of the scores.

    Args:
        objective: The network and its loss.
        reader: Reads words from the network's output.
        train_data: Crops with the targets of the loss.
        eval_data: Whole images with outlines of words.
        protocol: The protocol of the scores.
    """

    name = "text_detection"
    headline = Headline(name="hmean", unit="%", higher_is_better=True)
    gathered = ("counts",)

    def __init__(
        self,
        objective: DetectionObjective[Any, Any],
        reader: Reader,
        *,
        train_data: SampleSet,
        eval_data: SampleSet | None,
        protocol: Protocol = ICDAR2015,
    ) -> None:
        self.model = objective.trained
        self.train_data = train_data
        self.eval_data = eval_data
        self.objectives = [objective]
        self._reader = reader
        self._protocol = protocol

    def evaluate_batch(self, batch: Batch) -> dict[str, Tensor]:
        """Return `counts`, those of the protocol for each image, and `errors`, the number of each
        of `KINDS`.
        """
        counts: list[NDArray[Any]] = []
        errors: list[list[int]] = []
        for words, regions in zip(self._read(batch), batch_regions(batch), strict=True):
            corners = [word.corners for word in words]
            score = picture_score(regions, corners)
            counts.append(self._protocol.counts(regions, corners, score))
            errors.append([len(errors_of(score)[kind]) for kind in KINDS])
        device = batch["image"].device
        return {
            "count": torch.tensor(float(len(counts)), device=device),
            # Not on the device: it may have no float64, and rows are collected on the CPU.
            "counts": torch.from_numpy(np.stack(counts)),
            "errors": torch.tensor(errors, dtype=torch.float32, device=device).sum(dim=0),
        }

    def summarize(self, sums: Mapping[str, Tensor]) -> dict[str, float]:
        """Return `hmean`, `precision` and `recall` in percent."""
        scores = scores_of(sums["counts"].numpy().sum(axis=0))
        return {name: 100 * getattr(scores, name) for name in _SCORES}

    def score_tables(self, sums: Mapping[str, Tensor]) -> Sequence[ScoreTable]:
        """Return the scores with their confidence intervals, and the number of errors by kind."""
        counts = sums["counts"].numpy()
        scores, intervals = scores_of(counts.sum(axis=0)), intervals_of(counts)
        rows: list[list[str]] = []
        for name in _SCORES:
            low, high = getattr(intervals, name)
            value = 100 * getattr(scores, name)
            rows.append([name, f"{value:.2f}", f"{100 * low:.2f} to {100 * high:.2f}"])
        header = ["score", "%", "95 % interval over images"]
        errors = [
            [kind, f"{number:.0f}"]
            for kind, number in zip(KINDS, sums["errors"].tolist(), strict=True)
        ]
        # A table of the usual protocol keeps its title.
        is_usual = self._protocol is ICDAR2015
        found_by, errors_by = (
            "" if is_usual else f" ({protocol.title})" for protocol in (self._protocol, ICDAR2015)
        )
        return [
            ScoreTable(title=f"words found{found_by}", header=header, rows=rows),
            ScoreTable(title=f"errors{errors_by}", header=["kind", "number"], rows=errors),
        ]

    def illustrate(self) -> Sequence[Illustration]:
        """Show the first images with labels and detections, and crops of the errors."""
        if self.eval_data is None:
            return ()
        device = next(self.model.parameters()).device
        illustrations: list[Illustration] = []
        errors, image_count = ErrorSheets(), min(_EXAMINED, len(self.eval_data))
        for index in range(image_count):
            batch = self.eval_data.fetch([SampleKey(0, index)]).batch
            if not batch:
                continue
            batch = {name: value.to(device) for name, value in batch.items()}
            (words,), (regions,) = self._read(batch), batch_regions(batch)
            scale = batch["scale"][0].cpu().numpy()
            labelled = [region.corners * scale for region in regions]
            detected = [word.corners * scale for word in words]
            pixels = np.ascontiguousarray(batch["image"][0].permute(1, 2, 0).cpu().numpy())
            score = picture_score(regions, [word.corners for word in words])
            errors.add(pixels, labelled, detected, score)
            if index >= _SHOWN:
                continue
            outlines = [(corners, LABELLED) for corners in labelled]
            outlines += [(corners, FOUND) for corners in detected]
            illustrations.append(
                Illustration(
                    name=f"words-{index + 1}",
                    caption=f"{counted(len(words), 'word')} found (green), "
                    f"{len(regions)} labelled (orange)",
                    image=torch.from_numpy(with_outlines(pixels, outlines)),
                )
            )
        first = "the first " if image_count < len(self.eval_data) else ""
        return [*illustrations, *errors.illustrations(first + counted(image_count, "image"))]

    def _read(self, batch: Batch) -> list[list[Detection]]:
        """Return the words of each image, in pixels of its file."""
        sizes: list[list[int]] = batch["image" + SIZES].tolist()
        scales = batch["scale"].cpu().numpy().astype(np.float64)
        detections = self._reader(batch["image"], [(rows, columns) for rows, columns, _ in sizes])
        return [
            [replace(word, corners=word.corners / scale) for word in words]
            for words, scale in zip(detections, scales, strict=True)
        ]
