"""What a check records about an image, for files of every kind."""

import hashlib
import io

import numpy as np
import pytest
from PIL import Image

from jumar.data.checking.item import Item
from jumar.data.checking.pictures import PictureReader, picture_item
from jumar.data.samples import CorruptRecord, Record
from tests.data.pictures import picture, turned
from tests.data.scenes import MemorySource, encode, jpeg

GREY = (np.arange(256, dtype=np.uint8) * 7).reshape(16, 16)


def saved(image: Image.Image, kind: str = "PNG", **options: object) -> bytes:
    file = io.BytesIO()
    image.save(file, kind, **options)
    return file.getvalue()


def hashed(content: bytes, salt: bytes = b"") -> bytes:
    return hashlib.blake2b(content, digest_size=16, salt=salt).digest()


def test_item_has_hashes_of_bytes_and_pixels_the_size_and_a_look() -> None:
    pixels = np.repeat(np.repeat(GREY, 2, axis=0), 3, axis=1)  # each level is a box of 2 x 3
    encoded = encode(pixels, "PNG")
    colours = np.repeat(pixels[..., None], 3, axis=2)
    item = picture_item(Record(encoded=encoded, label=0, origin="a.png"), "cat", ["odd"])
    assert item.look is not None
    assert np.array_equal(item.look, GREY.reshape(-1))
    assert (item.where, item.fault, item.label, item.classes) == ("a.png", "", "cat", ("cat",))
    assert item.size == (("width", 48), ("height", 32))
    assert item.traits == ("grey", "odd")
    assert item.content == hashed(encoded)
    assert item.meaning == hashed(colours.tobytes(), b"48")
    plain = picture_item(Record(encoded=encoded, label=0, origin="a.png"))
    assert (plain.label, plain.classes, plain.traits) == ("", (), ("grey",))


def transparent_colour() -> bytes:
    return saved(Image.new("RGB", (4, 4)), transparency=(0, 0, 0))


def two_frames() -> bytes:
    frames = [Image.new("RGB", (4, 4), colour) for colour in ("red", "blue")]
    return saved(frames[0], save_all=True, append_images=frames[1:])


def upright() -> bytes:
    exif = Image.Exif()
    exif[0x0112] = 1
    return picture(exif=exif)


def mirrored() -> bytes:
    exif = Image.Exif()
    exif[0x0112] = 2
    return picture(exif=exif)


@pytest.mark.parametrize(
    ("encoded", "traits"),
    [
        (picture(), ()),
        (picture("RGB", "PNG"), ()),
        (picture("1", "PNG"), ("grey",)),
        (picture("L"), ("grey",)),
        (picture("LA", "PNG"), ("grey", "alpha")),
        (picture("RGBA", "PNG"), ("alpha",)),
        (picture("P", "PNG"), ("palette",)),
        (picture("P", "PNG", transparency=0), ("palette", "alpha")),
        (picture("CMYK"), ("CMYK",)),
        (encode(GREY.astype(np.uint16) * 200, "PNG"), ("16 bit",)),
        (transparent_colour(), ("alpha",)),
        (two_frames(), ("several frames",)),
        (upright(), ()),
        (mirrored(), ("rotated by EXIF",)),
        (turned(), ("rotated by EXIF",)),
    ],
)
def test_image_traits_are_recorded(encoded: bytes, traits: tuple[str, ...]) -> None:
    assert picture_item(Record(encoded=encoded, label=0, origin="")).traits == traits


def test_labels_are_class_names_if_known_and_faults_are_items() -> None:
    encoded = jpeg()
    source = MemorySource(
        [encoded, encoded, encoded, encoded, None, encoded[:-200]],
        [0, 1, 2, -1, 0, 0],
        ["cat", "dog"],
    )
    reader = PictureReader(source)
    assert len(reader) == 6
    labels = [reader.item(index).label for index in range(4)]
    assert labels == ["cat", "dog", "label 2", "label -1"]
    assert PictureReader(source, labelled=False).item(1).label == ""
    assert reader.item(4) == Item(where="memory, entry 4", fault="the checksum is wrong")
    cut = reader.item(5)
    assert (cut.where, cut.content, cut.look) == ("memory, entry 5", b"", None)
    assert cut.fault
    with pytest.raises(CorruptRecord) as caught:
        picture_item(source.read(5))
    assert (caught.value.fault.origin, caught.value.fault.reason) == (cut.where, cut.fault)
