import os
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image, ImageDraw, ImageFont

from jumar.data.pixels.picture_grid import picture_grid, save_png, side_by_side
from jumar.ground.errors import UserError


def pictures(count: int, channels: int = 3, height: int = 5, width: int = 7) -> torch.Tensor:
    generator = torch.Generator().manual_seed(count)
    shape = (count, channels, height, width)
    return torch.randint(0, 255, shape, generator=generator, dtype=torch.uint8)


@settings(max_examples=30)
@given(
    count=st.integers(1, 12),
    columns=st.integers(1, 13),
    channels=st.sampled_from([1, 3]),
    sides=st.tuples(st.integers(1, 9), st.integers(1, 9)),
)
def test_every_image_is_unchanged_in_its_cell(
    count: int, columns: int, channels: int, sides: tuple[int, int]
) -> None:
    height, width = sides
    images = pictures(count, channels, height, width)
    grid = picture_grid(images, columns)
    across = min(columns, count)
    for number, image in enumerate(images):
        top, left = number // across * (height + 2), number % across * (width + 2)
        cell = grid[top : top + height, left : left + width]
        assert torch.equal(cell, image.expand(3, -1, -1).permute(1, 2, 0))


@pytest.mark.parametrize(
    ("count", "columns", "shape"),
    [(64, 8, (78, 78, 3)), (2, 1, (18, 8, 3)), (3, 2, (18, 18, 3)), (3, 9, (8, 28, 3))],
)
def test_grid_has_the_requested_columns_or_one_for_each_image(
    count: int, columns: int, shape: tuple[int, ...]
) -> None:
    images = torch.zeros(count, 3, 8, 8, dtype=torch.uint8)
    assert picture_grid(images, columns).shape == shape


def test_gaps_and_empty_cells_are_white() -> None:
    grid = picture_grid(torch.zeros(3, 1, 4, 4, dtype=torch.uint8), 2)
    assert grid.shape == (10, 10, 3)
    assert (grid[4:6] == 255).all()
    assert (grid[:, 4:6] == 255).all()
    assert (grid[6:, 6:] == 255).all()
    assert (grid == 0).sum() == 3 * 3 * 16


def test_strip_accepts_images_of_different_sizes() -> None:
    tall, low = pictures(1, 3, 9, 4)[0], pictures(1, 1, 5, 6)[0]
    strip = side_by_side([tall, low])
    assert strip.shape == (9, 12, 3)
    assert torch.equal(strip[:, :4], tall.permute(1, 2, 0))
    assert torch.equal(strip[:5, 6:], low.expand(3, -1, -1).permute(1, 2, 0))
    assert (strip[5:, 6:] == 255).all()


def test_labels_are_below_the_images_and_never_truncated() -> None:
    small, large = pictures(1, 3, 6, 4)[0], pictures(1, 3, 20, 90)[0]
    bare = side_by_side([small, large])
    strip = side_by_side([small, large], ["noisy, 20.2 dB", "denoised, 29 dB"])
    assert strip.shape[0] > bare.shape[0] + 8
    assert strip.shape[1] > bare.shape[1] + 40
    assert torch.equal(strip[:20, -90:], large.permute(1, 2, 0))
    below = strip[20:].float().mean(dim=2)
    assert (below < 100).sum() > 50
    assert (below[:, [0, -1]] == 255).all()


def test_labels_in_any_script_are_drawn() -> None:
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
def test_arrays_that_are_not_images_are_refused(images: torch.Tensor) -> None:
    with pytest.raises(ValueError):
        picture_grid(images, 2)


def test_strip_without_images_or_with_missing_labels_is_refused() -> None:
    with pytest.raises(ValueError):
        side_by_side([])
    with pytest.raises(ValueError):
        side_by_side(list(pictures(2)), ["one"])


def test_saved_image_reads_back_and_leaves_no_temporary_file(tmp_path: Path) -> None:
    grid = picture_grid(pictures(4), 2)
    save_png(grid, tmp_path / "new" / "grid.png")
    save_png(grid, tmp_path / "new" / "grid.png")
    with Image.open(tmp_path / "new" / "grid.png") as picture:
        assert picture.format == "PNG"
        assert np.array_equal(np.array(picture), grid.numpy())
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["grid.png"]


def test_unwritable_destination_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(UserError, match=r"grid\.png: cannot be written"):
        save_png(picture_grid(pictures(1), 1), tmp_path / "file" / "grid.png")


def test_full_disk_keeps_the_existing_image(tmp_path: Path) -> None:
    path = tmp_path / "grid.png"
    path.write_bytes(b"earlier")
    # Linux' own full disk; the name beside the image is that of the running process.
    full = Path("/dev/full")
    if not full.exists():
        pytest.skip("needs /dev/full")
    (tmp_path / f".grid.png.{os.getpid()}").symlink_to(full)
    with pytest.raises(UserError, match="No space left"):
        save_png(picture_grid(pictures(4), 2), path)
    assert [entry.name for entry in tmp_path.iterdir()] == ["grid.png"]
    assert path.read_bytes() == b"earlier"


@pytest.mark.parametrize("labels", [("narrow", "i"), ("a much wider label, Ág|", "")])
def test_labels_are_drawn_by_pillow_centred_below_each_image(
    labels: tuple[str, str],
) -> None:
    images = [pictures(1, 3, 11, 80)[0], pictures(1, 1, 15, 3)[0]]
    font = ImageFont.load_default()
    line = round(font.getbbox("Ágjy|")[3])
    boxes = [[round(edge) for edge in font.getbbox(label or " ")] for label in labels]
    words = [max(right - left, 1) + 6 for left, _, right, _ in boxes]
    widths = [max(word, image.shape[2]) for word, image in zip(words, images, strict=True)]
    canvas = Image.new("RGB", (sum(widths) + 2, 15 + line + 3), (255, 255, 255))
    left = 0
    for image, label, box, word, width in zip(images, labels, boxes, words, widths, strict=True):
        picture = Image.fromarray(image.expand(3, -1, -1).permute(1, 2, 0).contiguous().numpy())
        canvas.paste(picture, (left + (width - picture.width) // 2, 0))
        place = (left + (width - word) // 2 + 3 - box[0], picture.height)
        ImageDraw.Draw(canvas).text(place, label, fill=(0, 0, 0), font=font)
        left += width + 2
    assert np.array_equal(side_by_side(images, labels).numpy(), np.asarray(canvas))


@pytest.mark.parametrize(
    ("images", "says"),
    [
        (torch.zeros(2, 3, 4, 4), "an image must be uint8, not torch.float32"),
        (
            torch.zeros(2, 2, 4, 4, dtype=torch.uint8),
            "an image must be [3 or 1, H, W], not [2, 4, 4]",
        ),
        (
            torch.zeros(2, 3, 0, 4, dtype=torch.uint8),
            "an image must be [3 or 1, H, W], not [3, 0, 4]",
        ),
        (
            torch.zeros(0, 3, 4, 4, dtype=torch.uint8),
            "a grid needs images [N, channels, H, W], not [0, 3, 4, 4]",
        ),
        (
            torch.zeros(3, 4, 4, dtype=torch.uint8),
            "a grid needs images [N, channels, H, W], not [3, 4, 4]",
        ),
    ],
)
def test_error_for_a_non_image_array_names_its_shape(images: torch.Tensor, says: str) -> None:
    with pytest.raises(ValueError) as caught:
        picture_grid(images, 2)
    assert str(caught.value) == says


def test_strip_errors_say_what_is_missing() -> None:
    with pytest.raises(ValueError, match=r"^a row needs at least one image$"):
        side_by_side([])
    with pytest.raises(ValueError, match=r"^2 images have 3 labels$"):
        side_by_side(list(pictures(2)), ["1", "2", "3"])
    with pytest.raises(ValueError, match=r"not \[1, 3, 4, 4\]"):
        side_by_side([torch.zeros(1, 3, 4, 4, dtype=torch.uint8)])


def test_grey_images_are_saved_as_grey(tmp_path: Path) -> None:
    levels = pictures(1, 1, 5, 7)[0]
    save_png(levels.permute(1, 2, 0), tmp_path / "a.png")
    with Image.open(tmp_path / "a.png") as picture:
        assert picture.mode == "L"
        assert np.array_equal(np.asarray(picture), levels[0].numpy())
