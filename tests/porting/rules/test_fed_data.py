"""Data for Keras that every rank reads by itself."""

from pathlib import Path

import pytest

from jumar.porting.edits import FileReport
from jumar.porting.options import PortOptions
from jumar.porting.rewriting.port_file import port_file
from jumar.porting.script.project import Project
from jumar.porting.script.source import SourceText

HEAD = "from keras.models import load_model\nmodel = load_model('model.h5')\n"


def port(text: str, devices: int = 8) -> FileReport:
    options = PortOptions(devices=devices)
    return port_file(SourceText(HEAD + text), "s.py", Project(Path("nowhere")), options)


def lines(report: FileReport) -> list[int]:
    return [item.place.line for item in report.findings if item.rule == "fed-data"]


@pytest.mark.parametrize(
    "call",
    [
        "model.fit(x, y)",
        "model.fit(x=x, y=y)",
        "model.fit_generator(batches())",
        "model.fit_generator(generator=batches())",
        "model.train_on_batch(x, y)",
    ],
)
def test_first_training_call_is_reported_with_several_devices(call: str) -> None:
    text = f"model.evaluate(x, y)\n{call}\n{call}\n"
    assert lines(port(text)) == [4]
    assert not lines(port(text, devices=1))


@pytest.mark.parametrize(
    "text",
    [
        "import tensorflow as tf\nmodel.fit(tf.data.Dataset.range(8).batch(2))\n",
        "model.fit(**everything)\n",
        "model.predict(x)\n",
        "other.fit(x, y)\n",
    ],
)
def test_datasets_and_non_training_calls_are_ignored(text: str) -> None:
    assert not lines(port(text))


def test_rank_aware_script_is_kept_with_that_reason() -> None:
    report = port("import os\nrank = os.getenv('RANK_ID')\nmodel.fit(x[rank::8], y)\n")
    assert not lines(report)
    assert [item.place.line for item in report.kept if item.rule == "fed-data"] == [5]
