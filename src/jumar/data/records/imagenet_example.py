"""ImageNet records: the tf.Example of one labelled image, with its annotated boxes.

The keys are those of the ImageNet scripts of tensorflow/models (research/slim and inception).
"""

import io
import math
import os
from collections.abc import Sequence
from typing import cast

from PIL import Image

from jumar.data.pixels.decode import reason_of
from jumar.data.records.example import (
    BytesFeature,
    Feature,
    FloatFeature,
    IntegerFeature,
    decode_example,
    encode_example,
)
from jumar.data.samples import CorruptRecord, Record

ENCODED = "image/encoded"
LABEL = "image/class/label"
BOX_SIDES = tuple(f"image/object/bbox/{side}" for side in ("ymin", "xmin", "ymax", "xmax"))
_WANTED = frozenset(key.encode() for key in (ENCODED, LABEL, *BOX_SIDES))
_COLORSPACES = {
    "1": ("Grayscale", 1),
    "L": ("Grayscale", 1),
    "LA": ("Grayscale", 2),
    "I;16": ("Grayscale", 1),
    "P": ("RGB", 3),
    "CMYK": ("CMYK", 4),
}
"""Colour space and channels by Pillow's mode; any other is RGB, with one channel per band."""


def record_of_example(payload: bytes, origin: str) -> Record:
    """Decode image, label and boxes of a serialized tf.Example.

    Args:
        payload: The message.
        origin: File and byte offset, for error messages.

    Raises:
        CorruptRecord: It is not a tf.Example, or lacks an image, a label, or a coordinate of a box.
    """
    try:
        features = decode_example(payload, _WANTED)
        return Record(
            encoded=_image(features),
            label=_label(features),
            origin=origin,
            boxes=_boxes(features),
        )
    except ValueError as error:
        raise CorruptRecord(origin, error) from error


def picture_of_example(payload: bytes, origin: str) -> Record:
    """Decode only the image of a serialized tf.Example, with label 0, ignoring its label.

    Args:
        payload: The message.
        origin: File and byte offset, for error messages.

    Raises:
        CorruptRecord: It is not a tf.Example, or lacks an image.
    """
    try:
        features = decode_example(payload, frozenset({ENCODED.encode()}))
        return Record(encoded=_image(features), label=0, origin=origin)
    except ValueError as error:
        raise CorruptRecord(origin, error) from error


def example_of_record(record: Record, label_offset: int, names: Sequence[str]) -> bytes:
    """Serialize an image as a tf.Example, with the size and colours in its header.

    Args:
        record: The image.
        label_offset: Added to its label.
        names: Class names by the resulting label; empty if unknown.

    Raises:
        CorruptRecord: It does not have the header of an image.
    """
    width, height, colorspace, channels, kind = _header(record)
    label = record.label + label_offset
    text = names[label] if 0 <= label < len(names) else ""
    sides = list(zip(*record.boxes, strict=True)) or [()] * len(BOX_SIDES)
    features: dict[str, Feature] = {
        "image/height": IntegerFeature((height,)),
        "image/width": IntegerFeature((width,)),
        "image/colorspace": BytesFeature((colorspace.encode(),)),
        "image/channels": IntegerFeature((channels,)),
        LABEL: IntegerFeature((label,)),
        "image/class/synset": BytesFeature((b"",)),
        "image/class/text": BytesFeature((text.encode("utf-8", "surrogateescape"),)),
        **{
            key: FloatFeature(cast("tuple[float, ...]", side))
            for key, side in zip(BOX_SIDES, sides, strict=True)
        },
        "image/object/bbox/label": IntegerFeature((label,) * len(record.boxes)),
        "image/format": BytesFeature((kind.encode(),)),
        "image/filename": BytesFeature((os.fsencode(record.origin.rpartition("/")[2]),)),
        ENCODED: BytesFeature((record.encoded,)),
    }
    return encode_example(features)


def _header(record: Record) -> tuple[int, int, str, int, str]:
    try:
        with Image.open(io.BytesIO(record.encoded)) as image:
            colorspace, channels = _COLORSPACES.get(image.mode, ("RGB", len(image.getbands())))
            return image.width, image.height, colorspace, channels, image.format or ""
    # For damaged headers, Pillow also raises errors of struct, zlib and others.
    except Exception as error:
        raise CorruptRecord(record.origin, f"unreadable image: {reason_of(error)}") from error


def _image(features: dict[str, Feature]) -> bytes:
    feature = features.get(ENCODED)
    if not isinstance(feature, BytesFeature) or len(feature.values) != 1:
        raise ValueError(f"'{ENCODED}' is not a single byte string")
    if not feature.values[0]:
        raise ValueError(f"'{ENCODED}' is empty")
    return feature.values[0]


def _label(features: dict[str, Feature]) -> int:
    feature = features.get(LABEL)
    if not isinstance(feature, IntegerFeature) or len(feature.values) != 1:
        raise ValueError(f"'{LABEL}' is not a single integer")
    return feature.values[0]


def _boxes(features: dict[str, Feature]) -> Sequence[tuple[float, float, float, float]]:
    sides: list[tuple[float, ...]] = []
    for key in BOX_SIDES:
        feature = features.get(key, FloatFeature(()))
        # An empty list may be stored as any type.
        if not isinstance(feature, FloatFeature) and feature.values:
            raise ValueError(f"'{key}' is not a list of floats")
        sides.append(feature.values if isinstance(feature, FloatFeature) else ())
    if len({len(values) for values in sides}) > 1:
        counts = ", ".join(str(len(values)) for values in sides)
        raise ValueError(f"the lists of box sides differ in length: {counts}")
    if not all(math.isfinite(value) for values in sides for value in values):
        raise ValueError("a box has a side that is not a finite number")
    return tuple(zip(*sides, strict=True))
