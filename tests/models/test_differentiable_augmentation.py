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
from jumar.models.keyed_random import set_random_position


def pictures(count: int = 4, height: int = 16, width: int = 24) -> Tensor:
    torch.manual_seed(1)
    return torch.rand(count, 3, height, width) * 2 - 1


def changed(images: Tensor, *changes: str, key: int = 1, first_row: int = 0) -> Tensor:
    layer = DifferentiableAugmentation(changes)
    set_random_position(layer, key, first_row)
    return layer(images)


@settings(max_examples=30)
@given(down=st.integers(-16, 16), right=st.integers(-24, 24))
def test_a_translation_moves_every_pixel_exactly_and_fills_up_with_zeros(
    down: int, right: int
) -> None:
    images = pictures(2)
    moved = translated(images, torch.full((2,), float(down)), torch.full((2,), float(right)))
    padded = torch.nn.functional.pad(images, (24, 24, 16, 16))
    assert torch.equal(moved, padded[:, :, 16 - down : 32 - down, 24 - right : 48 - right])


def test_pictures_move_one_by_one() -> None:
    images = pictures(2)
    moved = translated(images, torch.tensor([0.0, 3.0]), torch.tensor([0.0, 0.0]))
    assert torch.equal(moved[0], images[0])
    assert torch.equal(moved[1, :, 3:], images[1, :, :-3])


@settings(max_examples=30)
@given(top=st.floats(0, 0.999), left=st.floats(0, 0.999))
def test_a_hole_has_half_the_side_or_is_cut_off_at_the_border(top: float, left: float) -> None:
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
def test_a_change_alters_pictures_and_lets_a_gradient_through(change: str) -> None:
    images = pictures().requires_grad_()
    result = changed(images, change)
    assert result.shape == images.shape
    assert not torch.equal(result, images)
    result.sum().backward()
    assert images.grad is not None
    assert bool(images.grad.abs().sum() > 0)


def test_no_change_gives_the_same_pictures_and_an_unknown_one_is_refused() -> None:
    images = pictures()
    assert changed(images) is images
    with pytest.raises(ValueError, match="rotation"):
        DifferentiableAugmentation(["rotation"])


def test_changes_depend_on_the_step_and_the_row_but_not_on_the_split() -> None:
    images = pictures(1).expand(4, -1, -1, -1)
    whole = changed(images, *CHANGES)
    assert all(not torch.equal(whole[0], other) for other in whole[1:])
    parts = [changed(images[:1], *CHANGES, first_row=row) for row in range(4)]
    assert torch.allclose(torch.cat(parts), whole, atol=1e-6)
    assert not torch.equal(changed(images, *CHANGES, key=2), whole)


@pytest.mark.parametrize("change", ["translation", "cutout"])
def test_what_is_only_moved_keeps_its_bits_under_mixed_precision(change: str) -> None:
    images = pictures()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        result = changed(images, change)
    assert result.dtype == torch.float32
    kept = result[result != 0]
    assert bool(torch.isin(kept, images).all())


def test_shifts_go_up_to_an_eighth_of_the_side_in_every_direction() -> None:
    marked = torch.zeros(400, 1, 16, 16)
    marked[:, :, 8, 8] = 1
    places = changed(marked, "translation").flatten(1).argmax(1)
    assert set((places // 16).tolist()) == {6, 7, 8, 9, 10}
    assert set((places % 16).tolist()) == {6, 7, 8, 9, 10}
