"""Which batches lose their remainder, and which GELU is the NPU's."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jumar.porting.edits import FileReport
from jumar.porting.options import PortOptions
from jumar.porting.rewriting.port_file import port_file
from jumar.porting.script.project import Project
from jumar.porting.script.source import SourceText

TF = "import tensorflow as tf\n\n"
SLICES = "tf.data.Dataset.from_tensor_slices(x)"


def port(text: str, path: str = "script.py") -> FileReport:
    return port_file(SourceText(text), path, Project(Path("nowhere")), PortOptions())


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"def run():\n    train_ds = {SLICES}.batch(2)\n", "True"),
        (f"def load(is_training):\n    return {SLICES}.batch(2)\n", "is_training"),
        (
            f"def load(split):\n    ds = {SLICES}\n    if split == 'train':\n"
            "        ds = ds.shuffle(9)\n    return ds.batch(2)\n",
            "split == 'train'",
        ),
        (
            f"def load(self):\n    if self.training:\n        return {SLICES}.batch(2)\n",
            "True",
        ),
        (
            "class Input(object):\n    def __init__(self, is_training):\n"
            "        self.is_training = is_training\n\n    def load(self, x):\n"
            f"        return {SLICES}.batch(2)\n",
            "self.is_training",
        ),
        (f"def load(x):\n    return {SLICES}.repeat().batch(2)\n", "True"),
        (
            "def load(ds, is_training):\n    ds = ds.prefetch(2)\n    ds = ds.batch(2)\n"
            "    return ds\n",
            "is_training",
        ),
        (
            "def train_data(ds):\n    ds = ds.shuffle(9, reshuffle_each_iteration=True)\n"
            "    return ds.batch(2)\n",
            "True",
        ),
        (f"ds = {SLICES}.batch(2)\ntf.train.AdamOptimizer(1).minimize(loss)\n", "True"),
        (
            f"def load(x):\n    return {SLICES}.batch(2)\n\n\ndef train():\n    return load(1)\n",
            "True",
        ),
        (
            f"def run(x):\n    rows = {SLICES}.batch(2)\n    step = model(rows).train_op\n"
            "    try:\n        sess.run(step)\n    except tf.errors.OutOfRangeError:\n"
            "        pass\n\n\ntraining = run(train_data)\n",
            "True",
        ),
    ],
)
def test_training_input_drops_the_remainder(text: str, expected: str) -> None:
    [edit] = [one for one in port(TF + text).edits if one.rule == "drop-remainder"]
    assert edit.after.endswith(f".batch(2, drop_remainder={expected})")


@pytest.mark.parametrize(
    ("text", "severity"),
    [
        (f"def eval_input_fn():\n    return {SLICES}.batch(2)\n", "accuracy"),
        (f"def run():\n    test_ds = {SLICES}.batch(2)\n", "accuracy"),
        (
            f"def load(training):\n    if not training:\n        return {SLICES}.batch(2)\n",
            "accuracy",
        ),
        (
            f"def load(x):\n    return {SLICES}.batch(2)\n\n\n"
            "train_data = load(1)\neval_data = load(2)\n",
            "look",
        ),
        (f"def load(x):\n    return {SLICES}.batch(2)\n", "look"),
        (
            f"def mean_of(x):\n    rows = {SLICES}.batch(2)\n    while more:\n        try:\n"
            "            total += sess.run(rows)\n        except tf.errors.OutOfRangeError:\n"
            "            break\n    return total\n\n\ntrain_mean = mean_of(train_data)\n",
            "look",
        ),
    ],
)
def test_possible_evaluation_input_keeps_its_last_samples(text: str, severity: str) -> None:
    report = port(TF + text)
    assert report.status == "unchanged"
    assert [one.severity for one in report.findings] == [severity]


@given(scale=st.floats(0.4, 0.6), inner=st.floats(0.7, 0.9), cubic=st.floats(0.03, 0.06))
def test_only_the_tanh_approximation_becomes_the_fused_operator(
    scale: float, inner: float, cubic: float
) -> None:
    text = TF + (
        f"def gelu(x):\n    y = {inner!r} * (x + {cubic!r} * tf.pow(x, 3))\n"
        f"    return {scale!r} * x * (1 + tf.tanh(y))\n"
    )
    exact = (
        abs(scale - 0.5) < 1e-7
        and abs(inner - 0.7978845608) < 1e-7
        and abs(cubic - 0.044715) < 1e-7
    )
    changed = any(edit.rule == "gelu" for edit in port(text).edits)
    assert changed <= (abs(scale - 0.5) < 1e-4)
    assert changed or not exact


def test_gelu_with_the_papers_constants_becomes_the_fused_operator() -> None:
    text = TF + (
        "def gelu(features):\n    coefficient = tf.cast(0.044715, features.dtype)\n"
        "    return 0.5 * features * (1.0 + tf.tanh(0.7978845608028654 * (\n"
        "        features + coefficient * tf.pow(features, 3))))\n"
    )
    assert "return npu_unary_ops.gelu(features)\n" in port(text).after
