import base64
import io
import zlib
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from jumar.report.content import EmbeddedImage, Page, Picture, PictureStrip
from jumar.report.embedding import MAX_BYTES, embedded_image
from jumar.report.page import render
from tests.report.page_reading import PageReader
from tests.report.test_page import HOSTILE


def saved(path: Path, width: int, height: int, *, noise: bool = True) -> Path:
    random = np.random.default_rng(0)
    values = random.integers(0, 256 if noise else 1, (height, width, 3), dtype=np.uint8)
    Image.fromarray(values).save(path)
    return path


def decoded(image: EmbeddedImage) -> Image.Image:
    head, _, content = image.source.partition(";base64,")
    picture = Image.open(io.BytesIO(base64.b64decode(content, validate=True)))
    assert head == f"data:image/{(picture.format or '').lower()}"
    return picture


def embedded(path: Path) -> EmbeddedImage:
    image = embedded_image(path)
    assert image is not None
    return image


def test_small_file_is_embedded_byte_for_byte(tmp_path: Path) -> None:
    path = saved(tmp_path / "x.png", 120, 60)
    image = embedded(path)
    assert base64.b64decode(image.source.partition(",")[2]) == path.read_bytes()
    assert (image.width, image.height, image.enlarged) == (240, 120, True)


@pytest.mark.parametrize("size", [(1038, 1038), (3000, 40), (500, 5000)])
def test_large_image_is_shrunk_keeping_its_aspect_ratio(
    tmp_path: Path, size: tuple[int, int]
) -> None:
    image = embedded(saved(tmp_path / "x.png", *size))
    assert len(base64.b64decode(image.source.partition(",")[2])) <= MAX_BYTES
    picture = decoded(image)
    assert picture.format == "JPEG"
    assert image.width / image.height == pytest.approx(size[0] / size[1], rel=0.02)
    assert image.width <= 1200
    assert picture.width <= image.width


def test_equally_sized_images_are_shown_in_one_size_however_noisy(tmp_path: Path) -> None:
    noisy = embedded(saved(tmp_path / "noisy.png", 1038, 900))
    plain = embedded(saved(tmp_path / "plain.png", 1038, 900, noise=False))
    assert (noisy.width, noisy.height) == (plain.width, plain.height) == (1038, 900)


@pytest.mark.parametrize("mode", ["L", "LA", "RGBA", "P", "1", "I;16"])
def test_every_kind_of_png_can_be_shown(tmp_path: Path, mode: str) -> None:
    Image.new(mode, (1300, 20)).save(tmp_path / "x.png")
    assert decoded(embedded(tmp_path / "x.png")).mode == "RGB"


def test_incomplete_png_is_omitted(tmp_path: Path) -> None:
    path = saved(tmp_path / "x.png", 50, 50)
    content = path.read_bytes()
    bomb = bytearray(content)
    bomb[16:24] = (60_000).to_bytes(4, "big") * 2
    bomb[29:33] = zlib.crc32(bomb[12:29]).to_bytes(4, "big")
    jpeg = io.BytesIO()
    Image.new("RGB", (5, 5)).save(jpeg, format="JPEG")
    for damaged in (b"", content[:-200], b"<svg onload=alert(1)>", bytes(bomb), jpeg.getvalue()):
        path.write_bytes(damaged)
        assert embedded_image(path) is None
    assert embedded_image(tmp_path / "missing.png") is None
    assert embedded_image(tmp_path) is None


def test_page_has_the_images_and_escapes_captions(tmp_path: Path) -> None:
    image = embedded(saved(tmp_path / "x.png", 300, 300, noise=False))
    pictures = [Picture(label=HOSTILE, caption=HOSTILE, image=image) for _ in range(2)]
    strip = PictureStrip(title=HOSTILE, caption=HOSTILE, pictures=pictures)
    html = render(Page(title="t", pictures=[strip], picture_notes=[HOSTILE]))
    read = PageReader(html)
    assert (read.open, read.crossed) == ([], [])
    assert not read.all("script")
    assert not any(name.startswith("on") for _, attributes in read.tags for name in attributes)
    assert read.addresses == [image.source] * 2
    assert all(HOSTILE in picture["alt"] for picture in read.all("img"))
    policy = next(m["content"] for m in read.all("meta") if "http-equiv" in m)
    assert "img-src data:" in policy
    assert "Images" in read.texts["h2"]


def test_page_without_images_has_no_image_heading() -> None:
    assert "Images" not in PageReader(render(Page(title="t"))).texts.get("h2", [])
