"""Decoded images: colours, grey, scales, and that the cache changes nothing."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from jumar.data.samples import CorruptRecord
from tests.data.photographs import photographs, scene


def test_cached_image_equals_the_decoded_one(tmp_path: Path) -> None:
    cached = photographs(tmp_path, scene(), scales=(1.0, 0.8))
    fresh = photographs(tmp_path, scene(), scales=(1.0, 0.8), cache_bytes=0)
    for scale in (0, 1):
        pixels = [cached.read(0, scale), cached.read(0, scale), fresh.read(0, scale)]
        assert all(np.array_equal(pixels[0], other) for other in pixels)
    assert np.array_equal(cached.read(0), scene())


def test_smaller_scale_is_close_to_pillows_cubic(tmp_path: Path) -> None:
    pixels = photographs(tmp_path, scene(50, 60), scales=(0.8,)).read(0)
    reference = Image.fromarray(scene(50, 60)).resize((48, 40), Image.Resampling.BICUBIC)
    assert pixels.shape == (40, 48, 3)
    assert np.abs(pixels.astype(int) - np.asarray(reference)).mean() < 1


def test_grey_conversion_matches_pillow_and_leaves_grey_images_unchanged(tmp_path: Path) -> None:
    levels = np.random.default_rng(1).integers(0, 256, (9, 9), dtype=np.uint8)
    pictures = photographs(tmp_path, scene(), levels, channels="grey")
    reference = np.asarray(Image.fromarray(scene()).convert("L"))
    assert np.array_equal(pictures.read(0)[..., 0], reference)
    assert np.array_equal(pictures.read(1)[..., 0], levels)


def test_damaged_image_is_a_fault_with_its_name(tmp_path: Path) -> None:
    pictures = photographs(tmp_path, scene())
    (tmp_path / "0.png").write_bytes(b"\x89PNG but no more")
    with pytest.raises(CorruptRecord, match=r"0\.png"):
        pictures.read(0)


def test_scales_of_an_image_are_cached_separately(tmp_path: Path) -> None:
    pictures = photographs(tmp_path, scene(), scene(30, 20, 2), scales=(1.0, 0.5, 0.01))
    assert len(pictures) == 2
    for _ in range(2):
        for index, (height, width) in enumerate(((40, 56), (30, 20))):
            shapes = [pictures.read(index, scale).shape for scale in range(3)]
            assert shapes == [(height, width, 3), (height // 2, width // 2, 3), (1, 1, 3)]
    assert np.array_equal(pictures.read(1), scene(30, 20, 2))


def test_cached_image_needs_no_file_and_an_uncached_one_does(tmp_path: Path) -> None:
    kept = photographs(tmp_path, scene(), cache_bytes=2**20)
    fresh = photographs(tmp_path, scene(), cache_bytes=0)
    assert np.array_equal(kept.read(0), fresh.read(0))
    (tmp_path / "0.png").write_bytes(b"")
    assert np.array_equal(kept.read(0), scene())
    with pytest.raises(CorruptRecord, match=r"0\.png: the file is empty"):
        fresh.read(0)


def test_out_of_range_levels_are_clipped_and_rounded(tmp_path: Path) -> None:
    """A cubic overshoots at an edge; in a ramp of whole steps it hits them."""
    edge = np.zeros((12, 12, 3), np.uint8)
    edge[:, 6:] = 255
    ramp = np.repeat(np.arange(0, 240, 5, dtype=np.uint8)[None, :, None], 12, axis=0)
    pictures = photographs(tmp_path, edge, np.repeat(ramp, 3, axis=2), scales=(0.75, 0.5))
    shown = pictures.read(0, 0)
    assert shown[:, :4].max() < 30
    assert shown[:, 5:].min() > 225
    middle = pictures.read(1, 1)[3, 3:-3, 0].astype(int)
    # Halfway between 10 n and 10 n + 5: 10 n + 2.5, rounded to the even number.
    assert set(middle - 10 * np.arange(3, 21)) <= {2, 3}
