"""Unlabelled images as samples for a generator: framed, resized, as bytes."""

from collections.abc import Callable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import partial

import numpy as np
from numpy.typing import NDArray

from jumar.data.images.cat_landmarks import CatHeads
from jumar.data.images.image_set import LabelledPictures, image_set
from jumar.data.images.listed import Chosen
from jumar.data.images.picture_tree import Pictures, open_pictures
from jumar.data.loading.keyed_set import KeyedSet
from jumar.data.loading.loader_settings import LoaderSettings
from jumar.data.pixels.decode import EncodedImage
from jumar.data.pixels.preprocessing import ImagePreprocessing
from jumar.data.pixels.resize import mirror, resize, resize_fast
from jumar.data.samples import Arrays, ImageSource, Record
from jumar.ground.errors import UserError
from jumar.ground.paths import expanded
from jumar.settings import setting

FRAMES = ("squeeze", "square", "head")


@dataclass(frozen=True, kw_only=True)
class PictureData(LoaderSettings):
    """Where to find the images, which part of them to use, and how to make batches of them."""

    path: str = setting(
        "digits", "A folder tree or zip of images, TFRecord shards, or a registered source."
    )
    eval_path: str = setting(
        "",
        "Real images to compare generated ones with; empty for the training images, the usual "
        "choice; none to skip it.",
        changeable=True,
    )
    match: str = setting(
        "", "Only images whose path matches this pattern, such as *cat/*; empty for all."
    )
    eval_samples: int = setting(
        0,
        "Number of real images, from the first, to compare generated ones with; 0 for all.",
        unit="samples",
        minimum=0,
    )
    image_size: int = setting(128, "Side of the images.", unit="px", minimum=1)
    frame: str = setting(
        "squeeze",
        "squeeze keeps the whole image whatever its shape (the original), square its central "
        "square, head the cat's head from the landmarks of the Kaggle CAT set.",
        choices=FRAMES,
    )
    resize: str = setting(
        "legacy",
        "legacy is the original's bilinear, without averaging; antialias averages.",
        choices=("legacy", "antialias"),
    )
    flip: bool = setting(False, "Mirror half of the training images; the original does not.")
    inception_weights: str = setting(
        "",
        "Weights of the network for the Frechet distance (FID), which is then also reported; empty "
        "for none.",
        unit="path",
    )

    def preprocessing(self) -> "FramedPictures":
        """The preprocessing from encoded images to values between -1 and 1."""
        middle = (127.5, 127.5, 127.5)
        return FramedPictures(
            frame=self.frame, resize=self.resize, flip=self.flip, mean=middle, std=middle
        )


@dataclass(frozen=True, kw_only=True)
class FramedPictures(ImagePreprocessing):
    """A part of the image, resized; the same in training and evaluation except for mirroring.

    Equal treatment matters because the distributions of real and generated images are compared.
    Resized values are rounded to bytes; the original does not round.
    """

    frame: str = "squeeze"

    def train_image(self, record: Record, image_size: int, random: np.random.Generator) -> Arrays:
        """Return one training sample; see `ImagePreprocessing.train_image`."""
        pixels = self._framed(record, image_size)
        if self.flip and random.random() < 0.5:
            pixels = mirror(pixels)
        return {"image": pixels}

    def eval_image(self, record: Record, image_size: int) -> Arrays:
        """Return one sample without mirroring; see `ImagePreprocessing.eval_image`."""
        return {"image": self._framed(record, image_size)}

    def _framed(self, record: Record, image_size: int) -> NDArray[np.uint8]:
        pixels = EncodedImage(record.encoded).decode(fast=False, reuse=True)
        height, width = pixels.shape[:2]
        if self.frame == "square":
            side = min(height, width)
            top, left = (height - side) // 2, (width - side) // 2
            pixels = pixels[top : top + side, left : left + side]
        elif self.frame == "head":
            ((ymin, xmin, ymax, xmax),) = record.boxes
            top, left = round(ymin * height), round(xmin * width)
            bottom, right = round(ymax * height), round(xmax * width)
            pixels = pixels[top : max(bottom, top + 1), left : max(right, left + 1)]
        size = (image_size, image_size)
        if self.resize == "antialias":
            return resize_fast(pixels, size)
        return np.rint(resize(pixels, size)).astype(np.uint8)


def open_generator_sets(
    data: PictureData, *, seed: int, notice: Callable[[str], None] = lambda _: None
) -> tuple[KeyedSet[LabelledPictures], KeyedSet[LabelledPictures] | None]:
    """Open the training images and those to compare with, whose batches also have `index`.

    Args:
        data: The settings.
        seed: The run's seed.
        notice: Called with notices for the user, such as which files were skipped.

    Returns:
        Both sets; the second is None if `eval_path` is `none`.

    Raises:
        UserError: There are no images at a path, or none that matches `data.match`.
    """
    source = _open_matching(data, data.path, notice)
    pictures = partial(
        LabelledPictures,
        preprocessing=data.preprocessing(),
        image_size=data.image_size,
        num_classes=1,
        seed=seed,
    )
    train = image_set(pictures(source=source, training=True))
    if data.eval_path == "none":
        return train, None
    real = _open_matching(data, data.eval_path, notice, split="eval") if data.eval_path else source
    if 0 < data.eval_samples < len(real):
        real = Chosen(real, np.arange(data.eval_samples))
    return train, image_set(pictures(source=real, training=False, numbered=True))


def _open_matching(
    data: PictureData, path: str, notice: Callable[[str], None], *, split: str = "train"
) -> ImageSource:
    pictures = open_pictures(path, "eval" if split == "eval" else "train", notice=notice)
    source: Pictures | CatHeads = pictures
    if data.frame == "head":
        source = CatHeads(pictures, expanded(path))
    if not data.match:
        return source
    matching = [i for i in range(len(source)) if fnmatchcase(source.path(i), data.match)]
    if not matching:
        raise UserError(
            f"none of the {len(source)} images matches '{data.match}'",
            where="data.match",
            todo=f"The first one is {source.path(0)}.",
        )
    return Chosen(source, np.asarray(matching, dtype=np.int64))
