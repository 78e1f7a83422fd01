"""Checks of images."""

import hashlib
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from jumar.data.checking.item import Item
from jumar.data.pixels.decode import DecodeError, EncodedImage, opened
from jumar.data.samples import CorruptRecord, ImageSource, Record

LOOK_SIDE = 16
_FIRST_ROTATED = 2
"""The EXIF orientations from this one on rotate or mirror the stored pixels."""


class PictureReader:
    """Reads the images of a source.

    Args:
        source: The undecoded images.
        labelled: Whether their labels are meaningful.
    """

    def __init__(self, source: ImageSource, *, labelled: bool = True) -> None:
        self._source = source
        self._labelled = labelled

    def __len__(self) -> int:
        return len(self._source)

    def item(self, index: int) -> Item:
        """See `ItemReader.item`."""
        try:
            record = self._source.read(index)
            label = _class_name(record.label, self._source.classes) if self._labelled else ""
            return picture_item(record, label)
        except CorruptRecord as error:
            return Item(where=error.fault.origin, fault=error.fault.reason)


def picture_item(record: Record, label: str = "", traits: Sequence[str] = ()) -> Item:
    """Decode an image completely, and return its item.

    Args:
        record: The encoded image.
        label: Its class; empty if it has none.
        traits: Traits beyond those of its encoding.

    Raises:
        CorruptRecord: It cannot be decoded.
    """
    try:
        encoded = EncodedImage(record.encoded)
        pixels = encoded.decode(fast=False)
        encoding_traits = _traits(record.encoded, encoded.orientation)
    except DecodeError as error:
        raise CorruptRecord(record.origin, error) from error
    return Item(
        where=record.origin,
        content=hashlib.blake2b(record.encoded, digest_size=16).digest(),
        meaning=hashlib.blake2b(
            pixels.tobytes(), digest_size=16, salt=f"{encoded.width}".encode()
        ).digest(),
        label=label,
        classes=(label,) if label else (),
        size=(("width", encoded.width), ("height", encoded.height)),
        traits=(*encoding_traits, *traits),
        look=_look(pixels),
    )


def _class_name(label: int, classes: Sequence[str]) -> str:
    return classes[label] if 0 <= label < len(classes) else f"label {label}"


def _traits(encoded: bytes, orientation: int) -> tuple[str, ...]:
    with opened(encoded) as image:
        mode, frames = image.mode, getattr(image, "n_frames", 1)
        has_alpha = mode in ("RGBA", "LA", "PA") or "transparency" in image.info
    traits = {
        "grey": mode in ("1", "L", "LA"),
        "CMYK": mode in ("CMYK", "YCCK"),
        "palette": mode in ("P", "PA"),
        "16 bit": mode.startswith("I"),
        "alpha": has_alpha,
        "rotated by EXIF": orientation >= _FIRST_ROTATED,
        "several frames": frames > 1,
    }
    return tuple(name for name, applies in traits.items() if applies)


def _look(pixels: NDArray[np.uint8]) -> NDArray[np.uint8]:
    grey = Image.fromarray(pixels).convert("L")
    small = grey.resize((LOOK_SIDE, LOOK_SIDE), Image.Resampling.BOX)
    return np.asarray(small).reshape(-1)
