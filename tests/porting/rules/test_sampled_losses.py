"""Losses that took inputs before labels: checked with TensorFlow 1.15, and the order recognised."""

from pathlib import Path

import numpy as np
import pytest

from jumar.porting.edits import FileReport
from jumar.porting.options import PortOptions
from jumar.porting.rewriting.port_file import port_file
from jumar.porting.script.project import Project
from jumar.porting.script.source import SourceText
from jumar.porting.standin import standin_folder
from tests.tensorflow115 import run_tensorflow

RULE = "sampled-losses"
TF = "import tensorflow as tf\n\n"
SCRIPT = """
import numpy as np
import tensorflow as tf

labels = tf.constant([[1], [0]], tf.int64)
hidden = tf.constant([[1.0, 0.5], [-1.0, 2.0]])
weights = tf.constant([[0.1, 0.2], [0.3, -0.4], [0.5, 0.6]])
biases = tf.zeros([3])
sampled = (tf.constant([2], tf.int64), tf.constant([[1.0], [1.0]]), tf.constant([1.0]))
losses = [
    tf.nn.nce_loss(weights, biases, hidden, labels, 1, 3, 1, sampled),
    tf.nn.sampled_softmax_loss(weights, biases, hidden, labels, 1, 3, 1, sampled),
    tf.nn.ctc_loss(
        tf.expand_dims(tf.gather(weights, [0, 1]), 1),
        tf.SparseTensor([[0, 0]], [0], [1, 1]),
        [2],
    ),
]
with tf.Session() as sess:
    values = [value.tolist() for value in sess.run(losses)]
"""
RUN = """
import runpy
sys.path.insert(0, sys.argv[2])
answer(runpy.run_path(sys.argv[1])["values"])
"""


def port(text: str) -> FileReport:
    return port_file(SourceText(text), "script.py", Project(Path("nowhere")), PortOptions())


def edits(report: FileReport) -> int:
    return sum(edit.rule == RULE for edit in report.edits)


def findings(report: FileReport) -> list[tuple[int, str]]:
    return [(item.place.line, item.code) for item in report.findings if item.rule == RULE]


def test_old_argument_order_computes_the_same_in_1_15(tmp_path: Path) -> None:
    text = SCRIPT.replace("losses =", "gone = tf.sub(hidden, 1.0)\nlosses =")
    script = tmp_path / "script.py"
    script.write_text(port(text).after, encoding="utf-8")
    nce, softmax, ctc = run_tensorflow(RUN, str(script), str(standin_folder()))
    hidden = np.array([[1.0, 0.5], [-1.0, 2.0]])
    weights = np.array([[0.1, 0.2], [0.3, -0.4], [0.5, 0.6]])
    true, other = (hidden * weights[[1, 0]]).sum(1), hidden @ weights[2]
    np.testing.assert_allclose(nce, np.log1p(np.exp(-true)) + np.log1p(np.exp(other)), rtol=1e-5)
    np.testing.assert_allclose(softmax, np.log1p(np.exp(other - true)), rtol=1e-5)
    (first, blank), (second, last) = (np.exp(row) / np.exp(row).sum() for row in weights[:2])
    paths = first * second + first * last + blank * second
    np.testing.assert_allclose(ctc, [-np.log(paths)], rtol=1e-5)


@pytest.mark.parametrize(
    ("arguments", "order"),
    [
        ("w, b, hidden, labels, 8, 100", "old"),
        ("w, b, self.embed, self.train_labels, 8, 100", "old"),
        ("w, b, x, tf.expand_dims(batch.targets, 1), 8, 100", "old"),
        ("w, b, tf.nn.embedding_lookup(table, ids), y, 8, 100", "old"),
        ("w, b, x, tf.placeholder(dtype=tf.int64), 8, 100", "old"),
        ("w, b, x, labels=y, num_sampled=8, num_classes=100", "old"),
        ("w, b, x, inputs=y, num_sampled=8, num_classes=100", "new"),
        ("w, b, labels, hidden, 8, 100", "new"),
        ("w, b, y, word_embeddings, 8, 100", "new"),
        ("w, b, tf.placeholder(tf.int32), x, 8, 100", "new"),
        ("w, b, x, y, 8, 100", "unknown"),
        ("w, b, labels, target, 8, 100", "unknown"),
        ("w, b, label_embeddings, y, 8, 100", "unknown"),
        ("w, b, x, tf.placeholder(tf.float32), 8, 100", "unknown"),
        ("w, b, x, num_sampled=8, num_classes=100", "unknown"),
        ("*everything", "unknown"),
        ("w, b, labels=x, inputs=y, num_sampled=8, num_classes=100", "new"),
    ],
)
def test_argument_order_is_inferred_from_names_and_values(arguments: str, order: str) -> None:
    report = port(f"{TF}loss = tf.nn.sampled_softmax_loss({arguments})\n")
    assert edits(report) == (order == "old")
    assert bool(findings(report)) == (order == "unknown")


@pytest.mark.parametrize(
    ("arguments", "order"),
    [
        ("w, b, x, y, 8, 100", "old"),
        ("w, b, labels, hidden, 8, 100", "unknown"),
        ("w, b, labels, target, 8, 100", "unknown"),
        ("w, b, *both", "unknown"),
        ("w, b, x, y, *sizes", "unknown"),
    ],
)
def test_pre_1_0_names_decide_unless_the_arguments_contradict(arguments: str, order: str) -> None:
    report = port(f"{TF}z = tf.pack(w)\nloss = tf.nn.nce_loss({arguments})\n")
    assert edits(report) == (order == "old")
    assert bool(findings(report)) == (order == "unknown")


@pytest.mark.parametrize("text", ["z = tf.pack(w) if tf.__version__ < '1' else w", "z = jax.pack"])
def test_neutral_old_name_decides_nothing(text: str) -> None:
    report = port(f"{TF}{text}\nloss = tf.nn.nce_loss(w, b, x, y, 8, 100)\n")
    assert not edits(report)
    assert len(findings(report)) == 1


def test_call_chosen_by_release_is_kept_with_that_reason() -> None:
    text = "if tf.__version__ < '1':\n    loss = tf.nn.ctc_loss(logits, labels, n)\n"
    report = port(TF + text)
    assert not edits(report)
    assert [kept.rule for kept in report.kept if kept.rule == RULE] == [RULE]


@pytest.mark.parametrize(
    "call",
    [
        "sequence_loss_by_example(x, y, w, softmax_loss_function=f)",
        "sequence_loss_by_example(x, y, w, True, f)",
        "sequence_loss(x, y, w, True, True, f)",
        "model_with_buckets(e, d, y, w, buckets, net, f)",
    ],
)
@pytest.mark.parametrize(
    ("function", "fits"),
    [
        ("def f(inputs, labels):\n    return inputs\n", False),
        ("def f(labels, logits):\n    return logits\n", True),
        ("def f(logits, labels):\n    return logits\n", True),
        ("def f(labels, **others):\n    return labels\n", True),
        ("g = lambda x, y: x\nf = g\n", False),
        ("f = None\n", True),
        ("from losses import f\n", True),
    ],
)
def test_loss_function_must_accept_labels_and_logits(function: str, fits: bool, call: str) -> None:
    found = findings(port(f"{TF}{function}loss = tf.contrib.legacy_seq2seq.{call}\n"))
    assert [line for line, _ in found] == ([] if fits else [3])
