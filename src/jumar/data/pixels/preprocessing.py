"""Converts encoded images to the network's input, partly on the host and partly on the device.

The host decodes, crops, resizes and mirrors images, and sends bytes.

The device changes colours and normalises whole batches; on the host, that would take a third of the
pipeline's time and send four times as much data. One class covers the original AlexNet and
ResNeXt-50 recipes with its settings. For other preprocessing, subclass it and override
`train_image`, `eval_image` or `on_device`.
"""

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from jumar.data.pixels import color
from jumar.data.pixels.crop_window import CropRule, Window, draw_window, scaled
from jumar.data.pixels.decode import EncodedImage
from jumar.data.pixels.resize import (
    apply_taps,
    axis_taps,
    crop_and_resize,
    mirror,
    resize,
    resize_fast,
)
from jumar.data.samples import Arrays, Batch, Record
from jumar.devices.registry import device_kind
from jumar.ground.errors import UserError
from jumar.settings import check_intervals, setting

_COLOR_CHANGES = ("brightness", "contrast", "saturation")
"""Names of the tensors with the amount of each change, [N]."""

_CROPS = {"crop": ("picture", "frame")}
_CACHED_PICTURES = 4
"""Number of images whose colours a CPU changes at once, which fit into its cache: a dozen passes
over a batch of hundreds of megabytes would each access main memory."""


@dataclass(frozen=True, kw_only=True)
class ImagePreprocessing:
    """How to crop, change and normalise images, in training and in evaluation."""

    crop: str = setting(
        "picture",
        "Training window: drawn in the image, drawn in a square frame and stretched to the "
        "image (as ResNeXt's original does), or none.",
        choices=("picture", "frame", "none"),
    )
    crop_area: tuple[float, ...] = setting(
        (0.08, 1.0),
        "Minimum and maximum fraction of the image's area.",
        minimum=0.0,
        maximum=1.0,
        only_with=_CROPS,
    )
    crop_aspect: tuple[float, ...] = setting(
        (0.75, 1.333),
        "Minimum and maximum width divided by height.",
        minimum=0.01,
        only_with=_CROPS,
    )
    crop_attempts: int = setting(
        10, "Attempts before the whole image is used.", minimum=1, only_with=_CROPS
    )
    crop_object_covered: float = setting(
        0.1,
        "Minimum fraction of an annotated object (else of the image) in the window.",
        minimum=0.0,
        maximum=1.0,
        only_with=_CROPS,
    )
    crop_frame: int = setting(
        280,
        "Side of the square frame for crop=frame.",
        unit="px",
        minimum=1,
        only_with={"crop": ("frame",)},
    )
    resize: str = setting(
        "antialias",
        "Training images: antialias is fast and averages; legacy is the original's bilinear, "
        "without averaging, and slower.",
        choices=("antialias", "legacy"),
    )
    flip: bool = setting(True, "Mirror half of the training images; never for digits or text.")
    brightness: float = setting(
        0.0, "Maximum change of brightness.", unit="levels of 0 to 255", minimum=0.0
    )
    contrast: tuple[float, ...] = setting(
        (1.0, 1.0), "Minimum and maximum factor of contrast.", minimum=0.0
    )
    saturation: tuple[float, ...] = setting(
        (1.0, 1.0), "Minimum and maximum factor of saturation.", minimum=0.0
    )
    eval_view: str = setting(
        "center",
        "Evaluation: center resizes the whole image and crops the centre (AlexNet), box "
        "squeezes the central part (ResNeXt), whole squeezes the whole image.",
        choices=("center", "box", "whole"),
    )
    eval_fraction: float = setting(
        0.875,
        "Fraction of each side that center and box keep.",
        minimum=0.01,
        maximum=1.0,
        only_with={"eval_view": ("center", "box")},
    )
    mean: tuple[float, ...] = setting(
        (123.675, 116.28, 103.53), "Subtracted from red, green, blue.", unit="levels of 0 to 255"
    )
    std: tuple[float, ...] = setting(
        (58.395, 57.12, 57.375),
        "Divides red, green, blue.",
        unit="levels of 0 to 255",
        minimum=1e-6,
    )

    def check(self) -> None:
        """Check ranges and the number of constants.

        Raises:
            UserError: A range is invalid, or there are not exactly three constants.
        """
        check_intervals(self, "crop_area", "crop_aspect", "contrast", "saturation")
        for name in ("mean", "std"):
            if len(getattr(self, name)) != 3:
                raise UserError(
                    f"'{name}' needs three numbers (red, green, blue), not {getattr(self, name)}",
                    todo=f"For instance: {name}=127.5,127.5,127.5",
                )

    def train_image(self, record: Record, image_size: int, random: np.random.Generator) -> Arrays:
        """Prepare one training sample on the host.

        Args:
            record: The encoded image with its annotated objects.
            image_size: Side of the result.
            random: The sample's random generator, created from seed, epoch and index, so that it
                is the same in every worker and on every rank.

        Returns:
            `image` as uint8 [image_size, image_size, 3], and one float32 for each colour change
            that `on_device` applies.

        Raises:
            DecodeError: The image is damaged.
        """
        picture = EncodedImage(record.encoded)
        window = self._window(picture, record, random)
        size = (image_size, image_size)
        if self.resize == "antialias":
            pixels = resize_fast(_decoded_window(picture, window, image_size), size)
        else:
            decoded = picture.decode(fast=True, reuse=True)
            pixels = _levels(resize(_cut(decoded, window), size))
        if self.flip and random.random() < 0.5:
            pixels = mirror(pixels)
        arrays: Arrays = {"image": pixels}
        if self.brightness > 0:
            arrays["brightness"] = _uniform(random, -self.brightness, self.brightness)
        if self.contrast != (1.0, 1.0):
            arrays["contrast"] = _uniform(random, *self.contrast)
        if self.saturation != (1.0, 1.0):
            arrays["saturation"] = _uniform(random, *self.saturation)
        return arrays

    def eval_image(self, record: Record, image_size: int) -> Arrays:
        """Prepare one evaluation sample on the host: `eval_levels` rounded to bytes.

        Raises:
            DecodeError: The image is damaged.
        """
        return {"image": _levels(self.eval_levels(record, image_size))}

    def eval_levels(self, record: Record, image_size: int) -> NDArray[np.float32]:
        """Return the evaluation view as float32 [image_size, image_size, 3], 0 to 255.

        The views `center` and `box` compute what the originals' graphs do: they decode with
        libjpeg's fast method, which both originals also use in evaluation, and then resize,
        `center` by TensorFlow 1's bilinear method and `box` by `crop_and_resize`.

        Raises:
            DecodeError: The image is damaged.
        """
        pixels = EncodedImage(record.encoded).decode(fast=True, reuse=True)
        if self.eval_view == "whole":
            return resize_fast(pixels, (image_size, image_size)).astype(np.float32)
        if self.eval_view == "box":
            edge = (1 - self.eval_fraction) / 2
            return crop_and_resize(
                pixels, (edge, edge, 1 - edge, 1 - edge), (image_size, image_size)
            )
        side = round(image_size / self.eval_fraction)
        start = (side - image_size) // 2
        rows = axis_taps(pixels.shape[0], side).part(start, start + image_size)
        columns = axis_taps(pixels.shape[1], side).part(start, start + image_size)
        return apply_taps(pixels, rows, columns)

    def on_device(self, batch: Batch, training: bool) -> Tensor:
        """Return the network's input.

        Args:
            batch: On the device: `image` [N, 3, height, width], uint8 or float from 0 to 255, and
                the colour changes [N] that `train_image` drew.
            training: Whether to apply the colour changes.

        Returns:
            float32 [N, 3, height, width], normalised, in the memory format of the input.
        """
        changes = {name: batch[name] for name in _COLOR_CHANGES if name in batch}
        if training and changes:
            return _recolored(batch["image"], changes, self.mean, self.std)
        return _normalized(batch["image"], self.mean, self.std)

    def _window(self, picture: EncodedImage, record: Record, random: np.random.Generator) -> Window:
        height, width = picture.height, picture.width
        if self.crop == "none":
            return Window(0, 0, height, width)
        rule = CropRule(
            area=(self.crop_area[0], self.crop_area[1]),
            aspect=(self.crop_aspect[0], self.crop_aspect[1]),
            attempts=self.crop_attempts,
            object_covered=self.crop_object_covered,
        )
        if self.crop == "frame":
            window = draw_window(self.crop_frame, self.crop_frame, rule, random)
            return scaled(window, self.crop_frame, height, width)
        return draw_window(height, width, rule, random, objects=record.boxes)


def alexnet_preprocessing() -> ImagePreprocessing:
    """Like the original AlexNet script, except that each image is mirrored independently (the
    script decides once for a whole run) and that training images are resized with antialiasing.
    """
    return ImagePreprocessing()


def resnext_preprocessing() -> ImagePreprocessing:
    """Like the original ResNeXt-50 script, except that training images are resized with
    antialiasing.

    Its brightness of 0.4 is on the scale of 0 to 255, so it has almost no effect.
    """
    return ImagePreprocessing(
        crop="frame",
        crop_aspect=(3 / 4, 4 / 3),
        crop_attempts=100,
        crop_object_covered=0.0,
        brightness=0.4,
        contrast=(0.4, 1.6),
        saturation=(0.4, 1.6),
        eval_view="box",
        eval_fraction=0.8,
        mean=(121.0, 115.0, 100.0),
        std=(70.0, 68.0, 71.0),
    )


def plain_preprocessing() -> ImagePreprocessing:
    """Resize only, for small images of digits, signs or symbols."""
    return ImagePreprocessing(
        crop="none",
        flip=False,
        eval_view="whole",
        eval_fraction=1.0,
        mean=(127.5, 127.5, 127.5),
        std=(127.5, 127.5, 127.5),
    )


def _decoded_window(picture: EncodedImage, window: Window, image_size: int) -> NDArray[np.uint8]:
    """Return the pixels of a window, decoding the image at the smallest sufficient size."""
    at_least = (
        math.ceil(picture.height * image_size / window.height),
        math.ceil(picture.width * image_size / window.width),
    )
    pixels = picture.decode(fast=True, at_least=at_least, reuse=True)
    height, width = pixels.shape[:2]
    if height != picture.height or width != picture.width:
        top, bottom = _rescaled(window.top, window.height, height / picture.height)
        left, right = _rescaled(window.left, window.width, width / picture.width)
        window = Window(top, left, bottom - top, right - left)
    return _cut(pixels, window)


def _rescaled(start: int, length: int, scale: float) -> tuple[int, int]:
    first = round(start * scale)
    return first, max(first + 1, round((start + length) * scale))


def _cut(pixels: NDArray[np.uint8], window: Window) -> NDArray[np.uint8]:
    top, left, height, width = window
    return pixels[top : top + height, left : left + width]


def _levels(values: NDArray[np.float32]) -> NDArray[np.uint8]:
    return np.rint(values).astype(np.uint8)


def _uniform(random: np.random.Generator, low: float, high: float) -> NDArray[np.float32]:
    return np.asarray(low + (high - low) * random.random(), dtype=np.float32)


def _recolored(
    images: Tensor, changes: Batch, mean: tuple[float, ...], std: tuple[float, ...]
) -> Tensor:
    shift, scale = (value[:, None, None] for value in _constants(mean, std, 1, images.device))
    result = torch.empty_like(images, dtype=torch.float32)
    step = _CACHED_PICTURES if device_kind(images.device.type).on_host else max(1, len(images))
    for start in range(0, len(images), step):
        rows = slice(start, start + step)
        amounts = {name: amount[rows] for name, amount in changes.items()}
        part = color.jitter(images[rows], **amounts)
        result[rows] = part.clamp_(0, 255).sub_(shift).mul_(scale)
    return result


def _normalized(images: Tensor, mean: tuple[float, ...], std: tuple[float, ...]) -> Tensor:
    channels_last = images.permute(0, 2, 3, 1)
    if images.shape[1] > 1 and channels_last.is_contiguous():
        # With channels innermost, broadcasting three values leads to CPU loops of length three;
        # with a whole row of repeated constants, only memory bandwidth limits the speed.
        count, height, width, channels = channels_last.shape
        shift, scale = _constants(mean, std, width, images.device)
        rows = channels_last.reshape(count, height, width * channels).to(torch.float32)
        rows = rows.sub_(shift) if rows.dtype != images.dtype else rows - shift
        return rows.mul_(scale).view(channels_last.shape).permute(0, 3, 1, 2)
    shift, scale = _constants(mean, std, 1, images.device)
    return (images.to(torch.float32) - shift[:, None, None]) * scale[:, None, None]


@lru_cache(maxsize=32)
def _constants(
    mean: tuple[float, ...], std: tuple[float, ...], repeats: int, device: torch.device
) -> tuple[Tensor, Tensor]:
    """Return mean and 1 / std on the device; cached, because each copy to a device blocks."""
    # The first call may be in an evaluation, but tensors created in inference mode cannot be used
    # with autograd later.
    with torch.inference_mode(False):
        shift = torch.tensor(mean, dtype=torch.float32).repeat(repeats)
        scale = 1 / torch.tensor(std, dtype=torch.float32).repeat(repeats)
        return shift.to(device), scale.to(device)
