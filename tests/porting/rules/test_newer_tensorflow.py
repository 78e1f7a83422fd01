"""Scripts for TensorFlow 2: what 1.15 does not have is reported."""

import json
from pathlib import Path

import pytest

from jumar.porting.options import PortOptions
from jumar.porting.rewriting.port_file import port_file
from jumar.porting.rewriting.registry import rule_named
from jumar.porting.script.project import Project
from jumar.porting.script.source import SourceText
from tests.tensorflow115 import run_tensorflow

RULE = "newer-tensorflow"
NAMES = """
import tensorflow as tf1
def found(name):
    value = tf1
    for part in name.split(".")[1:]:
        value = getattr(value, part, None)
    return value is not None
answer([name for name in json.loads(sys.argv[1]) if found(name)])
"""


def reported(text: str) -> list[str]:
    report = port_file(SourceText(text), "script.py", Project(Path("nowhere")), PortOptions())
    assert report.status == "unchanged"
    return [item.code for item in report.findings if item.rule == RULE]


def test_none_of_the_names_exists_in_1_15() -> None:
    names = rule_named(RULE).references
    assert run_tensorflow(NAMES, json.dumps(["tensorflow.Session", *names])) == [
        "tensorflow.Session"
    ]


@pytest.mark.parametrize(
    ("text", "codes"),
    [
        ("import tensorflow as tf\ntf.random.set_seed(1)\n", ["tf.random.set_seed"]),
        (
            "from tensorflow import keras\n"
            "flip = keras.layers.experimental.preprocessing.RandomFlip()\n",
            ["keras.layers.experimental.preprocessing"],
        ),
        (
            "from tensorflow.keras.layers import Dense, Normalization\nx = Normalization()\n",
            ["from tensorflow.keras.layers import Dense, Normalization"],
        ),
        (
            "import tensorflow as tf\ntry:\n    tf.random.set_seed(1)\n"
            "except AttributeError:\n    tf.set_random_seed(1)\n",
            [],
        ),
        (
            "try:\n    from tensorflow.keras.layers import Normalization\n"
            "except ImportError:\n    from layers import Normalization\n",
            [],
        ),
        (
            "try:\n    from tensorflow.keras.layers import Normalization\n"
            "except ImportError:\n    print('install TensorFlow 2')\n",
            ["from tensorflow.keras.layers import Normalization"],
        ),
    ],
)
def test_tensorflow_2_name_is_reported_unless_there_is_a_fallback(
    text: str, codes: list[str]
) -> None:
    assert reported(text) == codes
