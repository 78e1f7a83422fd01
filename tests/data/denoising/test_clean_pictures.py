"""Decoded pictures: colours, grey, scales, and that the cache changes nothing."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from jumar.data.samples import CorruptRecord
from tests.data.photographs import photographs, scene


def test_a_cached_picture_is_the_decoded_one(tmp_path: Path) -> None:
    cached = photographs(tmp_path, scene(), scales=(1.0, 0.8))
    fresh = photographs(tmp_path, scene(), scales=(1.0, 0.8), cache_bytes=0)
    for scale in (0, 1):
        pixels = [cached.read(0, scale), cached.read(0, scale), fresh.read(0, scale)]
        assert all(np.array_equal(pixels[0], other) for other in pixels)
    assert np.array_equal(cached.read(0), scene())


def test_a_smaller_scale_is_close_to_pillows_cubic(tmp_path: Path) -> None:
    pixels = photographs(tmp_path, scene(50, 60), scales=(0.8,)).read(0)
    reference = Image.fromarray(scene(50, 60)).resize((48, 40), Image.Resampling.BICUBIC)
    assert pixels.shape == (40, 48, 3)
    assert np.abs(pixels.astype(int) - np.asarray(reference)).mean() < 1


def test_grey_is_pillows_and_leaves_grey_pictures_alone(tmp_path: Path) -> None:
    levels = np.random.default_rng(1).integers(0, 256, (9, 9), dtype=np.uint8)
    pictures = photographs(tmp_path, scene(), levels, channels="grey")
    reference = np.asarray(Image.fromarray(scene()).convert("L"))
    assert np.array_equal(pictures.read(0)[..., 0], reference)
    assert np.array_equal(pictures.read(1)[..., 0], levels)


def test_a_damaged_picture_is_a_fault_with_its_name(tmp_path: Path) -> None:
    pictures = photographs(tmp_path, scene())
    (tmp_path / "0.png").write_bytes(b"\x89PNG but no more")
    with pytest.raises(CorruptRecord, match=r"0\.png"):
        pictures.read(0)
