import io
import os
import struct
import subprocess
import sys
import zlib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image, ImageOps

from jumar.data.pixels.decode import MAX_PIXELS, DecodeError, EncodedImage, decode_image
from tests.data.pictures import MIXED, turned
from tests.data.scenes import encode, jpeg, scene


def pillow(encoded: bytes) -> np.ndarray:
    """What Pillow shows, upright and without transparency."""
    with Image.open(io.BytesIO(encoded)) as image:
        return np.array(ImageOps.exif_transpose(image).convert("RGBA").convert("RGB"))


def with_orientation(orientation: int, kind: str) -> bytes:
    exif = Image.Exif()
    exif[0x0112] = orientation
    return encode(scene(20, 30), kind, exif=exif)


@pytest.mark.parametrize("name", MIXED)
def test_every_kind_of_file_decodes_to_the_pixels_that_pillow_shows(name: str) -> None:
    assert np.array_equal(decode_image(MIXED[name], fast=False), pillow(MIXED[name]))


@pytest.mark.parametrize("options", [{}, {"progressive": True}, {"subsampling": 0}])
def test_accurate_jpeg_decoding_equals_pillow(options: dict[str, int]) -> None:
    encoded = jpeg(61, 83, **options)
    assert np.array_equal(decode_image(encoded, fast=False), pillow(encoded))


def test_fast_decoding_differs_by_few_levels_on_average() -> None:
    encoded = jpeg(61, 83)
    difference = decode_image(encoded, fast=True).astype(int) - pillow(encoded)
    assert 0 < np.abs(difference).mean() < 3


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP", "TIFF"])
@pytest.mark.parametrize("orientation", range(1, 9))
def test_pictures_are_upright_by_their_exif_orientation(orientation: int, kind: str) -> None:
    encoded = with_orientation(orientation, kind)
    picture = EncodedImage(encoded)
    pixels = picture.decode(fast=False)
    assert np.array_equal(pixels, pillow(encoded))
    assert pixels.shape[:2] == (picture.height, picture.width)
    assert pixels.flags.c_contiguous


@pytest.mark.parametrize("orientation", [0, 9, 1000])
def test_an_orientation_that_does_not_exist_is_ignored(orientation: int) -> None:
    encoded = with_orientation(orientation, "JPEG")
    assert decode_image(encoded, fast=False).shape == (20, 30, 3)


def test_a_damaged_exif_block_does_not_hide_the_picture() -> None:
    whole = turned()
    damaged = whole.replace(b"Exif\0\0", b"Exif\0\0\xff\xff\xff\xff\xff\xff", 1)
    start = damaged.index(b"\xff\xe1")
    length = struct.unpack(">H", damaged[start + 2 : start + 4])[0] + 6
    damaged = damaged[: start + 2] + struct.pack(">H", length) + damaged[start + 4 :]
    assert decode_image(damaged, fast=False).shape == (8, 12, 3)


def test_sixteen_bit_grey_keeps_its_high_byte() -> None:
    values = (np.arange(600, dtype=np.uint32).reshape(20, 30) * 109).astype(np.uint16)
    pixels = decode_image(encode(values, "PNG"), fast=False)
    assert np.array_equal(pixels[..., 0], (values >> 8).astype(np.uint8))
    assert np.array_equal(pixels[..., 0], pixels[..., 2])


def test_transparent_pixels_keep_their_colour() -> None:
    pixels = np.dstack([scene(9, 9), np.zeros((9, 9), np.uint8)])
    assert np.array_equal(decode_image(encode(pixels, "PNG"), fast=False), pixels[..., :3])


def test_floating_point_pixels_are_refused_with_the_reason() -> None:
    with pytest.raises(DecodeError, match="floating-point"):
        decode_image(encode(np.ones((4, 4), np.float32), "TIFF"), fast=False)


@pytest.mark.parametrize(
    ("shrink", "expected"), [(1.9, (400, 600)), (2.0, (200, 300)), (5.0, (100, 150))]
)
def test_decoding_shrinks_only_as_far_as_the_needed_size(
    shrink: float, expected: tuple[int, int]
) -> None:
    picture = EncodedImage(jpeg(400, 600))
    at_least = (round(400 / shrink), round(600 / shrink))
    pixels = picture.decode(fast=True, at_least=at_least)
    assert pixels.shape[:2] == expected
    reduced = Image.fromarray(picture.decode(fast=True)).resize(
        expected[::-1], Image.Resampling.BOX
    )
    assert np.abs(pixels.astype(int) - np.array(reduced)).mean() < 2


def test_the_needed_size_is_meant_upright() -> None:
    exif = Image.Exif()
    exif[0x0112] = 6
    picture = EncodedImage(jpeg(200, 800, exif=exif))
    assert (picture.height, picture.width) == (800, 200)
    assert picture.decode(fast=True, at_least=(400, 100)).shape == (400, 100, 3)


def test_reused_memory_gives_the_same_pixels_and_is_overwritten_by_the_next() -> None:
    first, second = EncodedImage(jpeg(30, 40)), EncodedImage(jpeg(30, 40, seed=1))
    kept = first.decode(fast=True)
    borrowed = first.decode(fast=True, reuse=True)
    assert np.array_equal(borrowed, kept)
    second.decode(fast=True, reuse=True)
    assert not np.array_equal(borrowed, kept)


def test_stray_bytes_that_viewers_tolerate_are_tolerated() -> None:
    whole = jpeg()
    table = whole.index(b"\xff\xdb")
    assert decode_image(whole[:table] + b"stray" + whole[table:], fast=True).shape == (40, 50, 3)


@pytest.mark.parametrize(
    "encoded",
    [b"", b"\xff\xd8", b"not a picture at all", jpeg()[:-200], encode(scene(40, 50), "PNG")[:-300]],
    ids=["empty", "marker only", "text", "cut JPEG", "cut PNG"],
)
def test_what_is_no_whole_picture_is_refused_with_a_reason(encoded: bytes) -> None:
    with pytest.raises(DecodeError) as caught:
        decode_image(encoded, fast=True)
    assert str(caught.value)


def test_a_picture_that_claims_too_many_pixels_is_refused_before_memory_is_taken() -> None:
    header = struct.pack(">IIBBBBB", 30_000, 30_000, 8, 2, 0, 0, 0)
    chunk = b"IHDR" + header
    bomb = b"\x89PNG\r\n\x1a\n" + struct.pack(">I", 13) + chunk
    bomb += struct.pack(">I", zlib.crc32(chunk))
    with pytest.raises(DecodeError, match="pixels"):
        decode_image(bomb + struct.pack(">I", 50) + b"IDAT" + b"\0" * 54, fast=True)

    large = bytearray(jpeg())
    frame = large.index(b"\xff\xc0")
    large[frame + 5 : frame + 9] = struct.pack(">HH", 65_000, 65_000)
    with pytest.raises(DecodeError, match=f"{MAX_PIXELS:,}"):
        decode_image(bytes(large), fast=True)


@pytest.mark.parametrize("tags", [(256, 257), (322, 323)], ids=["sides", "tiles"])
def test_a_tiff_that_claims_too_much_is_refused_before_memory_is_taken(
    tags: tuple[int, int],
) -> None:
    """Pillow takes the memory of a TIFF's sides, and libtiff that of a tile, before any pixel."""
    file = io.BytesIO()
    own = {322: 65_000, 323: 65_001}  # Pillow writes no tiles; these tags are renamed to them
    Image.new("RGB", (16, 16)).save(file, format="TIFF", tiffinfo=dict.fromkeys(own.values(), 16))
    content = bytearray(file.getvalue())
    for tag in tags:
        written = own.get(tag, tag)
        entries = [struct.pack("<HHI", written, kind, 1) for kind in (3, 4)]  # 16 or 32 bits
        place = next(content.find(entry) for entry in entries if entry in content)
        content[place : place + 2] = struct.pack("<H", tag)
        content[place + 8 : place + 12] = struct.pack("<I", 12_000)
    with pytest.raises(DecodeError, match=f"12000 x 12000 pixels are more than the {MAX_PIXELS:,}"):
        decode_image(bytes(content), fast=True)


def test_postscript_is_not_handed_to_an_interpreter() -> None:
    with pytest.raises(DecodeError, match="not a picture of a known format"):
        decode_image(b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 10 10\n", fast=False)


@settings(max_examples=150)
@given(
    kind=st.sampled_from(["JPEG", "PNG", "GIF", "WEBP", "TIFF", "BMP"]),
    place=st.floats(0, 1, exclude_max=True),
    value=st.integers(0, 255),
    cut=st.floats(0.2, 1),
)
def test_damaged_bytes_give_pixels_or_a_decode_error_and_nothing_else(
    kind: str, place: float, value: int, cut: float
) -> None:
    damaged = bytearray(encode(scene(16, 24), kind))
    damaged[int(place * len(damaged))] = value
    damaged = damaged[: int(cut * len(damaged)) + 1]
    try:
        pixels = decode_image(bytes(damaged), fast=True)
    except DecodeError:
        return
    assert pixels.dtype == np.uint8
    assert pixels.ndim == 3


def test_memory_that_ran_out_is_no_fault_of_the_picture(tmp_path: Path) -> None:
    """As a fault, the picture would be left out of training where some faults are tolerated."""
    Image.new("RGB", (6000, 6000)).save(tmp_path / "large.png")
    code = (
        "import resource, sys; from pathlib import Path\n"
        "from jumar.data.pixels.decode import decode_image\n"
        "encoded = Path(sys.argv[1]).read_bytes()\n"
        "held = int(Path('/proc/self/statm').read_text().split()[0]) * resource.getpagesize()\n"
        "resource.setrlimit(resource.RLIMIT_AS, (held + 2**25, held + 2**25))\n"
        "try: decode_image(encoded, fast=False)\n"
        "except Exception as error: print(type(error).__name__)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "large.png")],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout == "MemoryError\n", done.stderr
