"""Labelled pictures as samples: source and preprocessing put together."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from jumar.data.images.image_shards import BACKGROUND, ImageShards
from jumar.data.images.sources import check_pair, open_source
from jumar.data.loading.loader_settings import LoaderSettings
from jumar.data.loading.sampler import sample_random
from jumar.data.pixels.decode import DecodeError
from jumar.data.pixels.preprocessing import Arrays, ImagePreprocessing
from jumar.data.samples import (
    CorruptRecord,
    Fault,
    Fetched,
    ImageSource,
    Record,
    SampleKey,
)
from jumar.ground.errors import UserError
from jumar.ground.machine import check_fits
from jumar.ground.text import counted
from jumar.settings import setting


@dataclass(frozen=True, kw_only=True)
class ImageData(LoaderSettings):
    """Where the pictures are and how they become batches."""

    path: str = setting(
        "digits", "A registered source, a folder or zip of class folders, or TFRecord shards."
    )
    eval_path: str = setting(
        "",
        "The same for evaluation; empty for the evaluation part of path, none to do without.",
        changeable=True,
    )
    image_size: int = setting(224, "Side of the network's input.", unit="px", minimum=1)
    batch_size: int = setting(
        128, "Training batch of one rank.", unit="samples per rank", minimum=1
    )
    label_offset: int = setting(
        0,
        "Added to the labels of TFRecord shards whose label 0 is the background (ImageNet's); -1 "
        "for 1000 classes without it. Folders, zips and other shards have labels from 0.",
        minimum=-1,
        maximum=0,
    )
    preprocessing: ImagePreprocessing = setting(ImagePreprocessing(), "Crop, change, normalise.")


class ImageSet:
    """Pictures of one source as batches: a `SampleSet`.

    A batch holds `image`, uint8 [N, 3, image_size, image_size] in channels_last memory, `label`,
    int64 [N], and whatever else the preprocessing gives for each sample, [N, ...].

    A sample that cannot be read is reported as a fault. In training the next readable one takes
    its place, so that the batch keeps its size; in evaluation it is left out.

    Args:
        source: The undecoded pictures.
        preprocessing: The host half is used here.
        image_size: Side of the input.
        num_classes: Labels must lie below it.
        label_offset: Added to the stored labels.
        seed: Together with a key, decides the sample's augmentation.
        training: Whether samples are augmented.
    """

    def __init__(
        self,
        source: ImageSource,
        preprocessing: ImagePreprocessing,
        *,
        image_size: int,
        num_classes: int,
        label_offset: int = 0,
        seed: int = 0,
        training: bool,
    ) -> None:
        self.source = source
        self.preprocessing = preprocessing
        self.image_size = image_size
        self.num_classes = num_classes
        self.label_offset = label_offset
        self.seed = seed
        self.training = training

    def __len__(self) -> int:
        return len(self.source)

    def fetch(self, keys: Sequence[SampleKey]) -> Fetched:
        """The batch of these keys, in their order.

        Raises:
            UserError: The preprocessing gave samples that do not fit together, or no sample of
                the whole set can be read.
        """
        faults: list[Fault] = []
        batch = _Batch(len(keys))
        for key in keys:
            if self.training:
                batch.add(*self._readable(key, faults))
                continue
            try:
                batch.add(*self._sample(key))
            except CorruptRecord as error:
                faults.append(error.fault)
        return Fetched(batch=batch.tensors(), faults=faults)

    def _readable(self, key: SampleKey, faults: list[Fault]) -> tuple[Arrays, int]:
        for step in range(len(self.source)):
            try:
                return self._sample(SampleKey(key.epoch, (key.index + step) % len(self.source)))
            except CorruptRecord as error:
                faults.append(error.fault)
        raise UserError(
            f"none of the {len(self.source)} samples can be read, the last one because: "
            f"{faults[-1].reason}",
            where=faults[-1].origin,
            todo="Check the path and the label offset of the data.",
        )

    def _sample(self, key: SampleKey) -> tuple[Arrays, int]:
        record = self.source.read(key.index)
        label = self._label(record)
        try:
            if self.training:
                random = sample_random(self.seed, key)
                return self.preprocessing.train_image(record, self.image_size, random), label
            return self.preprocessing.eval_image(record, self.image_size), label
        except DecodeError as error:
            raise CorruptRecord(Fault(origin=record.origin, reason=str(error))) from error

    def _label(self, record: Record) -> int:
        label = record.label + self.label_offset
        if 0 <= label < self.num_classes:
            return label
        first, last = -self.label_offset, self.num_classes - 1 - self.label_offset
        reason = (
            f"label {record.label} is not within {first} to {last}, which {self.num_classes} "
            f"classes with a label offset of {self.label_offset} allow"
        )
        raise CorruptRecord(Fault(origin=record.origin, reason=reason))


def open_image_sets(
    data: ImageData,
    *,
    num_classes: int,
    seed: int,
    notice: Callable[[str], None] = lambda _: None,
) -> tuple[ImageSet, ImageSet | None]:
    """The training and the evaluation set of the settings.

    Args:
        data: Settings.
        num_classes: Outputs of the model; 0 for as many as the data have.
        seed: Of the run.
        notice: Is told what a user should know, such as files that were left out.

    Returns:
        Both sets; None for the second where `eval_path` is `none`.

    Raises:
        UserError: No data at the path, classes that do not fit the model or each other, or an
            empty set.
    """
    train = open_source(data.path, "train", notice=notice)
    offset = offset_for(train, data.label_offset)
    num_classes = num_classes or _counted_classes(train, offset, data.path)
    check_classes(train, num_classes, offset, where=data.path)
    evaluation = None
    if data.eval_path != "none":
        evaluation = open_source(data.eval_path or data.path, "eval", notice=notice)
        check_pair(train, evaluation)

    def image_set(source: ImageSource, training: bool) -> ImageSet:
        return ImageSet(
            source,
            data.preprocessing,
            image_size=data.image_size,
            num_classes=num_classes,
            label_offset=offset_for(source, data.label_offset),
            seed=seed,
            training=training,
        )

    return image_set(train, True), None if evaluation is None else image_set(evaluation, False)


def offset_for(source: ImageSource, label_offset: int) -> int:
    """The label offset where the source's label 0 is a background class, else 0."""
    if not isinstance(source, ImageShards):
        return 0
    return 0 if source.classes and source.classes[0] != BACKGROUND else label_offset


def _counted_classes(source: ImageSource, offset: int, where: str) -> int:
    if not source.classes:
        raise UserError(
            "the shards do not tell the number of classes",
            where=where,
            todo="Set model.num_classes, for ImageNet 1000 with AlexNet, 1001 with ResNeXt-50.",
        )
    return len(source.classes) + offset


def check_classes(source: ImageSource, num_classes: int, label_offset: int, *, where: str) -> None:
    """That every class of a source has an output of the model.

    Raises:
        UserError: The source names more classes than the model has outputs.
    """
    needed = len(source.classes) + label_offset
    if needed > num_classes:
        raise UserError(
            f"the data have {counted(len(source.classes), 'class')} (label offset "
            f"{label_offset}), the "
            f"model has {counted(num_classes, 'output')}",
            where=where,
            todo=f"Set model.num_classes={needed}, or 0 to take the number from the data.",
        )


class _Batch:
    """Collects samples into arrays made for the whole batch, so that nothing is copied twice."""

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._count = 0
        self._tensors: dict[str, Tensor] = {}
        self._arrays: Arrays = {}

    def add(self, arrays: Arrays, label: int) -> None:
        sample: Arrays = {**arrays, "label": np.asarray(label, dtype=np.int64)}
        if not self._arrays:
            for name, array in sample.items():
                self._tensors[name] = _allocated(self._capacity, array)
                self._arrays[name] = self._tensors[name].numpy()
        elif sample.keys() != self._arrays.keys():
            raise UserError(
                f"the preprocessing gave {', '.join(sample)} for one sample and "
                f"{', '.join(self._arrays)} for another",
                todo="Every sample of a batch needs the same names.",
            )
        for name, array in sample.items():
            place = self._arrays[name]
            if place.shape[1:] != array.shape or place.dtype != array.dtype:
                raise UserError(
                    f"the preprocessing gave '{name}' as {array.dtype} {list(array.shape)} for "
                    f"one sample and as {place.dtype} {list(place.shape[1:])} for another",
                    todo="Resize or pad so that the samples of a batch have one shape and type.",
                )
            place[self._count] = array
        self._count += 1

    def tensors(self) -> dict[str, Tensor]:
        tensors = {name: tensor[: self._count] for name, tensor in self._tensors.items()}
        if "image" in tensors and tensors["image"].ndim == 4:
            tensors["image"] = tensors["image"].permute(0, 3, 1, 2)
        return tensors


def _allocated(count: int, array: NDArray[np.generic]) -> Tensor:
    check_fits(count, array.nbytes, "pictures", "data.batch_size, data.image_size")
    kind = torch.from_numpy(np.empty(0, array.dtype)).dtype
    return torch.empty((count, *array.shape), dtype=kind)
