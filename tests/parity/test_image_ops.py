"""Every result of the tf.image fixture, made again: resizing, colours, quality, SAME layers."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from jumar.data.pixels import color, image_quality
from jumar.data.pixels.resize import Size, central_window, crop_and_resize, resize
from tests.parity.fixture import ParityCase

Array = NDArray[Any]

RESIZES: dict[str, tuple[str, dict[str, Any]]] = {
    "bilinear": ("float", {}),
    "bilinear_uint8": ("uint8", {}),
    "bilinear_align": ("float", {"coordinates": "align_corners"}),
    "bilinear_half": ("float", {"coordinates": "half_pixel"}),
    "nearest": ("float", {"method": "nearest"}),
    "nearest_uint8": ("uint8", {"method": "nearest"}),
    "nearest_align": ("float", {"method": "nearest", "coordinates": "align_corners"}),
    "nearest_half": ("float", {"method": "nearest", "coordinates": "half_pixel"}),
    "bicubic": ("float", {"method": "bicubic"}),
    "bicubic_half": ("float", {"method": "bicubic", "coordinates": "half_pixel"}),
    "area": ("float", {"method": "area"}),
    "area_uint8": ("uint8", {"method": "area"}),
    "resize_images_v1": ("float", {}),
    "resize_images_v1_uint8": ("uint8", {}),
    "resize_v2_bilinear": ("float", {"coordinates": "half_pixel"}),
    "resize_v2_bilinear_antialias": ("float", {"method": "antialias"}),
}

CROPS: dict[str, tuple[str, dict[str, Any]]] = {
    "crop_and_resize": ("float", {}),
    "crop_and_resize_extrapolation9": ("float", {"extrapolation": 9.0}),
    "crop_and_resize_nearest": ("float", {"method": "nearest"}),
    "crop_and_resize_uint8": ("uint8", {}),
}

# The fixture does not name the amounts. Solving for them gave these round numbers.
COLORS: dict[str, Callable[[Tensor], Tensor]] = {
    "brightness": lambda x: color.adjust_brightness(x, 0.3),
    "contrast": lambda x: color.adjust_contrast(x, 1.7),
    "contrast_low": lambda x: color.adjust_contrast(x, 0.4),
    "saturation": lambda x: color.adjust_saturation(x, 1.5),
    "saturation_low": lambda x: color.adjust_saturation(x, 0.4),
}
COLORS_OF_BYTES = ("brightness", "contrast", "saturation")
NOT_HERE = {
    *(f"op/adjust/{name}" for name in ("hue", "gamma", "gray", "hsv", "yuv", "standardization")),
    "op/adjust_uint8/gray",
    "op/convert_uint8_to_float",
    "op/convert_float_to_uint8_saturate",
}
"""Results of functions that no recipe needs."""


@pytest.fixture(scope="module")
def case(parity: Path) -> ParityCase:
    return ParityCase(parity / "image_ops.npz")


def nchw(array: Array) -> Tensor:
    return torch.from_numpy(np.ascontiguousarray(np.moveaxis(array, -1, 1)))


def nhwc(tensor: Tensor) -> Array:
    return np.moveaxis(tensor.numpy(), 1, -1)


def images(case: ParityCase, kind: str) -> Array:
    return case.input("float_images" if kind == "float" else "uint8_images")


def same_padding(size: int, kernel: int, stride: int) -> tuple[int, int]:
    total = max((-(-size // stride) - 1) * stride + kernel - size, 0)
    return total // 2, total - total // 2


def padded(x: Tensor, kernel: int, stride: int, value: float = 0.0) -> Tensor:
    top, bottom = same_padding(x.shape[2], kernel, stride)
    left, right = same_padding(x.shape[3], kernel, stride)
    return F.pad(x, (left, right, top, bottom), value=value)


def transposed(x: Tensor, kernel: Array, stride: int) -> Tensor:
    """SAME: the gradient of a SAME convolution of an input of `stride` times the size."""
    weight = torch.from_numpy(kernel).permute(3, 2, 0, 1).contiguous()
    full = F.conv_transpose2d(x, weight, stride=stride)
    sides: list[slice] = []
    for axis in (2, 3):
        before = max(kernel.shape[0] - stride, 0) // 2
        sides.append(slice(before, before + x.shape[axis] * stride))
        missing = sides[-1].stop - full.shape[axis]
        if missing > 0:
            full = F.pad(full, (0, missing, 0, 0) if axis == 3 else (0, 0, 0, missing))
    return full[:, :, sides[0], sides[1]]


def resizing_keys(case: ParityCase) -> list[str]:
    return [key for key in case.meta["results"] if key.split("/")[1] in RESIZES]


def crop_keys(case: ParityCase) -> list[str]:
    return [key for key in case.meta["results"] if key.split("/")[1] in CROPS]


def central_fractions(case: ParityCase) -> list[str]:
    prefix = "op/central_crop/"
    return [key.removeprefix(prefix) for key in case.meta["results"] if key.startswith(prefix)]


def layers(case: ParityCase) -> dict[str, Tensor]:
    x = nchw(case.input("float_images"))

    def weight(name: str) -> Tensor:
        return torch.from_numpy(case.input(name)).permute(3, 2, 0, 1).contiguous()

    depthwise = torch.from_numpy(case.input("kernel_dw")).permute(2, 3, 0, 1).contiguous()
    made: dict[str, Tensor] = {}
    for name in (key.removeprefix("op/") for key in case.meta["results"]):
        if matched := re.fullmatch(r"(max|avg)_pool_same_(\d+)_(\d+)", name):
            made[name] = pooled(x, matched[1], int(matched[2]), int(matched[3]))
        elif matched := re.fullmatch(r"conv_atrous(\d+)_same_k(\d+)", name):
            rate, side = int(matched[1]), int(matched[2])
            full = padded(x, rate * (side - 1) + 1, 1)
            made[name] = F.conv2d(full, weight(f"kernel{side}{side}"), dilation=rate)
        elif matched := re.fullmatch(r"(\w+?)_(same|valid)_k(\d+)_s(\d+)", name):
            side, stride = int(matched[3]), int(matched[4])
            shown = padded(x, side, stride) if matched[2] == "same" else x
            if matched[1] == "conv":
                made[name] = F.conv2d(shown, weight(f"kernel{side}{side}"), stride=stride)
            elif matched[1] == "depthwise":
                made[name] = F.conv2d(shown, depthwise, stride=stride, groups=x.shape[1])
            elif matched[1] == "conv_transpose":
                kernel = case.input("kernel_t" if side == 3 else f"kernel_t{side}{side}")
                made[name] = transposed(x, kernel, stride)
    return made


def pooled(x: Tensor, kind: str, kernel: int, stride: int) -> Tensor:
    """SAME pooling; an average counts no padding."""
    if kind == "max":
        return F.max_pool2d(padded(x, kernel, stride, float("-inf")), kernel, stride)
    ones = F.avg_pool2d(padded(torch.ones_like(x), kernel, stride), kernel, stride)
    return F.avg_pool2d(padded(x, kernel, stride), kernel, stride) / ones


def test_every_resizing_mode_equals_tensorflow(case: ParityCase) -> None:
    keys = resizing_keys(case)
    for key in keys:
        _, mode, shape = key.split("/")
        kind, options = RESIZES[mode]
        height, width = (int(side) for side in shape.split("x"))
        case.check(key, resize(images(case, kind), (height, width), **options))
    assert {key.split("/")[1] for key in keys} == set(RESIZES)


def test_nearest_keeps_the_type_of_the_pixels(case: ParityCase) -> None:
    pixels = case.input("uint8_images")
    assert resize(pixels, (14, 18), method="nearest").dtype == np.uint8


def test_crop_and_resize_equals_tensorflow(case: ParityCase) -> None:
    boxes = case.input("boxes").tolist()
    which = case.input("box_indices").tolist()
    keys = crop_keys(case)
    for key in keys:
        _, mode, shape = key.split("/")
        kind, options = CROPS[mode]
        height, width = (int(side) for side in shape.split("x"))
        pixels = images(case, kind)
        made = [
            crop_and_resize(pixels[index], tuple(box), (height, width), **options)
            for index, box in zip(which, boxes, strict=True)
        ]
        case.check(key, np.stack(made))
    assert {key.split("/")[1] for key in keys} == set(CROPS)


def test_central_crop_equals_tensorflow(case: ParityCase) -> None:
    picture = case.input("float_images")[0]
    for fraction in central_fractions(case):
        top, left, height, width = central_window(Size(*picture.shape[:2]), float(fraction))
        case.check(f"op/central_crop/{fraction}", picture[top : top + height, left : left + width])


@pytest.mark.parametrize("name", COLORS)
def test_colour_changes_equal_tensorflow(case: ParityCase, name: str) -> None:
    unit = nchw(((case.input("float_images") + 2) / 5).astype(np.float32))
    case.check(f"op/adjust/{name}", nhwc(COLORS[name](unit)))


@pytest.mark.parametrize("name", COLORS_OF_BYTES)
def test_colour_changes_of_bytes_equal_tensorflow(case: ParityCase, name: str) -> None:
    # Floats and bytes as tf.image.convert_image_dtype makes them.
    unit = nchw(case.input("uint8_images")) * np.float32(1 / 255)
    ours = nhwc((COLORS[name](unit) * 255.5).clamp(0, 255).to(torch.uint8))
    stored = case.arrays[f"r/op/adjust_uint8/{name}"]
    assert np.array_equal(ours, stored)


def test_psnr_and_ssim_equal_tensorflow(case: ParityCase) -> None:
    pixels, others = nchw(case.input("uint8_images")), nchw(case.input("uint8_other"))
    case.check("op/psnr_uint8", image_quality.psnr(pixels, others, peak=255).numpy())
    unit = nchw(((case.input("float_images") + 2) / 5).astype(np.float32))
    case.check("op/psnr_float", image_quality.psnr(unit, others / 255, peak=1).numpy())
    clean, noise = case.input("ssim_a"), case.input("ssim_noise")
    noisy = (clean + noise).astype(np.float32)
    case.check("op/ssim", image_quality.ssim(nchw(clean), nchw(noisy), peak=1).numpy())


def test_padded_layers_equal_tensorflow(case: ParityCase) -> None:
    for name, made in layers(case).items():
        case.check(f"op/{name}", nhwc(made))


def test_every_fixture_result_is_covered(case: ParityCase) -> None:
    replayed = {
        *resizing_keys(case),
        *crop_keys(case),
        *(f"op/central_crop/{fraction}" for fraction in central_fractions(case)),
        *(f"op/adjust/{name}" for name in COLORS),
        *(f"op/adjust_uint8/{name}" for name in COLORS_OF_BYTES),
        *("op/psnr_uint8", "op/psnr_float", "op/ssim"),
        *(f"op/{name}" for name in layers(case)),
    }
    assert replayed == set(case.meta["results"]) - NOT_HERE
