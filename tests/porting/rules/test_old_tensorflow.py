"""Scripts of TensorFlow before 1.0: what is renamed, what is reported, what is left."""

import json
from pathlib import Path

import numpy as np
import pytest

from jumar.porting.edits import FileReport
from jumar.porting.options import PortOptions
from jumar.porting.rewriting.port_file import port_file
from jumar.porting.rules.tensorflow.old_names import OLD, STILL_AVAILABLE
from jumar.porting.script.project import Project
from jumar.porting.script.source import SourceText
from jumar.porting.standin import standin_folder
from tests.tensorflow115 import run_tensorflow

RULE = "old-tensorflow"
TF = "import tensorflow as tf\n\n"
SCRIPT = """
import tempfile
import numpy as np
import tensorflow as tf

x = tf.constant(np.linspace(-1, 1, 12).reshape(2, 2, 3), tf.float32)
left, right = tf.split(1, 2, x)
rows = [tf.squeeze(row, [0]) for row in tf.split(split_dim=0, num_split=2, value=x)]
logits = tf.reduce_sum(tf.concat(concat_dim=1, values=[left, tf.sub(left, tf.neg(right))]), 2)
ones = tf.ones_like(logits)
parts = [
    tf.concat(2, [left, tf.mul(right, 2.0)]),
    tf.batch_matmul(left, x, adj_y=True),
    tf.select(x > 0, x, tf.inv(x)),
    tf.nn.softmax_cross_entropy_with_logits(logits, ones / 2),
    tf.nn.sparse_softmax_cross_entropy_with_logits(logits, tf.pack([0, 1])),
    tf.nn.sigmoid_cross_entropy_with_logits(logits, targets=ones),
    tf.unpack(rows[0])[1],
    tf.batch_matrix_diag(logits),
    tf.sparse_tensor_to_dense(tf.SparseTensor([[0, 1]], [2.5], shape=[2, 2])),
]
states, _ = tf.nn.rnn(tf.nn.rnn_cell.BasicLSTMCell(2), rows, dtype=tf.float32)
tf.scalar_summary(tags="loss", values=tf.reduce_sum(parts[3]))
tf.image_summary("image", tf.expand_dims(x, 3), max_images=1)
both = tf.merge_summary([tf.histogram_summary("x", states[1]), tf.scalar_summary("y", 1.0)])
with tf.Session() as sess:
    sess.run(tf.initialize_all_variables())
    writer = tf.train.SummaryWriter(tempfile.mkdtemp(), sess.graph)
    writer.add_summary(sess.run(tf.merge_all_summaries()), 1)
    writer.add_summary(sess.run(both), 1)
    values = [value.tolist() for value in sess.run(parts)]
"""
RUN = """
import runpy
sys.path.insert(0, sys.argv[2])
answer(runpy.run_path(sys.argv[1])["values"])
"""
NAMES = """
import tensorflow as tf1
import tensorflow.contrib
def found(name):
    value = tf1
    for part in name.split("."):
        value = getattr(value, part, None)
    return value is not None
answer([name for name in json.loads(sys.argv[1]) if found(name)])
"""


def port(text: str) -> FileReport:
    return port_file(SourceText(text), "script.py", Project(Path("nowhere")), PortOptions())


def reported(text: str) -> list[str]:
    return [item.code for item in port(TF + text).findings if item.rule == RULE]


def expected() -> list[np.ndarray]:
    x = np.linspace(-1, 1, 12).reshape(2, 2, 3)
    left, right = x[:, :1], x[:, 1:]
    logits = np.concatenate([left, left + right], 1).sum(2)
    minus_log = np.log(np.exp(logits).sum(1, keepdims=True)) - logits
    dense = np.zeros((2, 2))
    dense[0, 1] = 2.5
    return [
        np.concatenate([left, 2 * right], 2),
        left @ x.transpose(0, 2, 1),
        np.where(x > 0, x, 1 / x),
        minus_log.mean(1),
        minus_log[[0, 1], [0, 1]],
        np.log1p(np.exp(-logits)),
        x[0, 1],
        logits[:, :, None] * np.eye(2),
        dense,
    ]


def test_pre_1_0_script_computes_the_same_in_1_15(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(port(SCRIPT).after, encoding="utf-8")
    values = run_tensorflow(RUN, str(script), str(standin_folder()))
    for value, right in zip(values, expected(), strict=True):
        np.testing.assert_allclose(np.array(value), right, rtol=1e-5, atol=1e-6)


def test_new_names_exist_in_1_15_and_old_ones_do_not() -> None:
    short = {name.removeprefix("tensorflow."): old.current_name for name, old in OLD.items()}
    still = [name.removeprefix("tensorflow.") for name in STILL_AVAILABLE]
    there = set(run_tensorflow(NAMES, json.dumps([*short, *short.values(), *still])))
    assert {now for now in short.values() if now} <= there
    assert not {name for name, now in short.items() if now} & there
    assert set(still) <= there


@pytest.mark.parametrize(
    "call",
    [
        'tf.scalar_summary(["a", "b"], losses)',
        'tf.scalar_summary("a", loss, name="b")',
        'tf.scalar_summary("a", loss, None, "b")',
        "tf.image_summary(*arguments)",
        "tf.batch_matmul(x, y, True)",
        "tf.batch_svd(x)",
        'tf.nn.rnn_cell.linear(x, 3, True, scope="a")',
    ],
)
def test_call_without_an_equivalent_in_1_15_is_reported(call: str) -> None:
    assert reported(f"a = {call}\n") == [call.partition("(")[0]]
    assert not [edit for edit in port(f"{TF}a = {call}\n").edits if edit.rule == RULE]


@pytest.mark.parametrize(
    "line",
    [
        "from tensorflow import pack, stack",
        "from tensorflow.models.rnn import seq2seq",
        "from tensorflow.models.rnn.ptb import reader",
        "import tensorflow.models.rnn.rnn_cell as cells",
        "from tensorflow.python.ops.seq2seq import sequence_loss",
    ],
)
def test_import_of_a_removed_name_is_reported_once(line: str) -> None:
    text = f"{line}\nx = pack([a, b])\n"
    assert reported(text) == [line]
    assert not [edit for edit in port(TF + text).edits if edit.rule == RULE]


def test_import_with_a_fallback_is_kept() -> None:
    text = "try:\n    from tensorflow import pack\nexcept ImportError:\n"
    assert not reported(f"{text}    from tensorflow import stack as pack\n")


def test_call_of_an_imported_name_is_kept_with_its_import() -> None:
    text = "from tensorflow import scalar_summary\nscalar_summary(tags='a', values=x)\n"
    assert port(text).status == "unchanged"
    assert reported(text) == ["from tensorflow import scalar_summary"]


@pytest.mark.parametrize(
    "text",
    [
        "try:\n    x = tf.pack(y)\nexcept AttributeError:\n    x = tf.stack(y)\n",
        "try:\n    x = tf.pack(y)\nexcept:\n    x = tf.stack(y)\n",
        "try:\n    x = tf.stack(y)\nexcept AttributeError:\n    x = tf.pack(y)\n",
        "if hasattr(tf, 'pack'):\n    x = tf.pack(y)\n",
        "if 'pack' in dir(tf):\n    x = tf.pack(y)\n",
        "if tf.__version__ < '1.0':\n    x = tf.pack(y)\n",
        "x = tf.pack(y) if TF_VERSION < 1 else tf.stack(y)\n",
    ],
)
def test_script_that_chooses_by_release_is_kept_with_that_reason(text: str) -> None:
    report = port(TF + text)
    assert not [edit for edit in report.edits if edit.rule == RULE]
    assert [kept.code for kept in report.kept if kept.rule == RULE] == ["tf.pack"]


@pytest.mark.parametrize(
    "text",
    [
        "try:\n    x = tf.pack(y)\nexcept KeyboardInterrupt:\n    tf.logging.info('end')\n",
        "try:\n    x = tf.pack(y)\nexcept Exception as error:\n    print(error)\n",
        "try:\n    x = tf.pack(y)\nfinally:\n    tf.logging.info('end')\n",
        "try:\n    x = y\nexcept:\n    x = tf.zeros(1)\nelse:\n    x = tf.pack(y)\n",
        "try:\n    x = tf.pack(y)\nexcept Exception:\n    import pdb\n    pdb.set_trace()\n",
        "try:\n    x = tf.pack(y)\nexcept Exception:\n    tf.logging.error('end')\n",
        "if hasattr(args, 'rows'):\n    x = tf.pack(y)\n",
        "if VERSION == 2:\n    x = tf.pack(y)\n",
        "if args.version == 2:\n    x = tf.pack(y)\n",
        "if hasattr(tf, 'stack') and tf.pack(y):\n    pass\n",
    ],
)
def test_code_that_only_resembles_a_release_check_is_renamed(text: str) -> None:
    assert port(TF + text).after == TF + text.replace("tf.pack", "tf.stack")


def test_names_still_in_1_15_are_kept_with_that_reason() -> None:
    report = port(f"{TF}x = tf.all_variables()\n")
    assert [(kept.rule, kept.code) for kept in report.kept] == [(RULE, "tf.all_variables")]


def test_calls_through_a_variable_get_current_arguments() -> None:
    text = (
        f"{TF}show, join, scalar = tf.image_summary, tf.concat, tf.scalar_summary\n"
        "image = tf.image_summary\nconcat = tf.concat\nloss = tf.scalar_summary\n"
        "image('a', x, max_images=2)\nconcat(1, [x, y])\nloss('a', x)\nloss(['a'], x)\n"
    )
    report = port(text)
    assert report.after.splitlines()[6:] == [
        "image('a', x, max_outputs=2)",
        "concat(axis=1, values=[x, y])",
        "loss('a', x)",
        "loss(['a'], x)",
    ]
    assert [item.code for item in report.findings if item.rule == RULE] == ["loss"]


def test_keywords_get_their_current_names() -> None:
    report = port(f"{TF}x = tf.select(c, t=a, e=b)\ny = tf.batch_matmul(x=x, y=a, adj_x=True)\n")
    assert report.after.splitlines()[2:] == [
        "x = tf.where(c, x=a, y=b)",
        "y = tf.matmul(a=x, b=a, adjoint_a=True)",
    ]


def test_aliased_tensorflow_module_is_reported() -> None:
    text = "from tensorflow import train\nwriter = train.SummaryWriter(folder)\n"
    report = port(text)
    assert [item.code for item in report.findings if item.rule == RULE] == ["train.SummaryWriter"]


@pytest.mark.parametrize(
    ("call", "after"),
    [
        ("tf.concat(axis, parts)", "tf.concat(axis=axis, values=parts)"),
        ("tf.concat(last_dim, [x, y])", "tf.concat(axis=last_dim, values=[x, y])"),
        ("tf.concat(parts, axis)", ""),
        ("tf.concat(parts, split_axis)", ""),
        ("tf.concat(columns, rows)", ""),
        ("tf.concat(along_axis, dim)", ""),
        ("tf.concat(parts, [1])", ""),
        ("tf.concat([x, y], [0, 1])", ""),
        ("tf.concat(1, *parts)", ""),
        ("tf.concat(1, [x, y], 'joined', True)", ""),
        ("tf.split(axis, 2, x)", "tf.split(axis=axis, num_or_size_splits=2, value=x)"),
        ("tf.split(x, [2, 3], axis)", ""),
        ("tf.split(x, 2, 0)", ""),
        ("tf.split(x, sizes, [0, 1])", ""),
        ("tf.split(x, 2)", ""),
    ],
)
def test_arguments_become_keywords_only_if_the_first_is_the_axis(call: str, after: str) -> None:
    report = port(f"{TF}x = {call}\n")
    expected_text = f"{TF}x = {after}\n" if after else ""
    assert (report.after if report.status == "ported" else "") == expected_text
