"""Averages over the gradients of towers are distinguished from other uses of gradients."""

from pathlib import Path

import pytest

from jumar.porting.edits import Finding
from jumar.porting.options import PortOptions
from jumar.porting.rewriting.port_file import port_file
from jumar.porting.script.project import Project
from jumar.porting.script.source import SourceText

AVERAGE = """import tensorflow as tf

def average_gradients(towers):
    return [tf.reduce_mean(tf.stack(one), 0) for one in zip(*towers)]
"""


def found(text: str) -> list[Finding]:
    report = port_file(SourceText(text), "s.py", Project(Path("nowhere")), PortOptions())
    return [item for item in report.findings if item.rule == "distribution-towers"]


def test_average_over_towers_is_reported_once() -> None:
    loop = AVERAGE.replace(
        "return [tf.reduce_mean(tf.stack(one), 0) for one in zip(*towers)]",
        "for one in zip(*towers):\n        tf.add_n(one)\n"
        "    for two in zip(*towers):\n        pass",
    )
    for text, line in ((AVERAGE, 4), (loop, 4)):
        (item,) = found(text)
        assert (item.place.line, item.code, item.severity) == (line, "zip(*towers)", "blocking")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("average_gradients", "average_images"),
        ("tf.reduce_mean", "np.mean"),
        ("zip(*towers)", "zip(towers)"),
        ("zip(*towers)", "zip(*others)"),
        ("zip(*towers)", "zip(*towers, *towers)"),
        ("zip(*towers)", "pairs(*towers)"),
        ("one in zip(*towers)", "one in list(zip(*towers))"),
        ("import tensorflow as tf", "import jax as tf"),
    ],
)
def test_code_that_does_not_average_towers_is_ignored(old: str, new: str) -> None:
    assert not found(AVERAGE.replace(old, new))
