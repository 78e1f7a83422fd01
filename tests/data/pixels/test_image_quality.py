import math

import numpy as np
import pytest
import torch
from scipy.signal import convolve2d

from jumar.data.pixels.image_quality import psnr, ssim


def noisy(amount: float) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(3)
    clean = torch.rand(2, 3, 20, 24, generator=generator)
    return clean, clean + amount * torch.randn(clean.shape, generator=generator)


def test_identical_images_have_the_best_score() -> None:
    clean, _ = noisy(0.0)
    assert psnr(clean, clean, peak=1).eq(math.inf).all()
    assert torch.allclose(ssim(clean, clean, peak=1), torch.ones(2), atol=1e-5)


def test_more_noise_lowers_the_score() -> None:
    little, much = (noisy(amount) for amount in (0.05, 0.2))
    assert (psnr(*little, peak=1) > psnr(*much, peak=1)).all()
    assert (ssim(*little, peak=1) > ssim(*much, peak=1)).all()


def test_difference_of_one_level_is_48_db() -> None:
    images = torch.full((1, 3, 4, 4), 100, dtype=torch.uint8)
    assert float(psnr(images, images + 1, peak=255)) == pytest.approx(20 * math.log10(255))
    assert float(psnr(images + 1, images, peak=255)) == pytest.approx(20 * math.log10(255))


def test_image_smaller_than_the_window_is_refused() -> None:
    small = torch.zeros(1, 3, 10, 30)
    with pytest.raises(ValueError, match="at least 11 pixels, not 30 x 10"):
        ssim(small, small, peak=1)


@pytest.mark.parametrize("peak", [1.0, 255.0])
def test_structural_similarity_matches_its_paper(peak: float) -> None:
    clean, other = (each.double().numpy() * peak for each in noisy(0.1))
    line = np.exp(-(np.arange(-5, 6) ** 2) / (2 * 1.5**2))
    window = np.outer(line, line) / line.sum() ** 2

    def smooth(plane: np.ndarray) -> np.ndarray:
        return convolve2d(plane, window, mode="valid")

    expected = np.empty((2, 3))
    for place in np.ndindex(2, 3):
        x, y = clean[place], other[place]
        mx, my = smooth(x), smooth(y)
        vx, vy = smooth(x * x) - mx**2, smooth(y * y) - my**2
        c1, c2 = (0.01 * peak) ** 2, (0.03 * peak) ** 2
        covariance = smooth(x * y) - mx * my
        similarity = (2 * mx * my + c1) * (2 * covariance + c2)
        expected[place] = (similarity / ((mx**2 + my**2 + c1) * (vx + vy + c2))).mean()
    result = ssim(torch.from_numpy(clean), torch.from_numpy(other), peak=peak)
    assert result.shape == (2,)
    assert result.tolist() == pytest.approx(expected.mean(axis=1).tolist(), abs=1e-4)
    assert ssim(torch.zeros(2, 3, 11, 11), torch.zeros(2, 3, 11, 11), peak=1).tolist() == [1.0] * 2
