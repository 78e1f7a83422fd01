"""Similarity of two images: PSNR and SSIM as in tf.image.

Both are computed from [..., channels, height, width], with one value per image.
"""

import torch
import torch.nn.functional as F
from torch import Tensor

_WINDOW = 11
_SIGMA = 1.5
_K1, _K2 = 0.01, 0.03


def psnr(images: Tensor, references: Tensor, *, peak: float) -> Tensor:
    """Return the peak signal-to-noise ratio in dB.

    Args:
        images: Images [..., channels, height, width].
        references: The reference images, of the same shape.
        peak: The largest possible value, 1 or 255.
    """
    # float32: the difference of two uint8 would wrap around.
    error = (images.to(torch.float32) - references.to(torch.float32)).square()
    return -10 * torch.log10(error.mean(dim=(-3, -2, -1)) / peak**2)


def ssim(images: Tensor, references: Tensor, *, peak: float) -> Tensor:
    """Return the structural similarity, -1 to 1, with an 11 x 11 Gaussian window of deviation 1.5.

    Z. Wang et al., "Image quality assessment: from error visibility to structural similarity",
    IEEE Transactions on Image Processing 13 (2004), with the population variance in the window,
    and without a border.

    Args:
        images: Images [..., channels, height, width], with sides of at least 11 pixels.
        references: The reference images, of the same shape.
        peak: The largest possible value, 1 or 255.

    Raises:
        ValueError: A side is shorter than the window.
    """
    height, width = images.shape[-2:]
    if min(height, width) < _WINDOW:
        raise ValueError(f"SSIM needs sides of at least {_WINDOW} pixels, not {width} x {height}")
    planes = images.to(torch.float32).reshape(-1, 1, height, width)
    reference_planes = references.to(torch.float32).reshape(-1, 1, height, width)
    distance = torch.arange(_WINDOW, device=planes.device, dtype=torch.float32) - _WINDOW // 2
    line = torch.softmax(-distance.square() / (2 * _SIGMA**2), dim=0)
    window = torch.outer(line, line)[None, None]

    mean, reference_mean = F.conv2d(planes, window), F.conv2d(reference_planes, window)
    product = mean * reference_mean
    squares = mean.square() + reference_mean.square()
    c1, c2 = (_K1 * peak) ** 2, (_K2 * peak) ** 2
    luminance = (2 * product + c1) / (squares + c1)
    covariance = 2 * F.conv2d(planes * reference_planes, window) - 2 * product
    variances = F.conv2d(planes.square() + reference_planes.square(), window) - squares
    similarity = luminance * (covariance + c2) / (variances + c2)
    return similarity.mean(dim=(-2, -1)).reshape(images.shape[:-2]).mean(dim=-1)
