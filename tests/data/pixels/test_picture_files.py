"""Images are written whole or not at all."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from jumar.data.pixels.picture_files import not_kept_in, write_picture
from jumar.data.pixels.whole_picture import WholePicture
from jumar.ground.errors import UserError
from tests.data.photographs import scene


@pytest.mark.parametrize("name", ["a.png", "deep/er/a.PNG", "a.bmp", "a.webp"])
@pytest.mark.parametrize("grey", [False, True])
def test_lossless_formats_round_trip(tmp_path: Path, name: str, grey: bool) -> None:
    pixels = scene()[..., 1] if grey else scene()
    write_picture(np.ascontiguousarray(pixels), tmp_path / name)
    with Image.open(tmp_path / name) as image:
        result = np.asarray(image.convert("L" if grey else "RGB"))
    assert np.array_equal(result, pixels)
    assert [path.name for path in (tmp_path / name).parent.iterdir()] == [Path(name).name]


def test_jpeg_round_trip_is_close(tmp_path: Path) -> None:
    write_picture(scene(), tmp_path / "a.jpg")
    with Image.open(tmp_path / "a.jpg") as image:
        assert np.abs(np.asarray(image).astype(int) - scene()).mean() < 3


def test_failed_writes_leave_no_files(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"\.gif"):
        write_picture(scene(), tmp_path / "a.gif")
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(UserError, match="cannot be written"):
        write_picture(scene(), tmp_path / "file" / "a.png")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_lossy_files_equal_pillows_at_quality_95(tmp_path: Path) -> None:
    write_picture(scene(), tmp_path / "a.jpeg")
    Image.fromarray(scene()).save(tmp_path / "b.jpg", quality=95)
    assert (tmp_path / "a.jpeg").read_bytes() == (tmp_path / "b.jpg").read_bytes()


@pytest.mark.parametrize("channels", [1, 3])
def test_sixteen_bits_are_rounded_to_eight_if_the_format_has_no_more(
    tmp_path: Path, channels: int
) -> None:
    levels = np.array([[0, 128, 129, 257], [385, 386, 65406, 65535]], np.uint16)
    expected = np.array([[0, 0, 1, 1], [1, 2, 254, 255]], np.uint8)
    pixels = levels if channels == 1 else np.repeat(levels[..., None], 3, axis=2)
    write_picture(pixels, tmp_path / "a.bmp")
    with Image.open(tmp_path / "a.bmp") as image:
        assert image.mode == ("L" if channels == 1 else "RGB")
        assert np.array_equal(np.asarray(image.convert("L")), expected)


@pytest.mark.parametrize("name", ["a.jpg", "a.webp", "a.png", "a.bmp"])
def test_profile_and_exif_are_written_if_the_format_supports_them(
    tmp_path: Path, name: str
) -> None:
    exif = Image.Exif()
    exif[0x010F] = "maker"
    for profile, tags in ((b"profile", b""), (b"", exif.tobytes())):
        picture = WholePicture(pixels=scene(), profile=profile, exif=tags)
        write_picture(picture, tmp_path / name)
        with Image.open(tmp_path / name) as image:
            has = name != "a.bmp"
            assert image.info.get("icc_profile", b"") == (profile if has else b"")
            assert image.getexif().get(0x010F) == ("maker" if tags and has else None)
            if name != "a.jpg":
                assert np.array_equal(np.asarray(image), scene())


def test_unsupported_features_of_a_format_are_listed() -> None:
    alpha = np.zeros((40, 56), np.uint16)
    deep = WholePicture(
        pixels=scene().astype(np.uint16), alpha=alpha, profile=b"profile", exif=b"exif"
    )
    depth = "8 of 16 bits ({} has no more)"
    assert {kind: not_kept_in(deep, Path(f"a.{kind}")) for kind in ("png", "WEBP", "jpg")} == {
        "png": [],
        "WEBP": [depth.format("WEBP")],
        "jpg": [depth.format("JPEG"), "transparency (JPEG has none)"],
    }
    assert not_kept_in(deep, Path("a.bmp")) == [
        depth.format("BMP"),
        "transparency (BMP has none)",
        "the colour profile (BMP has none)",
        "the EXIF data (BMP has none)",
    ]
    assert not_kept_in(WholePicture(pixels=scene()), Path("a.bmp")) == []
    with pytest.raises(UserError) as caught:
        not_kept_in(deep, Path("a.gif"))
    assert (caught.value.what, caught.value.todo) == (
        "images cannot be written as '.gif'",
        "Known: .png, .jpg, .jpeg, .bmp, .webp.",
    )
