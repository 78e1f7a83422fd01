"""What denoisers share: frames go through one by one."""

from collections.abc import Iterator

import torch
from torch import Tensor

from tests.cli.small_denoisers import inverse, previous


def counted(frames: int, taken: list[int]) -> Iterator[Tensor]:
    for number in range(frames):
        taken.append(number)
        yield torch.full((1, 3, 2, 2), number / 10)


def test_frame_is_returned_before_the_next_one_is_requested() -> None:
    recipe, taken = inverse(), []
    clean = recipe.denoise_frames(recipe.build_model(), counted(5, taken))
    for number in range(5):
        assert torch.allclose(next(clean), torch.full((1, 3, 2, 2), 1 - number / 10))
        assert len(taken) == number + 1
    assert list(clean) == []


def test_recipe_uses_neighbours_only_if_it_iterates_over_frames() -> None:
    assert not inverse().looks_at_neighbours()
    assert previous().looks_at_neighbours()
