"""Colour changes of tf.image on batches, on whatever device the batch is.

Images are float tensors [..., channels, height, width] in RGB order; a factor is a number or a
tensor with one value a sample. Names and formulas are those of tf.image (TensorFlow 1.15). The
scale of the values is free (0 to 1 or 0 to 255) unless a function says otherwise.
"""

import torch
from torch import Tensor

Factor = float | Tensor

_GRAY_WEIGHTS = (0.2989, 0.5870, 0.1140)
_YUV_FROM_RGB = (
    (0.299, 0.587, 0.114),
    (-0.14714119, -0.28886916, 0.43601035),
    (0.61497538, -0.51496512, -0.10001026),
)


def to_float(images: Tensor) -> Tensor:
    """uint8 as float32 in 0 to 1 (`tf.image.convert_image_dtype`)."""
    return images.to(torch.float32) * (1 / 255)


def to_uint8(images: Tensor) -> Tensor:
    """Floats of 0 to 1 as uint8, values outside saturated (`convert_image_dtype`)."""
    return (images * 255.5).clamp(0, 255).to(torch.uint8)


def adjust_brightness(images: Tensor, delta: Factor) -> Tensor:
    """Add to every value."""
    return images + _per_sample(delta, images)


def adjust_contrast(images: Tensor, factor: Factor) -> Tensor:
    """Scale the distance of every value from the mean of its channel in its picture."""
    mean = images.mean(dim=(-2, -1), keepdim=True)
    return (images - mean) * _per_sample(factor, images) + mean


def jitter(
    images: Tensor,
    *,
    brightness: Factor = 0.0,
    contrast: Factor = 1.0,
    saturation: Factor | None = None,
) -> Tensor:
    """`adjust_brightness`, `adjust_contrast`, `adjust_saturation` in turn, in a third of the time.

    The first two together are one factor and one shift for each channel of each picture.

    Args:
        images: Pictures of any number type and memory format.
        brightness: Is added.
        contrast: Factor.
        saturation: Factor; a factor of 1 limits the saturation to 1, None does not.

    Returns:
        New float32 pictures in contiguous memory: with the channels innermost, the largest of
        three would be a loop of three.
    """
    changed = images.to(torch.float32, memory_format=torch.contiguous_format, copy=True)
    scale = _per_sample(contrast, changed)
    mean = changed.mean(dim=(-2, -1), keepdim=True)
    changed.mul_(scale).add_(mean * (1 - scale) + _per_sample(brightness, changed))
    if saturation is None:
        return changed
    value = changed.amax(dim=-3, keepdim=True)
    kept = _saturation_scale(changed, value, saturation)
    return changed.sub_(value).mul_(kept).add_(value)


def adjust_saturation(images: Tensor, factor: Factor) -> Tensor:
    """Scale the saturation of HSV, which is kept within 0 to 1.

    Hue and value stay, so each channel's distance from the largest one scales by the same
    number; going through HSV would cost ten times as much.
    """
    value = images.amax(dim=-3, keepdim=True)
    return value - (value - images) * _saturation_scale(images, value, factor)


def adjust_hue(images: Tensor, delta: Factor) -> Tensor:
    """Turn the hue by a part of the colour circle, -1 to 1."""
    hsv = rgb_to_hsv(images)
    hue = (hsv.narrow(-3, 0, 1) + _per_sample(delta, images)).remainder(1.0)
    return hsv_to_rgb(torch.cat([hue, hsv.narrow(-3, 1, 2)], dim=-3))


def adjust_gamma(images: Tensor, gamma: float, gain: float = 1.0) -> Tensor:
    """`gain * images ** gamma`, for values of 0 to 1."""
    return gain * images**gamma


def rgb_to_grayscale(images: Tensor) -> Tensor:
    """Luma, one channel."""
    weights = images.new_tensor(_GRAY_WEIGHTS)[:, None, None]
    return (images * weights).sum(dim=-3, keepdim=True)


def rgb_to_yuv(images: Tensor) -> Tensor:
    """YUV of values of 0 to 1; U and V lie around 0."""
    return torch.einsum("oc,...chw->...ohw", images.new_tensor(_YUV_FROM_RGB), images)


def rgb_to_hsv(images: Tensor) -> Tensor:
    """Hue and saturation in 0 to 1, value on the scale of the input."""
    red, green, blue = images.unbind(dim=-3)
    value = images.amax(dim=-3)
    spread = value - images.amin(dim=-3)
    zero = torch.zeros_like(value)
    divisor = torch.where(spread > 0, 6 * spread, torch.ones_like(spread))
    hue = torch.where(
        red == value,
        (green - blue) / divisor,
        torch.where(
            green == value, (blue - red) / divisor + 2 / 6, (red - green) / divisor + 4 / 6
        ),
    )
    saturation = torch.where(value > 0, spread / torch.where(value > 0, value, 1), zero)
    return torch.stack([torch.where(hue < 0, hue + 1, hue), saturation, value], dim=-3)


def hsv_to_rgb(images: Tensor) -> Tensor:
    """The inverse of `rgb_to_hsv`."""
    hue, saturation, value = (part.unsqueeze(-3) for part in images.unbind(dim=-3))
    # Distance on the colour circle from the opposite of red, green and blue, in sixths.
    offset = images.new_tensor((0.0, 4.0, 2.0))[:, None, None]
    place = (hue * 6 + offset).remainder(6.0)
    share = torch.minimum((place - 3).abs() - 1, torch.ones_like(place)).clamp(0, 1)
    return value - value * saturation * (1 - share)


def standardize(images: Tensor) -> Tensor:
    """Zero mean and unit deviation for each picture (`per_image_standardization`)."""
    count = images.shape[-3] * images.shape[-2] * images.shape[-1]
    mean = images.mean(dim=(-3, -2, -1), keepdim=True)
    deviation = images.std(dim=(-3, -2, -1), keepdim=True, correction=0)
    # A constant picture would be divided by zero.
    return (images - mean) / deviation.clamp_min(count**-0.5)


def _saturation_scale(images: Tensor, value: Tensor, factor: Factor) -> Tensor:
    """By how much each channel's distance from the largest one changes."""
    spread = value - images.amin(dim=-3, keepdim=True)
    # Full saturation is reached when the smallest channel is 0. A pixel without a positive channel
    # has no saturation and becomes grey, as in TensorFlow.
    largest = torch.where(spread > 0, value / spread, 1).clamp_(min=0)
    return torch.minimum(largest, _per_sample(factor, images)).clamp_(min=0)


def _per_sample(factor: Factor, images: Tensor) -> Tensor:
    values = torch.as_tensor(factor, dtype=images.dtype, device=images.device)
    return values[..., None, None, None]
