"""Arrays for Keras: which calls may have a smaller last batch, and which surely have none."""

from pathlib import Path

import pytest

from jumar.porting.edits import Confidence, FileReport
from jumar.porting.options import PortOptions
from jumar.porting.rewriting.port_file import port_file
from jumar.porting.script.project import Project
from jumar.porting.script.source import SourceText

RULE = "keras-last-batch"
HEAD = """import numpy as np
import tensorflow as tf
from keras.datasets import cifar10, imdb, mnist
from keras.models import load_model

model = load_model("model.h5")
"""
MNIST = "(x, y), (x_test, y_test) = mnist.load_data()\n"


def port(text: str) -> FileReport:
    return port_file(SourceText(HEAD + text), "s.py", Project(Path("nowhere")), PortOptions())


def found(text: str) -> list[tuple[str, Confidence]]:
    """The first words and the confidence of what is reported about a script."""
    return [
        (item.reason.en.partition(" are ")[0][:13], item.confidence)
        for item in port(text).findings
        if item.rule == RULE
    ]


def is_left(text: str) -> bool:
    return [item.rule for item in port(text).kept if item.rule == RULE] == [RULE]


UNKNOWN = [("Keras splits ", "likely")]


@pytest.mark.parametrize(
    ("text", "samples"),
    [
        (MNIST + "model.fit(x, y, 64)", 60000),
        (MNIST + "model.fit(x, y, batch_size=64, epochs=3)", 60000),
        (MNIST + "model.evaluate(x_test, y_test)", 10000),
        ("(x, y), (a, b) = imdb.load_data()\nmodel.fit(x, y)", 25000),
        (MNIST + "size = 64\nmodel.fit(x, y, batch_size=size)", 60000),
        (MNIST + "x = x.reshape(60000, 784) / 255.0\nmodel.fit(x, y, 64)", 60000),
        (MNIST + "x = x.reshape((len(x), 784)).astype('float32')\nmodel.fit(x, y, 64)", 60000),
        (MNIST + "x /= 255\nx = np.asarray(x)\nmodel.fit(x, y, 64)", 60000),
        (MNIST + "z = np.expand_dims(x, -1)\nmodel.fit(z, y, 64)", 60000),
        (MNIST + "model.fit([x, x], y, 64)", 60000),
        ("model.fit(np.zeros((70, 3)), y)", 70),
        ("n = 70\nmodel.fit(np.random.rand(n, 3), y)", 70),
        ("model.fit(np.zeros((640, 3)), y, validation_split=0.25, batch_size=64)", 480),
        ("model.fit(np.zeros((100, 3)), y, 50, validation_split=0.1)", 90),
        ("model.fit(np.zeros((80, 3)), y, validation_split=0.2)", 16),
        ("model.fit(np.zeros((64, 3)), y, validation_data=(np.zeros((40, 3)), z))", 40),
    ],
)
def test_known_size_that_is_not_a_multiple_is_reported_with_numbers(
    text: str, samples: int
) -> None:
    assert found(text) == [(f"{samples} samples"[:13], "certain")]


@pytest.mark.parametrize(
    "text",
    [
        "model.fit(x, y)",
        "model.evaluate(x, y, batch_size=10)",
        MNIST + "x = x[:640]\nmodel.fit(x, y)",
        MNIST + "x, y = x[:641], y\nmodel.fit(x, y, 10)",
        MNIST + "z = np.expand_dims(x, 0)\nmodel.fit(z, y, 10)",
        MNIST + "x = np.concatenate([x, x_test])\nmodel.fit(x, y, 10)",
        MNIST + "model.fit(x, y, batch_size=args.batch)",
        MNIST + "model.fit(x, y, 10, validation_data=held_out)",
        MNIST + "model.fit(x, y, 10, validation_split=args.held)",
        "(x, y), (a, b) = imdb.load_data(maxlen=80)\nmodel.fit(x, y, 10)",
        "(x, y), (a, b) = other.datasets.mnist.load_data()\nmodel.fit(x, y, 10)",
        "x = np.zeros((64, 2))\nif a:\n    x = np.zeros((96, 2))\nmodel.fit(x, y)",
        "x = x + 1\nmodel.fit(x, y)",
        "x = y\ny = x\nmodel.fit(x, y)",
        "def run(x, y):\n    model.fit(x, y)",
    ],
)
def test_unknown_sizes_are_reported_without_numbers(text: str) -> None:
    assert found(text) == UNKNOWN


def test_mutually_bound_names_do_not_blow_up() -> None:
    # Twelve steps with four ways each would take minutes.
    assert found("x = y\ny = x\n" * 4 + "model.fit(x, y)") == UNKNOWN


def test_unknown_arguments_may_contain_steps() -> None:
    assert found("model.fit(x, y, **more)") == [("Keras splits ", "unsure")]


@pytest.mark.parametrize(
    "text",
    [
        MNIST + "model.fit(x, y, 100, validation_data=(x_test, y_test))",
        MNIST + "model.fit(x, y, batch_size=1)",
        MNIST + "x = x.reshape(60000, 28, 28, 1)\nmodel.fit(x, y, 100, validation_split=0.5)",
        "model.fit(np.zeros((64, 3)), y, validation_split=0)",
        "model.fit(np.ones((64, 3)), y, batch_size=None, validation_data=None)",
    ],
)
def test_whole_batches_are_kept_with_that_reason(text: str) -> None:
    assert not found(text)
    assert is_left(text)


@pytest.mark.parametrize(
    "text",
    [
        "model.fit(x, y, steps_per_epoch=10)",
        "model.evaluate(x, y, steps=10)",
        "model.evaluate(x, y, 8, 0, None, 10)",
        "model.fit(x, y, batch_size=len(x))",
        "model.fit(x, y, batch_size=x.shape[0])",
        "model.fit(data)",
        "model.fit(data, None)",
        "model.fit(tf.data.Dataset.range(8).batch(2), y)",
        "model.fit(images.flow(x, y), y)",
        "model.predict(x, y)",
        "other.fit(x, y)",
    ],
)
def test_calls_with_explicit_or_no_batches_are_ignored(text: str) -> None:
    assert not found(text)
    assert not is_left(text)


def test_evaluation_does_not_drop_samples() -> None:
    (item,) = [one for one in port("model.evaluate(x, y)").findings if one.rule == RULE]
    assert "would lose samples" in item.todo.en
