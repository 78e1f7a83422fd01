"""What an expression holds."""

import ast
from pathlib import Path

import pytest

from jumar.porting.script.kinds import Kinds
from jumar.porting.script.module import Module
from jumar.porting.script.project import Project

TF = "import tensorflow as tf\n"


def kind(text: str) -> str | None:
    """The kind of the last expression of a script."""
    module = Module(text, "script.py", Project(Path("nowhere")))
    found = [node for node in ast.walk(module.tree) if isinstance(node, ast.Expr)]
    found.sort(key=lambda node: node.lineno)
    return Kinds(module).of(found[-1].value)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("tf.data.Dataset.from_tensors(3)", "Dataset"),
        ("d = tf.data.TFRecordDataset(f).map(g)\nd = d.shuffle(3)\nd", "Dataset"),
        ("d = None\nif x:\n    d = tf.data.Dataset.range(3)\nd", "Dataset"),
        ("def f():\n    d = tf.data.Dataset.range(3)\n    return d.batch(2)\nf()", "Dataset"),
        ("f(tf.data.Dataset.range(3))\ndef f(d):\n    d", "Dataset"),
        ("d = a if b else a\nd", None),
        ("d = tf.data.Dataset.range(3)\nd = mine(d)\nd", None),
        ("for d in tf.data.Dataset.range(3):\n    d", None),
        ("d = d.map(f)\nd", None),
        ("with tf.Session() as s:\n    s", "Session"),
        ("sv = tf.train.Supervisor()\nwith sv.managed_session() as s:\n    s", "Session"),
        (
            "class A:\n    def __init__(self):\n        self.c = tf.ConfigProto()\n"
            "    def f(self):\n        self.c",
            "ConfigProto",
        ),
        (
            "class A:\n    def __init__(self, c=None):\n        self.c = c\n"
            "    def f(self):\n        self.c",
            None,
        ),
        ("class Opt(tf.train.Optimizer):\n    pass\nOpt()", "Optimizer"),
        ("tf.train.AdamOptimizer(1)", "Optimizer"),
        ("tf.train.Saver()", "Saver"),
        ("c = config or tf.ConfigProto()\nc", "ConfigProto"),
        ("from keras.models import Sequential\nm = Sequential()\nm", "KerasModel"),
        ("def f(c: tf.ConfigProto):\n    c", "ConfigProto"),
        ("def f():\n    return f()\nf()", None),
    ],
)
def test_kinds_follow_assignments_functions_and_attributes(text: str, expected: str | None) -> None:
    assert kind(TF + text) == expected


def test_a_function_that_returns_itself_in_many_places_is_followed_once() -> None:
    # Fourteen returns in every order would be 87 billion ways.
    returns = "".join(f"    if x == {number}: return f({number})\n" for number in range(14))
    assert kind(f"{TF}def f(x):\n{returns}    raise ValueError\nf(1)") is None
    known = "    return tf.data.Dataset.range(x)\n"
    assert kind(f"{TF}def f(x):\n{returns}{known}f(1)") == "Dataset"
