import colorsys

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from jumar.data.pixels import color


def pictures(count: int = 4, scale: float = 1.0, shift: float = 0.0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(7)
    return torch.rand(count, 3, 5, 6, generator=generator) * scale + shift


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


CHANGES = {
    "brightness": color.adjust_brightness,
    "contrast": color.adjust_contrast,
    "saturation": color.adjust_saturation,
}
NEUTRAL = {"brightness": 0.0, "contrast": 1.0, "saturation": 1.0}


@pytest.mark.parametrize("name", CHANGES)
@pytest.mark.parametrize("scale", [1.0, 255.0])
def test_neutral_amount_changes_nothing(name: str, scale: float) -> None:
    images = pictures(scale=scale)
    assert torch.allclose(CHANGES[name](images, NEUTRAL[name]), images, atol=1e-5 * scale)


@pytest.mark.parametrize("name", CHANGES)
def test_per_sample_amounts_equal_processing_one_by_one(name: str) -> None:
    images, amounts = pictures(), torch.tensor([0.2, 0.7, 1.0, 1.6])
    together = CHANGES[name](images, amounts)
    for image, amount, changed in zip(images, amounts, together, strict=True):
        assert torch.allclose(CHANGES[name](image, float(amount)), changed, atol=1e-6)


@pytest.mark.parametrize("layout", [torch.channels_last, torch.contiguous_format])
@pytest.mark.parametrize(("scale", "shift"), [(1.0, 0.0), (255.0, 0.0), (400.0, -60.0)])
def test_combined_changes_equal_sequential_ones(
    layout: torch.memory_format, scale: float, shift: float
) -> None:
    images = pictures(scale=scale, shift=shift).to(memory_format=layout)
    before = images.clone()
    amounts = {
        "brightness": torch.tensor([-9.0, 0.0, 0.4, 5.0]),
        "contrast": torch.tensor([0.6, 1.4, 1.0, 0.0]),
        "saturation": torch.tensor([1.4, 0.6, 3.0, 1.0]),
    }
    slow = images
    for name, amount in amounts.items():
        slow = CHANGES[name](slow, amount)
    assert torch.allclose(color.jitter(images, **amounts), slow, atol=1e-5 * scale + 1e-5)
    assert torch.equal(images, before)
    assert torch.allclose(color.jitter(images), images, atol=1e-6 * scale)


@pytest.mark.parametrize("name", CHANGES)
def test_channels_last_memory_format_is_kept(name: str) -> None:
    images = pictures().to(memory_format=torch.channels_last)
    changed = CHANGES[name](images, torch.full((4,), 0.8))
    assert torch.allclose(changed, CHANGES[name](images.contiguous(), 0.8), atol=1e-6)


@given(st.tuples(*[st.integers(0, 255)] * 3))
def test_hsv_matches_the_standard_library_and_round_trips(rgb: tuple[int, ...]) -> None:
    unit = torch.tensor(rgb, dtype=torch.float32)[:, None, None] / 255
    hsv = rgb_to_hsv(unit)
    expected = torch.tensor(colorsys.rgb_to_hsv(*(value / 255 for value in rgb)))
    assert torch.allclose(hsv[:, 0, 0], expected, atol=1e-5)
    assert torch.allclose(hsv_to_rgb(hsv), unit, atol=1e-5)


@pytest.mark.parametrize("factor", [0.0, 0.4, 1.0, 1.6, 5.0])
@pytest.mark.parametrize(("scale", "shift"), [(1.0, 0.0), (300.0, -20.0), (2.0, -1.5)])
def test_saturation_equals_a_round_trip_through_hsv(
    factor: float, scale: float, shift: float
) -> None:
    images = pictures(scale=scale, shift=shift)
    hue, saturation, value = rgb_to_hsv(images).unbind(dim=-3)
    scaled = (saturation * factor).clamp(0, 1)
    slow = hsv_to_rgb(torch.stack([hue, scaled, value], dim=-3))
    assert torch.allclose(color.adjust_saturation(images, factor), slow, atol=2e-5 * scale)


@pytest.mark.parametrize("factor", [0.0, -0.4])
def test_saturation_of_zero_or_less_is_grey(factor: float) -> None:
    grey = color.adjust_saturation(pictures(), factor)
    assert torch.equal(grey[:, 0], grey[:, 1])
    assert torch.equal(grey[:, 0], grey[:, 2])


def test_contrast_keeps_the_mean_of_each_channel_of_each_image() -> None:
    images = pictures()
    changed = color.adjust_contrast(images, 1.7)
    assert torch.allclose(changed.mean(dim=(-2, -1)), images.mean(dim=(-2, -1)), atol=1e-6)
