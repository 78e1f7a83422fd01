"""Pictures are written whole or not at all."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from jumar.data.pixels.picture_files import write_picture
from jumar.ground.errors import UserError
from tests.data.photographs import scene


@pytest.mark.parametrize("name", ["a.png", "deep/er/a.PNG", "a.bmp", "a.webp"])
@pytest.mark.parametrize("grey", [False, True])
def test_formats_without_loss_come_back(tmp_path: Path, name: str, grey: bool) -> None:
    pixels = scene()[..., 1] if grey else scene()
    write_picture(np.ascontiguousarray(pixels), tmp_path / name)
    with Image.open(tmp_path / name) as image:
        found = np.asarray(image.convert("L" if grey else "RGB"))
    assert np.array_equal(found, pixels)
    assert [path.name for path in (tmp_path / name).parent.iterdir()] == [Path(name).name]


def test_jpeg_is_close(tmp_path: Path) -> None:
    write_picture(scene(), tmp_path / "a.jpg")
    with Image.open(tmp_path / "a.jpg") as image:
        assert np.abs(np.asarray(image).astype(int) - scene()).mean() < 3


def test_what_cannot_be_written_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"\.gif"):
        write_picture(scene(), tmp_path / "a.gif")
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(UserError, match="cannot be written"):
        write_picture(scene(), tmp_path / "file" / "a.png")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
