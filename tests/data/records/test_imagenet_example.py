"""Images as records of ImageNet's form, and back."""

import io

import pytest
from PIL import Image

from jumar.data.records.example import (
    BytesFeature,
    Feature,
    FloatFeature,
    IntegerFeature,
    decode_example,
    encode_example,
)
from jumar.data.records.imagenet_example import (
    example_of_record,
    picture_of_example,
    record_of_example,
)
from jumar.data.samples import CorruptRecord, Record

SIDES = [f"image/object/bbox/{side}" for side in ("ymin", "xmin", "ymax", "xmax")]


def picture(mode: str, kind: str) -> bytes:
    file = io.BytesIO()
    Image.new(mode, (5, 3)).save(file, kind)
    return file.getvalue()


@pytest.mark.parametrize(
    ("mode", "kind", "colorspace", "channels"),
    [
        ("1", "PNG", b"Grayscale", 1),
        ("L", "PNG", b"Grayscale", 1),
        ("LA", "PNG", b"Grayscale", 2),
        ("I;16", "PNG", b"Grayscale", 1),
        ("P", "PNG", b"RGB", 3),
        ("RGB", "JPEG", b"RGB", 3),
        ("RGBA", "PNG", b"RGB", 4),
        ("CMYK", "JPEG", b"CMYK", 4),
    ],
)
def test_record_describes_its_image_completely(
    mode: str, kind: str, colorspace: bytes, channels: int
) -> None:
    encoded = picture(mode, kind)
    boxes = ((0.0, 0.25, 0.5, 0.75), (0.125, 0.0, 1.0, 0.5))
    record = Record(encoded=encoded, label=1, origin="/data/a.zip, b/ü.jpg", boxes=boxes)
    assert decode_example(example_of_record(record, 1, ["none", "cat", "dög"])) == {
        "image/height": IntegerFeature((3,)),
        "image/width": IntegerFeature((5,)),
        "image/colorspace": BytesFeature((colorspace,)),
        "image/channels": IntegerFeature((channels,)),
        "image/class/label": IntegerFeature((2,)),
        "image/class/synset": BytesFeature((b"",)),
        "image/class/text": BytesFeature(("dög".encode(),)),
        "image/object/bbox/ymin": FloatFeature((0.0, 0.125)),
        "image/object/bbox/xmin": FloatFeature((0.25, 0.0)),
        "image/object/bbox/ymax": FloatFeature((0.5, 1.0)),
        "image/object/bbox/xmax": FloatFeature((0.75, 0.5)),
        "image/object/bbox/label": IntegerFeature((2, 2)),
        "image/format": BytesFeature((kind.encode(),)),
        "image/filename": BytesFeature(("ü.jpg".encode(),)),
        "image/encoded": BytesFeature((encoded,)),
    }


@pytest.mark.parametrize(("label", "text"), [(-1, b""), (0, b"cat"), (1, b"dog"), (2, b"")])
def test_names_are_written_for_known_labels_and_sides_for_boxes_only(
    label: int, text: bytes
) -> None:
    record = Record(encoded=picture("L", "PNG"), label=label, origin="a")
    payload = example_of_record(record, 0, ["cat", "dog"])
    features = decode_example(payload)
    assert features["image/class/text"] == BytesFeature((text,))
    assert features["image/object/bbox/label"] == IntegerFeature(())
    assert {features[side] for side in SIDES} == {FloatFeature(())}
    assert record_of_example(payload, "here, byte 0") == Record(
        encoded=record.encoded, label=label, origin="here, byte 0", boxes=()
    )
    assert decode_example(example_of_record(record, 0, []))["image/class/text"] == BytesFeature(
        (b"",)
    )


def test_written_records_round_trip_with_their_boxes() -> None:
    boxes = ((0.0, 0.25, 0.5, 0.75), (0.125, 0.0, 1.0, 0.5))
    record = Record(encoded=picture("RGB", "PNG"), label=7, origin="x", boxes=boxes)
    assert record_of_example(example_of_record(record, 0, []), "x") == record
    assert picture_of_example(example_of_record(record, 0, []), "y") == Record(
        encoded=record.encoded, label=0, origin="y"
    )


def test_non_image_bytes_are_a_fault_of_their_record() -> None:
    with pytest.raises(CorruptRecord, match="unreadable image: ") as error:
        example_of_record(Record(encoded=b"text", label=0, origin="a.jpg"), 0, [])
    assert error.value.fault.origin == "a.jpg"


GOOD: dict[str, Feature] = {
    "image/encoded": BytesFeature((b"picture",)),
    "image/class/label": IntegerFeature((3,)),
}


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        (
            {"image/encoded": BytesFeature((b"a", b"b"))},
            "'image/encoded' is not a single byte string",
        ),
        ({"image/encoded": IntegerFeature((1,))}, "'image/encoded' is not a single byte string"),
        ({"image/encoded": BytesFeature((b"",))}, "'image/encoded' is empty"),
        ({"image/class/label": IntegerFeature(())}, "'image/class/label' is not a single integer"),
        (
            {"image/class/label": FloatFeature((1.0,))},
            "'image/class/label' is not a single integer",
        ),
        (
            {SIDES[0]: FloatFeature((1.0, 2.0)), SIDES[3]: FloatFeature((1.0,))},
            "the lists of box sides differ in length: 2, 0, 0, 1",
        ),
        ({SIDES[1]: BytesFeature((b"a",))}, f"'{SIDES[1]}' is not a list of floats"),
        (
            {
                side: FloatFeature((0.5, float("inf") if side == SIDES[2] else 1.0))
                for side in SIDES
            },
            "a box has a side that is not a finite number",
        ),
    ],
)
def test_record_of_another_format_is_reported_with_its_location(
    changed: dict[str, Feature], reason: str
) -> None:
    payload = encode_example({**GOOD, **changed})
    with pytest.raises(CorruptRecord) as error:
        record_of_example(payload, "shard, byte 9")
    assert str(error.value.fault) == f"shard, byte 9: {reason}"
    if "image/encoded" in changed:
        with pytest.raises(CorruptRecord) as error:
            picture_of_example(payload, "shard, byte 9")
        assert str(error.value.fault) == f"shard, byte 9: {reason}"
    else:
        assert picture_of_example(payload, "here").encoded == b"picture"


def test_empty_list_of_any_type_gives_no_boxes() -> None:
    sides = dict(zip(SIDES, (BytesFeature(()), IntegerFeature(())), strict=False))
    assert record_of_example(encode_example({**GOOD, **sides}), "").boxes == ()


@pytest.mark.parametrize("boxes", [((0.0, 0.0, 1.0),), ((0.0, 0.0, 1.0, 1.0), (0.0, 1.0, 1.0))])
def test_box_needs_four_sides(boxes: tuple[tuple[float, float, float, float], ...]) -> None:
    with pytest.raises(ValueError, match=r"shorter|longer"):
        example_of_record(
            Record(encoded=picture("L", "PNG"), label=0, origin="a", boxes=boxes), 0, []
        )
