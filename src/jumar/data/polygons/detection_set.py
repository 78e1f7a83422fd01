"""Images with words as samples: crops with targets, or whole images with outlines."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from jumar.data.loading.collate import SIZES, Padded, Stacked
from jumar.data.loading.keyed_set import KeyedSet
from jumar.data.loading.sampler import sample_random
from jumar.data.pixels.decode import DecodeError, EncodedImage
from jumar.data.polygons.augmentation import augmented, resized
from jumar.data.polygons.detection_data import DetectionData, Targets
from jumar.data.polygons.kernels import kernel_maps
from jumar.data.polygons.regions import UNCERTAIN, Region
from jumar.data.polygons.score_maps import score_maps
from jumar.data.polygons.text_pictures import TextPictures, open_text_pictures
from jumar.data.samples import Arrays, Batch, CorruptRecord, Record, SampleKey
from jumar.ground.errors import UserError

STRIDE = 4
"""Image pixels per output pixel, along each axis."""


class Encoded(NamedTuple):
    """An image's bytes and its words."""

    record: Record
    regions: Sequence[Region]


@dataclass(frozen=True, kw_only=True, eq=False)
class DetectionPictures:
    """Images of one source with their words.

    A training sample is `image`, uint8 [side, side, 3], with `mask`, uint8 [side / 4, side / 4],
    and `kernels`, uint8 [.., .., 6], or `score`, uint8 [.., ..], and `geometry`, float32
    [.., .., 5]; see `kernel_maps` and `score_maps`.

    An evaluation sample is the whole image as `image`, uint8 [height, width, 3], both sides
    multiples of 32, with `scale`, float32 [2], by which its x and y were multiplied, `index`, and
    the words in pixels of the file: `corners`, float32 [words, max corners, 2], `corner_counts`,
    int64 [words], and `ignored`, bool [words].

    Attributes:
        source: The undecoded images.
        data: Sizes and augmentation.
        targets: `kernels` for PSENet, `score` for EAST.
        seed: Together with a key, determines a sample's augmentation.
        training: Whether samples are augmented crops.
    """

    source: TextPictures
    data: DetectionData
    targets: Targets
    seed: int
    training: bool

    def __len__(self) -> int:
        return len(self.source)

    @property
    def fingerprint(self) -> str:
        """The source's fingerprint; see `Fingerprinted`."""
        return self.source.fingerprint

    def open(self, item: int, _key: SampleKey) -> Encoded:
        """Read the undecoded image and its words; see `SampleKind.open`."""
        return Encoded(self.source.read(item), self.source.regions[item])

    def map(self, opened: Encoded, item: int, key: SampleKey) -> Arrays:
        """Return the network's input and its targets; see `SampleKind.map`."""
        try:
            pixels = EncodedImage(opened.record.encoded).decode(fast=False, reuse=True)
        except DecodeError as error:
            raise CorruptRecord(opened.record.origin, error) from error
        if not self.training:
            return self._whole(pixels, opened.regions, item)
        random = sample_random(self.seed, SampleKey(key.epoch, item))
        side = self.data.image_size
        regions = [
            replace(region, ignored=region.ignored or region.text in UNCERTAIN)
            for region in opened.regions
        ]
        image, regions = augmented(pixels, regions, self.data.augmentation, side, random)
        if self.targets == "kernels":
            kernels, mask = kernel_maps(regions, (side, side), STRIDE)
            return {"image": image, "kernels": kernels, "mask": mask}
        score, geometry, mask = score_maps(
            regions, (side, side), stride=STRIDE, min_side=self.data.least_word
        )
        return {"image": image, "score": score, "geometry": geometry, "mask": mask}

    def _whole(self, pixels: NDArray[np.uint8], regions: Sequence[Region], item: int) -> Arrays:
        height, width = pixels.shape[:2]
        size = input_size(height, width, self.data)
        counts = np.array([len(region.corners) for region in regions], np.int64)
        corners = np.zeros((len(regions), counts.max(initial=0), 2), np.float32)
        for row, region in zip(corners, regions, strict=True):
            row[: len(region.corners)] = region.corners
        return {
            "image": resized(pixels, size) if size != (height, width) else pixels,
            "scale": np.array([size[1] / width, size[0] / height], np.float32),
            "index": np.asarray(item, np.int64),
            "corners": corners,
            "corner_counts": counts,
            "ignored": np.array([region.ignored for region in regions], np.bool_),
        }


def input_size(
    height: int, width: int, data: DetectionData, *, longest: int = 0
) -> tuple[int, int]:
    """Return height and width of a network's input: the image's, rounded to multiples of 32.

    Both are rounded up, as in the original PSENet, or down, as intended by the original EAST (which
    subtracts 32 pixels too many if a side is not a multiple).

    Args:
        height: Height of the image.
        width: Width of the image.
        data: Scale, longest side and rounding in evaluation.
        longest: Maximum side before rounding; 0 for `data.eval_longest`.
    """
    factor = min(data.eval_scale, (longest or data.eval_longest) / max(height, width))
    sides = [int(length * factor) for length in (height, width)]
    up = data.eval_rounding == "up"
    multiples = [-(-side // 32) if up else side // 32 for side in sides]
    return max(multiples[0], 1) * 32, max(multiples[1], 1) * 32


def training_set(pictures: DetectionPictures) -> KeyedSet[DetectionPictures]:
    """Crops as batches: `image` [N, 3, side, side] and the targets, `kernels` [N, 6, .., ..] or
    `score` [N, .., ..] and `geometry` [N, 5, .., ..], and `mask`; see `DetectionPictures`.
    """
    return KeyedSet(
        kind=pictures,
        collate=Stacked(
            what="images",
            fields="data.batch_size, data.image_size",
            pictures=("image", "kernels", "geometry"),
        ),
        training=True,
        what="images",
        todo="Check the path of the data.",
    )


def evaluation_set(pictures: DetectionPictures) -> KeyedSet[DetectionPictures]:
    """Whole images as batches: `image` [N, 3, height, width], padded to the largest, and words.

    For arrays that differ in size between images, the batch includes the sizes (`unpadded`); those
    of `image` are rows, columns and channels.
    """
    return KeyedSet(kind=pictures, collate=_PaddedImages(), training=False)


class _PaddedImages(Padded):
    """Pads images and words, and moves the channels of images to the front."""

    def __init__(self) -> None:
        super().__init__(
            what="images",
            fields="data.eval_batch_size, data.eval_longest",
            fill={"image": 0, "corners": 0, "corner_counts": 0, "ignored": 1},
        )

    def __call__(self, samples: Iterator[Arrays], count: int) -> dict[str, Tensor]:
        batch = super().__call__(samples, count)
        if "image" in batch:
            batch["image"] = batch["image"].permute(0, 3, 1, 2)
        return batch


def batch_regions(batch: Batch) -> list[list[Region]]:
    """Return the words of each image of an evaluation batch."""
    sizes: list[int] = batch["ignored" + SIZES][:, 0].tolist()
    corners = batch["corners"].cpu().numpy().astype(np.float64)
    counts: list[list[int]] = batch["corner_counts"].tolist()
    ignored: list[list[bool]] = batch["ignored"].tolist()
    return [
        [
            Region(corners=corners[row, word, : counts[row][word]], ignored=ignored[row][word])
            for word in range(size)
        ]
        for row, size in enumerate(sizes)
    ]


def open_evaluation(
    data: DetectionData, *, notice: Callable[[str], None] = lambda _: None
) -> TextPictures:
    """Open the images of the evaluation part; raises like `open_text_pictures`."""
    labels = data.eval_labels or ("" if data.eval_path else data.labels)
    return open_text_pictures(data.eval_path or data.path, "eval", labels=labels, notice=notice)


def open_detection_sets(
    data: DetectionData,
    *,
    targets: Targets,
    seed: int,
    notice: Callable[[str], None] = lambda _: None,
) -> tuple[KeyedSet[DetectionPictures], KeyedSet[DetectionPictures] | None]:
    """Open crops for training and whole images for evaluation.

    Args:
        data: The settings.
        targets: The targets of training samples; see `DetectionPictures`.
        seed: The run's seed.
        notice: Called with which labels were repaired, left out or are missing.

    Returns:
        Both sets; the second is None if `eval_path` is `none`.

    Raises:
        UserError: A path has no images with words, or both sets are the same.
        ModuleNotFoundError: A package of the extra `detection` is missing.
    """
    for package in ("pyclipper", "shapely"):  # to fail here rather than in a worker
        import_module(package)
    import cv2

    cv2.setNumThreads(1)  # one worker per core; also, threads started before a fork may hang it
    if not data.path:
        raise UserError(
            "no path set",
            where="data.path",
            todo="Specify a folder or zip of images and label files.",
        )
    source = open_text_pictures(data.path, "train", labels=data.labels, notice=notice)
    train = training_set(
        DetectionPictures(source=source, data=data, targets=targets, seed=seed, training=True)
    )
    if data.eval_path == "none":
        return train, None
    evaluation = open_evaluation(data, notice=notice)
    if evaluation.fingerprint == source.fingerprint:
        raise UserError(
            "evaluation would use the training images",
            where="data.eval_path",
            todo="Set it to other images or to none, or put folders train and test into data.path.",
        )
    return train, evaluation_set(
        DetectionPictures(source=evaluation, data=data, targets=targets, seed=seed, training=False)
    )
