import io
import os
import struct
import subprocess
import sys
import warnings
import zlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image, ImageOps

from jumar.data.pixels.decode import (
    MAX_PIXELS,
    DecodeError,
    EncodedImage,
    check_decodable,
    decode_image,
    upright,
)
from tests.data.pictures import MIXED, picture, turned
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
def test_every_format_decodes_to_pillows_pixels(name: str) -> None:
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
def test_exif_orientation_is_applied(orientation: int, kind: str) -> None:
    encoded = with_orientation(orientation, kind)
    picture = EncodedImage(encoded)
    pixels = picture.decode(fast=False)
    assert np.array_equal(pixels, pillow(encoded))
    assert pixels.shape[:2] == (picture.height, picture.width)
    assert pixels.flags.c_contiguous


@pytest.mark.parametrize("orientation", [0, 9, 1000])
def test_invalid_exif_orientation_is_ignored(orientation: int) -> None:
    encoded = with_orientation(orientation, "JPEG")
    assert decode_image(encoded, fast=False).shape == (20, 30, 3)


def test_damaged_exif_block_does_not_hide_the_image() -> None:
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


def test_needed_size_refers_to_the_upright_image() -> None:
    exif = Image.Exif()
    exif[0x0112] = 6
    picture = EncodedImage(jpeg(200, 800, exif=exif))
    assert (picture.height, picture.width) == (800, 200)
    assert picture.decode(fast=True, at_least=(400, 100)).shape == (400, 100, 3)


def test_reused_memory_gives_equal_pixels_and_is_overwritten_by_the_next_call() -> None:
    first, second = EncodedImage(jpeg(30, 40)), EncodedImage(jpeg(30, 40, seed=1))
    kept = first.decode(fast=True)
    borrowed = first.decode(fast=True, reuse=True)
    assert np.array_equal(borrowed, kept)
    second.decode(fast=True, reuse=True)
    assert not np.array_equal(borrowed, kept)


def test_stray_bytes_tolerated_by_viewers_are_tolerated() -> None:
    whole = jpeg()
    table = whole.index(b"\xff\xdb")
    assert decode_image(whole[:table] + b"stray" + whole[table:], fast=True).shape == (40, 50, 3)


@pytest.mark.parametrize(
    "encoded",
    [b"", b"\xff\xd8", b"not an image at all", jpeg()[:-200], encode(scene(40, 50), "PNG")[:-300]],
    ids=["empty", "marker only", "text", "cut JPEG", "cut PNG"],
)
def test_incomplete_images_are_refused_with_a_reason(encoded: bytes) -> None:
    with pytest.raises(DecodeError) as caught:
        decode_image(encoded, fast=True)
    assert str(caught.value)


def test_image_claiming_too_many_pixels_is_refused_before_allocation() -> None:
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
def test_tiff_claiming_too_much_is_refused_before_allocation(
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


def test_postscript_is_never_interpreted() -> None:
    with pytest.raises(DecodeError, match="not an image of a known format"):
        decode_image(b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 10 10\n", fast=False)


@settings(max_examples=150)
@given(
    kind=st.sampled_from(["JPEG", "PNG", "GIF", "WEBP", "TIFF", "BMP"]),
    place=st.floats(0, 1, exclude_max=True),
    value=st.integers(0, 255),
    cut=st.floats(0.2, 1),
)
def test_damaged_bytes_give_only_pixels_or_a_decode_error(
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


def test_running_out_of_memory_is_not_an_image_fault(tmp_path: Path) -> None:
    """As a fault, the image would be left out of training where some faults are tolerated."""
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


def with_sides(kind: str, width: int, height: int) -> bytes:
    """A small file that says that it has other sides."""
    encoded = bytearray(encode(scene(4, 4), kind))
    if kind == "BMP":
        struct.pack_into("<ii", encoded, 18, width, height)
    else:
        struct.pack_into(">II", encoded, 16, width, height)
        struct.pack_into(">I", encoded, 29, zlib.crc32(encoded[12:29]))
    return bytes(encoded)


def test_images_above_89_million_pixels_are_refused_without_a_warning() -> None:
    picture = EncodedImage(with_sides("BMP", 8_900, 10_000))
    assert (picture.width, picture.height, picture.orientation) == (8_900, 10_000, 1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        # Pillow warns of somewhat more, and reads the pixels of a PNG for its EXIF data.
        for kind, width, height in (("BMP", 9_888_889, 9), ("PNG", 10_000, 9_000)):
            with pytest.raises(DecodeError) as caught:
                EncodedImage(with_sides(kind, width, height))
            assert str(caught.value) == (
                f"{width} x {height} pixels are more than the 89,000,000 allowed"
            )
    with pytest.raises(DecodeError, match=r"^the file is empty$"):
        EncodedImage(b"")


@pytest.mark.parametrize("value", [-1, 0, 1, 65_535, 65_536])
def test_integers_up_to_16_bits_are_pixels(value: int) -> None:
    encoded = encode(np.array([[0, 257, value]], np.int32), "TIFF")
    if not 0 <= value <= 65_535:
        with pytest.raises(DecodeError, match="32-bit integer pixels are not supported"):
            decode_image(encoded, fast=False)
        return
    assert decode_image(encoded, fast=False).tolist() == [
        [[level] * 3 for level in (0, 1, value // 256)]
    ]


def segment(marker: int, content: bytes) -> bytes:
    return b"\xff" + bytes([marker]) + struct.pack(">H", len(content) + 2) + content


def exif_of(orientation: int) -> bytes:
    exif = Image.Exif()
    exif[0x0112] = orientation
    return exif.tobytes()  # begins with Exif\0\0


XMP = segment(0xE1, b"http://ns.adobe.com/xap/1.0/\0<x/>")


@pytest.mark.parametrize(
    ("segments", "orientation"),
    [
        ((segment(0xE1, exif_of(6)),), 6),
        ((segment(0xE1, exif_of(6)), XMP), 6),
        ((XMP, segment(0xE1, exif_of(3))), 3),
        ((segment(0xE2, exif_of(6)),), 1),
        ((segment(0xFE, b"a comment"), segment(0xE1, exif_of(8))), 8),
        ((b"\xff\xff", segment(0xE1, exif_of(5))), 5),
        ((segment(0xE1, b"Exif\0\0" + b"damaged"),), 1),
        ((segment(0xE1, exif_of(9)),), 1),
        ((segment(0xE1, exif_of(0)),), 1),
        ((segment(0xE1, exif_of(1)),), 1),
    ],
)
def test_orientation_is_read_from_the_exif_segment_before_the_pixels(
    segments: tuple[bytes, ...], orientation: int
) -> None:
    plain = jpeg(20, 30)
    encoded = plain[:2] + b"".join(segments) + plain[2:]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        picture = EncodedImage(encoded)
    assert picture.orientation == orientation
    assert (picture.height, picture.width) == ((30, 20) if orientation >= 5 else (20, 30))
    assert np.array_equal(picture.decode(fast=False), pillow(encoded))


def test_bytes_after_the_first_pixels_are_not_header() -> None:
    plain = jpeg(20, 30)
    scan = plain.index(b"\xff\xda")
    pixels = scan + 2 + struct.unpack(">H", plain[scan + 2 : scan + 4])[0]
    late = plain[:pixels] + segment(0xE1, exif_of(6)) + plain[pixels:]
    assert EncodedImage(late).orientation == 1


def test_cmyk_is_inverted_only_with_an_adobe_marker() -> None:
    encoded = MIXED["cmyk.jpeg"]
    other = encoded.replace(b"Adobe", b"Other")
    assert other != encoded
    for each in (encoded, other):
        assert np.array_equal(decode_image(each, fast=False), pillow(each))


def in_a_new_thread(work: Callable[[], object]) -> None:
    """Memory that is used again belongs to a thread."""
    with ThreadPoolExecutor(1) as pool:
        pool.submit(work).result()


@pytest.mark.parametrize("encoded", [jpeg(61, 83), MIXED["cmyk.jpeg"]], ids=["RGB", "CMYK"])
@pytest.mark.parametrize("fast", [False, True])
def test_reused_memory_fits_the_first_image(encoded: bytes, fast: bool) -> None:
    def check() -> None:
        picture = EncodedImage(encoded)
        again = picture.decode(fast=fast, reuse=True)
        assert np.array_equal(again, picture.decode(fast=fast))

    in_a_new_thread(check)


def test_memory_is_reused_if_large_enough() -> None:
    def check() -> None:
        first, same, small, large = (
            EncodedImage(jpeg(*sides)).decode(fast=True, reuse=True)
            for sides in ((30, 40), (40, 30), (10, 20), (30, 41))
        )
        assert np.shares_memory(first, same)
        assert np.shares_memory(first, small)
        assert not np.shares_memory(first, large)

    in_a_new_thread(check)


@pytest.mark.parametrize("orientation", range(1, 9))
def test_upright_rotates_arrays_like_pillow(orientation: int) -> None:
    levels = np.arange(6, dtype=np.uint8).reshape(2, 3)
    image = Image.fromarray(levels)
    image.getexif()[0x0112] = orientation
    turned_levels = upright(levels, orientation)
    assert np.array_equal(turned_levels, np.asarray(ImageOps.exif_transpose(image)))
    assert turned_levels.flags.c_contiguous


@pytest.mark.parametrize("kind", ["JPEG", "PNG"])
def test_check_refuses_what_cannot_be_decoded_completely(kind: str) -> None:
    whole = picture(kind=kind, size=(60, 40))
    check_decodable(whole)
    with pytest.raises(DecodeError, match="truncated"):
        check_decodable(whole[: len(whole) * 3 // 4])
