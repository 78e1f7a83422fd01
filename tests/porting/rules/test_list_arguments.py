"""Arguments that a port passes to TensorFlow as lists, checked with TensorFlow 1.15."""

import json
from pathlib import Path

import pytest

from jumar.porting.options import PortOptions
from jumar.porting.rewriting.port_file import port_file
from jumar.porting.script.project import Project
from jumar.porting.script.source import SourceText
from tests.tensorflow115 import run_tensorflow

CALLS = (
    "tf.reduce_sum(x, range(1, 3))",
    "tf.transpose(x, perm=range(3))",
    "tf.transpose(x, range(3)[::-1])",
    "tf.constant(range(3))",
    "tf.reshape(x, map(int, [6, 4]))",
    "tf.add_n(map(tf.abs, [x, x]))",
    "tf.constant(filter(bool, [0, 1, 2]))",
    "tf.constant(zip([1, 2], [3, 4]))",
    "tf.constant(zip())",
    "tf.nn.moments(x, axes)",
)
HEAD = "import tensorflow as tf\naxes = range(2)\n"
RUN = """
works = []
for program in json.loads(sys.argv[1]):
    try:
        exec(program, {"x": tf.ones([2, 3, 4])})
        works.append(True)
    except (TypeError, ValueError):
        works.append(False)
answer(works)
"""


def test_values_turned_into_lists_work_as_lists() -> None:
    before = [f"{HEAD}y = {call}\n" for call in CALLS]
    after = [
        port_file(SourceText(text), "script.py", Project(Path("nowhere")), PortOptions()).after
        for text in before
    ]
    assert run_tensorflow(RUN, json.dumps(before)) == [False] * len(CALLS)
    assert run_tensorflow(RUN, json.dumps(after)) == [True] * len(CALLS)


@pytest.mark.parametrize("module", ["six.moves", "builtins"])
def test_ranges_of_six_and_builtins_are_those_of_python_3(module: str) -> None:
    text = f"import tensorflow as tf\nfrom {module} import range\nx = tf.constant(range(3))\n"
    report = port_file(SourceText(text), "script.py", Project(Path("nowhere")), PortOptions())
    assert report.after.endswith("x = tf.constant(list(range(3)))\n")
