"""Images with what they hold besides bytes of red, green and blue, read and written."""

import io
import struct
import zlib
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageCms

from jumar.data.pixels.decode import MAX_PIXELS, DecodeError, decode_image
from jumar.data.pixels.deep_png import encode_deep_png
from jumar.data.pixels.picture_files import not_kept_in, write_picture
from jumar.data.pixels.whole_picture import (
    WholePicture,
    decode_whole,
    pages_left_out,
    profile_is_grey,
)
from tests.data.photographs import scene

PROFILE = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()


def deep(channels: int, seed: int = 0) -> np.ndarray:
    random = np.random.default_rng(seed)
    return random.integers(0, 2**16, (7, 9, channels), dtype=np.uint16)


def ffmpeg(levels: np.ndarray, codec: str, pixel_format: str, **options: str) -> bytes:
    """A file by another program's encoder."""
    av = pytest.importorskip("av", reason="needs PyAV, the extra 'video'")
    context = av.CodecContext.create(codec, "w")
    context.height, context.width = levels.shape[:2]
    context.pix_fmt, context.time_base, context.options = pixel_format, Fraction(1, 25), options
    frame = av.VideoFrame.from_ndarray(levels, format=pixel_format)
    return b"".join(bytes(packet) for part in (frame, None) for packet in context.encode(part))


def saved(image: Image.Image, kind: str = "PNG", **options: object) -> bytes:
    file = io.BytesIO()
    image.save(file, format=kind, **options)
    return file.getvalue()


@pytest.mark.parametrize(
    ("codec", "options"),
    [
        ("png", {}),
        ("tiff", {}),
        ("tiff", {"compression_algo": "raw"}),
        ("tiff", {"compression_algo": "lzw"}),
    ],
)
def test_sixteen_bit_colour_with_transparency_is_read(codec: str, options: dict[str, str]) -> None:
    order = "be" if codec == "png" else "le"
    colours, with_alpha, grey = deep(3), deep(4), deep(1)[..., 0]
    result = decode_whole(ffmpeg(colours, codec, f"rgb48{order}", **options))
    assert np.array_equal(result.pixels, colours)
    assert result.alpha is None
    result = decode_whole(ffmpeg(with_alpha, codec, f"rgba64{order}", **options))
    assert np.array_equal(result.pixels, with_alpha[..., :3])
    assert np.array_equal(result.alpha, with_alpha[..., 3])
    result = decode_whole(ffmpeg(grey, codec, f"gray16{order}", **options))
    assert np.array_equal(result.pixels, np.repeat(grey[..., None], 3, axis=2))
    assert result.lost == ()


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("with_alpha", [False, True])
def test_sixteen_bit_files_are_readable_by_another_program(
    tmp_path: Path, channels: int, with_alpha: bool
) -> None:
    av = pytest.importorskip("av", reason="needs PyAV, the extra 'video'")
    levels, alpha = deep(channels), deep(1, seed=1)[..., 0]
    picture = WholePicture(
        pixels=levels[..., 0] if channels == 1 else levels, alpha=alpha if with_alpha else None
    )
    write_picture(picture, tmp_path / "a.png")
    with av.open(str(tmp_path / "a.png")) as file:
        frame = next(file.decode(video=0))
    kind = {(1, False): "gray16be", (1, True): "ya16be", (3, False): "rgb48be"}
    assert frame.format.name == kind.get((channels, with_alpha), "rgba64be")
    result = frame.to_ndarray(format="rgba64be" if with_alpha else "rgb48be")
    assert np.array_equal(result[..., :3], np.broadcast_to(levels, (7, 9, 3)))
    if with_alpha:
        assert np.array_equal(result[..., 3], alpha)


@pytest.mark.parametrize("mode", ["RGBA", "LA", "P"])
def test_transparency_is_read_and_written_unchanged(tmp_path: Path, mode: str) -> None:
    alpha = np.arange(40 * 56, dtype=np.uint8).reshape(40, 56)
    image = Image.fromarray(scene())
    image.putalpha(Image.fromarray(alpha))
    if mode == "P":
        image = image.quantize(32, method=Image.Quantize.FASTOCTREE)
        alpha = np.asarray(image.convert("RGBA"))[..., 3]
    elif mode == "LA":
        image = image.convert("LA")
    picture = decode_whole(saved(image))
    assert np.array_equal(picture.alpha, alpha)
    for name in ("a.png", "a.webp"):
        write_picture(picture, tmp_path / name)
        with Image.open(tmp_path / name) as written:
            assert np.array_equal(np.asarray(written.convert("RGBA"))[..., 3], alpha)
            assert np.array_equal(np.asarray(written.convert("RGBA"))[..., :3], picture.pixels)
    assert not_kept_in(picture, tmp_path / "a.jpg") == ["transparency (JPEG has none)"]


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP"])
@pytest.mark.parametrize("is_deep", [False, True])
def test_profile_and_exif_are_kept_and_the_image_is_rotated_once(
    tmp_path: Path, kind: str, is_deep: bool
) -> None:
    exif = Image.Exif()
    exif[0x0112], exif[0x010F] = 6, "maker"
    encoded = saved(Image.fromarray(scene()), kind, exif=exif.tobytes(), icc_profile=PROFILE)
    picture = decode_whole(encoded)
    assert picture.pixels.shape == (56, 40, 3)
    assert np.array_equal(picture.pixels, decode_image(encoded, fast=False))
    if is_deep:
        picture = picture.with_pixels(picture.pixels.astype(np.uint16) * 257)
    write_picture(picture, tmp_path / "a.png")
    with Image.open(tmp_path / "a.png") as written:
        assert written.size == (40, 56)
        assert written.getexif().get(0x0112, 1) == 1
        assert written.getexif()[0x010F] == "maker"
        assert written.info["icc_profile"] == PROFILE
    assert len(not_kept_in(picture, tmp_path / "a.bmp")) == 2 + is_deep


def test_rotation_applies_to_image_and_transparency() -> None:
    exif = Image.Exif()
    exif[0x0112] = 8
    alpha = np.arange(40 * 56, dtype=np.uint8).reshape(40, 56)
    image = Image.fromarray(np.dstack([scene(), alpha]))
    picture = decode_whole(saved(image, exif=exif.tobytes()))
    assert np.array_equal(picture.alpha, np.rot90(alpha))
    assert np.array_equal(picture.pixels, np.rot90(scene()))


@pytest.mark.parametrize(
    ("kind", "word"), [("GIF", "frames"), ("TIFF", "pages"), ("PNG", "frames")]
)
def test_first_page_is_read_and_the_others_counted(kind: str, word: str) -> None:
    flat = [Image.new("RGB", (8, 8), (level, level, level)) for level in (0, 120, 240)]
    encoded = saved(flat[0], kind, save_all=True, append_images=flat[1:])
    picture = decode_whole(encoded)
    assert picture.lost == (f"2 of 3 {word}",)
    assert picture.pixels.max() == 0
    assert pages_left_out(encoded) == picture.lost[0]
    assert pages_left_out(saved(flat[0], kind)) == pages_left_out(b"no image") == ""


def test_lost_features_are_named() -> None:
    ink = saved(Image.new("CMYK", (8, 8)), "JPEG")
    assert "CMYK" in decode_whole(ink).lost[0]
    picture = WholePicture(pixels=scene(), profile=PROFILE)
    assert "for colours" in picture.with_pixels(scene()[..., 0]).lost[0]
    assert picture.with_pixels(scene()).profile == PROFILE


def bomb(kind: str) -> bytes:
    """A file of some bytes that says that it is huge."""
    side = int(MAX_PIXELS**0.5) + 2
    if kind == "GIF":
        small = saved(Image.new("P", (8, 8)), "GIF")
        return small[:6] + struct.pack("<HH", side, side) + small[10:]
    tags = {256: side, 257: side, 258: 8, 259: 5, 262: 1, 273: 8, 277: 1, 278: side, 279: 8}
    if kind == "TIFF tiles":
        tags |= {256: 8, 257: 8, 322: side - side % 16 + 16, 323: side - side % 16 + 16}
        tags |= {324: tags.pop(273), 325: tags.pop(279)}
        del tags[278]
    entries = b"".join(struct.pack("<HHII", tag, 4, 1, tags[tag]) for tag in sorted(tags))
    return b"II*\0\x10\0\0\0" + b"\0" * 8 + struct.pack("<H", len(tags)) + entries + b"\0" * 4


@pytest.mark.parametrize("kind", ["GIF", "TIFF", "TIFF tiles"])
def test_small_file_claiming_gigabytes_is_refused(kind: str) -> None:
    for decode in (decode_whole, lambda encoded: decode_image(encoded, fast=True)):
        with pytest.raises(DecodeError, match="pixels are more than"):
            decode(bomb(kind))


def grey_profile() -> bytes:
    return bytes(16) + b"GRAY" + bytes(108)


def test_profile_is_kept_only_with_matching_pixels() -> None:
    colours, grey = scene(), scene()[..., 0]
    picture = WholePicture(pixels=grey, profile=grey_profile(), lost=("sound",))
    assert picture.with_pixels(grey[::-1]).profile == grey_profile()
    changed = picture.with_pixels(colours)
    assert changed.lost == ("sound", "the colour profile (for grey levels)")
    assert (changed.profile, changed.pixels.shape) == (b"", colours.shape)
    changed = WholePicture(pixels=colours, profile=PROFILE).with_pixels(grey)
    assert (changed.profile, changed.lost) == (b"", ("the colour profile (for colours)",))
    assert WholePicture(pixels=colours).with_pixels(grey).lost == ()
    assert (profile_is_grey(grey_profile()), profile_is_grey(PROFILE)) == (True, False)


@pytest.mark.parametrize(("kind", "word"), [("GIF", "frame"), ("TIFF", "page")])
def test_second_page_is_named(kind: str, word: str) -> None:
    flat = [Image.new("RGB", (8, 8), (level, level, level)) for level in (0, 120)]
    encoded = saved(flat[0], kind, save_all=True, append_images=flat[1:])
    assert decode_whole(encoded).lost == (f"the second {word}",)
    assert pages_left_out(encoded) == f"the second {word}"


@pytest.mark.parametrize("value", [-1, 0, 65_535, 65_536])
def test_integers_up_to_16_bits_are_levels(value: int) -> None:
    encoded = saved(Image.fromarray(np.array([[0, 257, value]], np.int32)), "TIFF")
    if not 0 <= value <= 65_535:
        with pytest.raises(DecodeError, match="32-bit integer pixels are not supported"):
            decode_whole(encoded)
        return
    result = decode_whole(encoded)
    assert result.pixels.tolist() == [[[level] * 3 for level in (0, 257, value)]]
    assert (result.pixels.dtype, result.alpha, result.lost) == (np.uint16, None, ())


def with_chunk(encoded: bytes, name: bytes, content: bytes) -> bytes:
    """A PNG with one more chunk in front of its pixels."""
    place = encoded.index(b"IDAT") - 4
    check = struct.pack(">I", zlib.crc32(name + content))
    chunk = struct.pack(">I", len(content)) + name + content + check
    return encoded[:place] + chunk + encoded[place:]


def test_unreadable_features_of_deep_images_are_named() -> None:
    colours = encode_deep_png(deep(3))
    result = decode_whole(colours)
    assert np.array_equal(result.pixels, deep(3))
    assert result.lost == ()
    keyed = decode_whole(with_chunk(colours, b"tRNS", struct.pack(">HHH", 1, 2, 3)))
    assert np.array_equal(keyed.pixels, deep(3))
    assert (keyed.alpha, keyed.lost) == (None, ("the transparent colour",))
    grey = decode_whole(encode_deep_png(deep(2)))
    assert grey.lost == ("8 of 16 bits",)
    assert grey.pixels.dtype == np.uint8
    assert grey.alpha is not None
    assert np.array_equal(grey.alpha, deep(2)[..., 1] >> 8)


def test_deep_images_with_transparency_are_rotated_upright() -> None:
    exif = Image.Exif()
    exif[0x0112] = 6
    turned = decode_whole(encode_deep_png(deep(4), exif=exif.tobytes()))
    assert np.array_equal(turned.pixels, np.rot90(deep(4)[..., :3], -1))
    assert np.array_equal(turned.alpha, np.rot90(deep(4)[..., 3], -1))


def test_intact_exif_data_is_kept_without_the_orientation() -> None:
    exif = Image.Exif()
    exif[0x0112], exif[0x010F] = 3, "maker"
    kept = Image.Exif()
    kept.load(decode_whole(saved(Image.fromarray(scene()), "PNG", exif=exif.tobytes())).exif)
    assert dict(kept) == {0x010F: "maker"}
    for kind, data in (("PNG", b""), ("JPEG", b"Exif\0\0damaged"), ("TIFF", exif.tobytes())):
        options = {"exif": data} if data else {}
        assert decode_whole(saved(Image.fromarray(scene()), kind, **options)).exif == b""


def test_cmyk_images_lose_their_inks_and_profile() -> None:
    encoded = saved(Image.new("CMYK", (8, 8)), "JPEG", icc_profile=PROFILE)
    picture = decode_whole(encoded)
    assert picture.lost == ("CMYK (converted to RGB) and its colour profile",)
    assert picture.profile == b""
    plain = decode_whole(saved(Image.fromarray(scene()), "JPEG", icc_profile=PROFILE))
    assert (plain.lost, plain.profile, plain.alpha, plain.exif) == ((), PROFILE, None, b"")
