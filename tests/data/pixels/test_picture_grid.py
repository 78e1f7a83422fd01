import os
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from jumar.data.pixels.picture_grid import picture_grid, save_png, side_by_side
from jumar.ground.errors import UserError


def pictures(count: int, channels: int = 3, height: int = 5, width: int = 7) -> torch.Tensor:
    generator = torch.Generator().manual_seed(count)
    shape = (count, channels, height, width)
    return torch.randint(0, 255, shape, generator=generator, dtype=torch.uint8)


@settings(max_examples=30)
@given(
    count=st.integers(1, 12),
    columns=st.integers(0, 13),
    channels=st.sampled_from([1, 3]),
    sides=st.tuples(st.integers(1, 9), st.integers(1, 9)),
)
def test_every_picture_stands_in_its_place_unchanged(
    count: int, columns: int, channels: int, sides: tuple[int, int]
) -> None:
    height, width = sides
    images = pictures(count, channels, height, width)
    grid = picture_grid(images, columns)
    across = (grid.shape[1] + 2) // (width + 2)
    for number, image in enumerate(images):
        top, left = number // across * (height + 2), number % across * (width + 2)
        cell = grid[top : top + height, left : left + width]
        assert torch.equal(cell, image.expand(3, -1, -1).permute(1, 2, 0))


@pytest.mark.parametrize(
    ("count", "columns", "shape"),
    [(64, 0, (78, 78, 3)), (2, 0, (8, 18, 3)), (3, 2, (18, 18, 3)), (3, 9, (8, 28, 3))],
)
def test_a_grid_is_as_square_as_possible_or_has_the_columns_asked_for(
    count: int, columns: int, shape: tuple[int, ...]
) -> None:
    images = torch.zeros(count, 3, 8, 8, dtype=torch.uint8)
    assert picture_grid(images, columns).shape == shape


def test_gaps_and_places_without_a_picture_are_white() -> None:
    grid = picture_grid(torch.zeros(3, 1, 4, 4, dtype=torch.uint8))
    assert grid.shape == (10, 10, 3)
    assert (grid[4:6] == 255).all()
    assert (grid[:, 4:6] == 255).all()
    assert (grid[6:, 6:] == 255).all()
    assert (grid == 0).sum() == 3 * 3 * 16


def test_a_strip_holds_pictures_of_different_sizes() -> None:
    tall, low = pictures(1, 3, 9, 4)[0], pictures(1, 1, 5, 6)[0]
    strip = side_by_side([tall, low])
    assert strip.shape == (9, 12, 3)
    assert torch.equal(strip[:, :4], tall.permute(1, 2, 0))
    assert torch.equal(strip[:5, 6:], low.expand(3, -1, -1).permute(1, 2, 0))
    assert (strip[5:, 6:] == 255).all()


def test_labels_stand_below_the_pictures_and_are_never_cut() -> None:
    small, large = pictures(1, 3, 6, 4)[0], pictures(1, 3, 20, 90)[0]
    bare = side_by_side([small, large])
    strip = side_by_side([small, large], ["noisy, 20.2 dB", "denoised, 29 dB"])
    assert strip.shape[0] > bare.shape[0] + 8
    assert strip.shape[1] > bare.shape[1] + 40
    assert torch.equal(strip[:20, -90:], large.permute(1, 2, 0))
    below = strip[20:].float().mean(dim=2)
    assert (below < 100).sum() > 50
    assert (below[:, [0, -1]] == 255).all()


def test_a_label_in_any_script_is_no_failure() -> None:
    assert side_by_side(list(pictures(2)), ["原图", ""]).dtype == torch.uint8


@pytest.mark.parametrize(
    "images",
    [
        torch.zeros(2, 3, 4, 4),
        torch.zeros(2, 2, 4, 4, dtype=torch.uint8),
        torch.zeros(0, 3, 4, 4, dtype=torch.uint8),
        torch.zeros(3, 4, 4, dtype=torch.uint8),
    ],
)
def test_what_is_no_set_of_pictures_is_refused(images: torch.Tensor) -> None:
    with pytest.raises(ValueError):
        picture_grid(images)


def test_a_strip_without_pictures_or_with_missing_labels_is_refused() -> None:
    with pytest.raises(ValueError):
        side_by_side([])
    with pytest.raises(ValueError):
        side_by_side(list(pictures(2)), ["one"])


def test_a_saved_picture_reads_back_and_nothing_is_left_beside_it(tmp_path: Path) -> None:
    grid = picture_grid(pictures(4))
    save_png(grid, tmp_path / "new" / "grid.png")
    save_png(grid, tmp_path / "new" / "grid.png")
    with Image.open(tmp_path / "new" / "grid.png") as picture:
        assert picture.format == "PNG"
        assert np.array_equal(np.array(picture), grid.numpy())
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["grid.png"]


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(UserError, match=r"grid\.png: cannot be written"):
        save_png(picture_grid(pictures(1)), tmp_path / "file" / "grid.png")


def test_a_full_disk_leaves_the_picture_that_was_there(tmp_path: Path) -> None:
    path = tmp_path / "grid.png"
    path.write_bytes(b"earlier")
    # Linux' own full disk; the name beside the picture is that of the running process.
    full = Path("/dev/full")
    if not full.exists():
        pytest.skip("needs /dev/full")
    (tmp_path / f".grid.png.{os.getpid()}").symlink_to(full)
    with pytest.raises(UserError, match="No space left"):
        save_png(picture_grid(pictures(4)), path)
    assert [entry.name for entry in tmp_path.iterdir()] == ["grid.png"]
    assert path.read_bytes() == b"earlier"
