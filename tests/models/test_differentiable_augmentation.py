import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from jumar.models.differentiable_augmentation import (
    CHANGES,
    DifferentiableAugmentation,
    cut_out,
    recolored,
    translated,
)
from jumar.models.keyed_random import keyed_uniform, random_position, set_random_position
from tests.models.test_keyed_random import splitmix


def pictures(count: int = 4, height: int = 16, width: int = 24) -> Tensor:
    torch.manual_seed(1)
    return torch.rand(count, 3, height, width) * 2 - 1


def changed(images: Tensor, *changes: str, key: int = 1, first_row: int = 0) -> Tensor:
    layer = DifferentiableAugmentation(changes)
    set_random_position(layer, key, first_row)
    return layer(images)


@settings(max_examples=30)
@given(down=st.integers(-16, 16), right=st.integers(-24, 24))
def test_translation_moves_every_pixel_exactly_and_pads_with_zeros(down: int, right: int) -> None:
    images = pictures(2)
    moved = translated(images, torch.full((2,), float(down)), torch.full((2,), float(right)))
    padded = torch.nn.functional.pad(images, (24, 24, 16, 16))
    assert torch.equal(moved, padded[:, :, 16 - down : 32 - down, 24 - right : 48 - right])


def test_images_are_translated_independently() -> None:
    images = pictures(2)
    moved = translated(images, torch.tensor([0.0, 3.0]), torch.tensor([0.0, 0.0]))
    assert torch.equal(moved[0], images[0])
    assert torch.equal(moved[1, :, 3:], images[1, :, :-3])


@settings(max_examples=30)
@given(top=st.floats(0, 0.999), left=st.floats(0, 0.999))
def test_hole_has_half_the_side_or_is_clipped_at_the_border(top: float, left: float) -> None:
    hole = cut_out(torch.ones(1, 1, 16, 24), torch.tensor([top]), torch.tensor([left]))[0, 0] == 0
    rows, columns = hole.any(1), hole.any(0)
    assert torch.equal(hole, rows[:, None] & columns[None, :])
    assert 4 <= int(rows.sum()) <= 8
    assert 6 <= int(columns.sum()) <= 12


def test_colours_follow_the_papers_formulas() -> None:
    images = pictures(1).double()
    one = torch.ones(1, dtype=torch.float64)
    assert torch.allclose(recolored(images, 0 * one, one, one), images)
    assert torch.allclose(recolored(images, 0.25 * one, one, one), images + 0.25)
    grey = recolored(images, 0 * one, 0 * one, one)
    assert torch.allclose(grey, images.mean(1, keepdim=True).expand_as(images))
    flat = recolored(images, 0 * one, one, 0.5 * one)
    assert torch.allclose(flat.mean(), images.mean())
    assert torch.allclose(flat - flat.mean(), 0.5 * (images - images.mean()))


@pytest.mark.parametrize("change", CHANGES)
def test_augmentation_alters_images_and_passes_gradients(change: str) -> None:
    images = pictures().requires_grad_()
    result = changed(images, change)
    assert result.shape == images.shape
    assert not torch.equal(result, images)
    result.sum().backward()
    assert images.grad is not None
    assert bool(images.grad.abs().sum() > 0)


def test_no_augmentation_is_the_identity_and_an_unknown_one_is_refused() -> None:
    images = pictures()
    assert changed(images) is images
    with pytest.raises(ValueError, match="rotation"):
        DifferentiableAugmentation(["rotation"])


def test_augmentations_depend_on_step_and_row_but_not_on_the_split() -> None:
    images = pictures(1).expand(4, -1, -1, -1)
    whole = changed(images, *CHANGES)
    assert all(not torch.equal(whole[0], other) for other in whole[1:])
    parts = [changed(images[:1], *CHANGES, first_row=row) for row in range(4)]
    assert torch.allclose(torch.cat(parts), whole, atol=1e-6)
    assert not torch.equal(changed(images, *CHANGES, key=2), whole)


@pytest.mark.parametrize("change", ["translation", "cutout"])
def test_translated_pixels_keep_their_bits_under_mixed_precision(change: str) -> None:
    images = pictures()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        result = changed(images, change)
    assert result.dtype == torch.float32
    kept = result[result != 0]
    assert bool(torch.isin(kept, images).all())


def test_shifts_reach_an_eighth_of_the_side_in_every_direction() -> None:
    marked = torch.zeros(400, 1, 16, 16)
    marked[:, :, 8, 8] = 1
    places = changed(marked, "translation").flatten(1).argmax(1)
    assert set((places // 16).tolist()) == {6, 7, 8, 9, 10}
    assert set((places % 16).tolist()) == {6, 7, 8, 9, 10}


def test_augmentations_use_seven_random_numbers_per_image() -> None:
    """Brightness, saturation, contrast, shift down and right, and the middle of the hole."""
    images = pictures(5, 16, 32)
    numbers = keyed_uniform(5, 7, random_position(splitmix(3), 6), torch.device("cpu"))
    for row, (image, drawn) in enumerate(zip(images, numbers.tolist(), strict=True)):
        brightness, saturation, contrast, down, right, top, left = drawn

        def one(*changes: str, row: int = row) -> Tensor:
            return changed(images, *changes, key=3, first_row=6)[row]

        lighter = image + brightness - 0.5
        grey = lighter.mean(0, keepdim=True)
        coloured = grey + (lighter - grey) * 2 * saturation
        coloured = coloured.mean() + (coloured - coloured.mean()) * (contrast + 0.5)
        torch.testing.assert_close(one("color"), coloured, rtol=1e-4, atol=1e-5)
        # Up to an eighth of 16 and 32 px: 2 and 4 px to each side.
        rows, columns = math.floor(down * 5) - 2, math.floor(right * 9) - 4
        padded = torch.nn.functional.pad(image, (4, 4, 2, 2))
        moved = padded[:, 2 - rows : 18 - rows, 4 - columns : 36 - columns]
        assert torch.equal(one("translation"), moved)
        holed = image.clone()
        first, before = math.floor(top * 17) - 4, math.floor(left * 33) - 8
        holed[:, max(first, 0) : first + 8, max(before, 0) : before + 16] = 0
        assert torch.equal(one("cutout"), holed)
    whole = changed(images, *CHANGES, key=3, first_row=6)
    assert torch.equal(whole, changed(images, *reversed(CHANGES), key=3, first_row=6))
    assert not torch.equal(whole, changed(images, "color", "translation", key=3, first_row=6))


def test_odd_side_is_shifted_and_holed_by_whole_pixels() -> None:
    ones = torch.ones(1, 1, 12, 13)
    hole = cut_out(ones, torch.tensor([0.5]), torch.tensor([0.5]))[0, 0] == 0
    # Half of 12 and, rounded up, of 13; the middle lies at 0.5 * 13 and 0.5 * 14.
    assert hole.any(1).nonzero().flatten().tolist() == [3, 4, 5, 6, 7, 8]
    assert hole.any(0).nonzero().flatten().tolist() == [4, 5, 6, 7, 8, 9, 10]


def test_unknown_augmentation_is_refused_with_the_known_ones() -> None:
    with pytest.raises(ValueError, match="unknown change") as error:
        DifferentiableAugmentation(["color", "blur"])
    assert str(error.value) == "unknown change 'blur'; known: color, translation, cutout"
    images = pictures(1)
    assert DifferentiableAugmentation([])(images) is images
