"""Labelled images as samples: source and preprocessing combined."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import cast

import numpy as np
from numpy.typing import NDArray

from jumar.data.images.image_shards import BACKGROUND, ImageShards
from jumar.data.images.listed import Chosen, keys_and_labels, labels_of
from jumar.data.images.sources import check_pair, open_source, splits_of
from jumar.data.loading.balanced import BalancedKeys
from jumar.data.loading.collate import Stacked
from jumar.data.loading.division import DividedData, divided, is_divided, report_division
from jumar.data.loading.keyed_set import KeyedSet
from jumar.data.loading.loader_settings import LoaderSettings, batch_size_setting, eval_path_setting
from jumar.data.loading.sampler import EpochKeys, sample_random
from jumar.data.pixels.decode import DecodeError
from jumar.data.pixels.erasing import ErasingSettings, NoErasing
from jumar.data.pixels.mixing import MixingSettings, NoMixing, PairMixer, uneven
from jumar.data.pixels.preprocessing import ImagePreprocessing
from jumar.data.pixels.rand_augment import AutoAugmentSettings, NoAutoAugment
from jumar.data.samples import (
    Arrays,
    CorruptRecord,
    ImageSource,
    Record,
    SampleKey,
    fingerprint_of,
    read_ahead,
)
from jumar.ground.errors import UserError
from jumar.ground.text import counted
from jumar.settings import setting


@dataclass(frozen=True, kw_only=True)
class PlainImageData(LoaderSettings):
    """Where to find the images and how to make batches of them, regardless of classes."""

    path: str = setting(
        "digits", "A registered source, a folder or zip of class folders, or TFRecord shards."
    )
    eval_path: str = eval_path_setting()
    image_size: int = setting(224, "Side of the network's input.", unit="px", minimum=1)
    batch_size: int = batch_size_setting(128)
    label_offset: int = setting(
        0,
        "Added to the labels of TFRecord shards whose label 0 is the background (ImageNet's); -1 "
        "for 1000 classes without it. Folders, zips and other shards have labels from 0.",
        minimum=-1,
        maximum=0,
    )
    preprocessing: ImagePreprocessing = setting(ImagePreprocessing(), "Crop, change, normalise.")


@dataclass(frozen=True, kw_only=True)
class ImageData(DividedData, PlainImageData):
    """`PlainImageData` for classifiers: can also be divided, balanced, augmented and mixed."""

    sampling: str = setting(
        "natural",
        "natural uses every training image once per epoch, balanced every class equally often.",
        choices=("natural", "balanced"),
    )
    auto_augment: AutoAugmentSettings = setting(
        NoAutoAugment(), "Operations that change training images after crop and flip."
    )
    erasing: ErasingSettings = setting(NoErasing(), "Erasing of parts of training images.")
    mixing: MixingSettings = setting(NoMixing(), "Mixing of training images in pairs.")

    def check(self) -> None:
        """Check rules that concern several fields.

        Raises:
            UserError: Divisions contradict each other, or a batch cannot be mixed in pairs.
        """
        is_divided(self, self.eval_path)
        if self.mixes and self.batch_size % 2:
            raise uneven("data.batch_size", self.batch_size)

    @property
    def mixes(self) -> bool:
        """Whether training images are mixed."""
        return not isinstance(self.mixing, NoMixing)


@dataclass(frozen=True, kw_only=True, eq=False)
class LabelledPictures:
    """Images of one source, each with `label`, int64, and the result of the preprocessing.

    Attributes:
        source: The undecoded images.
        preprocessing: The preprocessing; its host half is used here.
        image_size: Side of the input.
        num_classes: Number of classes; labels must be lower.
        label_offset: Added to the stored labels.
        seed: Together with a key, determines a sample's augmentation.
        training: Whether samples are augmented.
        auto_augment: Changes training images after the preprocessing.
        erasing: Erases parts of training images after that.
        numbered: Whether a sample also has its `index`, so that its pairing with other data does
            not depend on batches or unreadable samples.
    """

    source: ImageSource
    preprocessing: ImagePreprocessing
    image_size: int
    num_classes: int
    label_offset: int = 0
    seed: int = 0
    training: bool
    auto_augment: AutoAugmentSettings = field(default_factory=NoAutoAugment)
    erasing: ErasingSettings = field(default_factory=NoErasing)
    numbered: bool = False

    def __len__(self) -> int:
        return len(self.source)

    @property
    def fingerprint(self) -> str:
        """The source's fingerprint; see `Fingerprinted`."""
        return fingerprint_of(self.source)

    def read_ahead(self, items: Sequence[int]) -> None:
        """See `ReadsAhead`."""
        read_ahead(self.source, items)

    def open(self, item: int, _key: SampleKey) -> Record:
        """Read the undecoded image; see `SampleKind.open`."""
        return self.source.read(item)

    def map(self, record: Record, item: int, key: SampleKey) -> Arrays:
        """Return the preprocessed image with its label; see `SampleKind.map`."""
        targets: Arrays = {"label": np.asarray(self._label(record), dtype=np.int64)}
        if self.numbered:
            targets["index"] = np.asarray(item, dtype=np.int64)
        try:
            if not self.training:
                return self.preprocessing.eval_image(record, self.image_size) | targets
            random = sample_random(self.seed, SampleKey(key.epoch, item))
            arrays = self.preprocessing.train_image(record, self.image_size, random)
        except DecodeError as error:
            raise CorruptRecord(record.origin, error) from error
        if self.changes_pixels:
            pixels = self.auto_augment.changed(cast("NDArray[np.uint8]", arrays["image"]), random)
            arrays["image"] = self.erasing.erased(pixels, random, self.preprocessing.mean)
        return arrays | targets

    @property
    def changes_pixels(self) -> bool:
        """Whether training images are changed after the preprocessing."""
        return not (
            isinstance(self.auto_augment, NoAutoAugment) and isinstance(self.erasing, NoErasing)
        )

    def outputs(self) -> list[str]:
        """Return the names of all labels; empty if the source has none."""
        if not self.source.classes:
            return []
        names = dict(enumerate(self.source.classes, start=self.label_offset))
        return [names.get(label, f"class {label}") for label in range(self.num_classes)]

    def _label(self, record: Record) -> int:
        label = record.label + self.label_offset
        if 0 <= label < self.num_classes:
            return label
        first, last = -self.label_offset, self.num_classes - 1 - self.label_offset
        reason = (
            f"label {record.label} is not within {first} to {last}, the range for "
            f"{self.num_classes} classes with a label offset of {self.label_offset}"
        )
        raise CorruptRecord(record.origin, reason)


def image_set(
    pictures: LabelledPictures,
    *,
    epoch_keys: EpochKeys | None = None,
    finish: PairMixer | None = None,
) -> KeyedSet[LabelledPictures]:
    """Images as batches: `image`, uint8 [N, 3, image_size, image_size] in channels_last memory,
    `label`, int64 [N], and any other arrays of the samples, [N, ...].
    """
    return KeyedSet(
        kind=pictures,
        collate=Stacked(
            what="images", fields="data.batch_size, data.image_size", pictures=("image",)
        ),
        training=pictures.training,
        todo="Check the path and the label offset of the data.",
        epoch_keys=epoch_keys,
        finish=finish,
    )


def open_image_sets(
    data: PlainImageData,
    *,
    num_classes: int,
    seed: int,
    notice: Callable[[str], None] = lambda _: None,
) -> tuple[KeyedSet[LabelledPictures], KeyedSet[LabelledPictures] | None]:
    """Open the training and the evaluation set.

    Args:
        data: The settings.
        num_classes: Outputs of the model; 0 for the number of classes in the data.
        seed: The run's seed.
        notice: Called with notices for the user, such as which files were skipped.

    Returns:
        Both sets; the second is None if `eval_path` is `none`.

    Raises:
        UserError: There is no data at the path, the classes do not match the model or each other,
            or a set is empty or cannot be divided or balanced.
    """
    source = open_source(data.path, "train", notice=notice)
    offset = offset_for(source, data.label_offset)
    num_classes = num_classes or _counted_classes(source, offset, data.path)
    check_classes(source, num_classes, offset, where=data.path)
    pictures = partial(
        LabelledPictures,
        preprocessing=data.preprocessing,
        image_size=data.image_size,
        num_classes=num_classes,
        seed=seed,
    )
    evaluation: ImageSource | None = None
    eval_offset = offset
    if isinstance(data, ImageData) and is_divided(data, data.eval_path):
        source, evaluation = divided_source(source, data, notice)
    elif data.eval_path != "none":
        evaluation = open_source(data.eval_path or data.path, "eval", notice=notice)
        check_pair(source, evaluation)
        eval_offset = offset_for(evaluation, data.label_offset)
    training = pictures(source=source, label_offset=offset, training=True)
    is_image_data = isinstance(data, ImageData)
    train = _augmented_set(training, data, notice) if is_image_data else image_set(training)
    if evaluation is None:
        return train, None
    eval_pictures = pictures(source=evaluation, label_offset=eval_offset, training=False)
    return train, image_set(eval_pictures)


def _augmented_set(
    pictures: LabelledPictures, data: ImageData, notice: Callable[[str], None]
) -> KeyedSet[LabelledPictures]:
    """Return the training set with the sampling, mixing and augmentation of the settings."""
    balanced: BalancedKeys | None = None
    if data.sampling == "balanced":
        balanced = BalancedKeys(labels_of(pictures.source, notice))
        counts = balanced.counts
        notice(
            f"balanced sampling: {counted(len(counts), 'class')} of {min(counts)} to "
            f"{counted(max(counts), 'sample')}, each used {len(pictures) // len(counts)} times "
            "an epoch"
        )
    pictures = replace(pictures, auto_augment=data.auto_augment, erasing=data.erasing)
    mixer = PairMixer(settings=data.mixing, seed=pictures.seed) if data.mixes else None
    return image_set(pictures, epoch_keys=balanced, finish=mixer)


def divided_source(
    source: ImageSource, data: ImageData, notice: Callable[[str], None]
) -> tuple[ImageSource, ImageSource]:
    """Divide a source into its training part and the held-out part.

    Raises:
        UserError: It cannot be divided.
    """
    keys, labels = keys_and_labels(source, notice)
    division = divided(data, keys, labels)
    report_division(division, data, labels, notice, by="of each class")
    if "eval" in splits_of(data.path):
        notice(f"{data.path}: its own evaluation part is not used")
    held_out = Chosen(source, division.held_out, division.fingerprint)
    return Chosen(source, division.train), held_out


def offset_for(source: ImageSource, label_offset: int) -> int:
    """Return the label offset if the source's label 0 is a background class, otherwise 0."""
    if not isinstance(source, ImageShards):
        return 0
    return 0 if source.classes and source.classes[0] != BACKGROUND else label_offset


def _counted_classes(source: ImageSource, offset: int, where: str) -> int:
    if not source.classes:
        raise UserError(
            "the shards do not state the number of classes",
            where=where,
            todo="Set model.num_classes; for ImageNet, 1000 with AlexNet, 1001 with ResNeXt-50.",
        )
    return len(source.classes) + offset


def check_classes(source: ImageSource, num_classes: int, label_offset: int, *, where: str) -> None:
    """Check that every class of a source has an output of the model.

    Raises:
        UserError: The source has more classes than the model has outputs.
    """
    needed = len(source.classes) + label_offset
    if needed > num_classes:
        raise UserError(
            f"the data has {counted(len(source.classes), 'class')} (label offset "
            f"{label_offset}), the model has {counted(num_classes, 'output')}",
            where=where,
            todo=f"Set model.num_classes={needed}, or 0 to use the number of classes in the data.",
        )
