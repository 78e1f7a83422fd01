"""Padded batches: whether their shape depends on what is in them."""

from pathlib import Path

import pytest

from jumar.porting.edits import Confidence
from jumar.porting.options import PortOptions
from jumar.porting.rewriting.port_file import port_file
from jumar.porting.script.project import Project
from jumar.porting.script.source import SourceText

APPLIED = "ds.apply(tf.contrib.data.padded_batch_and_drop_remainder(8, shapes))"
CALLED = "ds.padded_batch(8, padded_shapes=shapes, drop_remainder=True)"


def found(text: str) -> list[tuple[int, Confidence]]:
    head = "import tensorflow as tf\nds = tf.data.TFRecordDataset('a').map(parse)\n"
    report = port_file(SourceText(head + text), "s.py", Project(Path("nowhere")), PortOptions())
    return [
        (item.place.line, item.confidence)
        for item in report.findings
        if item.rule == "padded-shapes"
    ]


@pytest.mark.parametrize("call", [APPLIED, CALLED])
@pytest.mark.parametrize(
    ("shapes", "confidence"),
    [
        ("shapes = ([8, 8], [None, 4])\n", "certain"),
        ("shapes = {'a': [None]}\n", "certain"),
        ("shapes = ([8, 8], [8, 4])\n", None),
        ("shapes = [size, 4]\n", None),
        ("shapes = shapes_of(ds)\n", "unsure"),
        ("shapes = [8]\nshapes = [None]\n", "unsure"),
        ("from sizes import shapes\n", "unsure"),
        ("for shapes in ([8], [None]):\n    ", "unsure"),
    ],
)
def test_shapes_are_read_through_variables(
    shapes: str, confidence: Confidence | None, call: str
) -> None:
    line = 3 + shapes.count("\n")
    assert found(f"{shapes}ds = {call}\n") == ([(line, confidence)] if confidence else [])


def test_batches_without_a_remainder_need_shapes() -> None:
    assert found("ds = ds.apply(tf.contrib.data.batch_and_drop_remainder(8))\n") == []
    assert found("ds = ds.apply(padded_batch_and_drop_remainder(8, [None]))\n") == []
