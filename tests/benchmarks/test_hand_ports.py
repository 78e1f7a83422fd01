"""A port is scored against what people changed: found, missed, or not of the port."""

import sys
from pathlib import Path

import pytest

from tests.porting.trees import write_files

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

from hand_ports.changes import paired
from hand_ports.scoring import Score, options_of, score
from hand_ports.topics import topics_of

TRAIN = (
    "import tensorflow as tf\n\n\ndef main(loss):\n"
    "    op = tf.train.AdamOptimizer(1e-3).minimize(loss)\n"
    "    with tf.Session() as sess:\n        sess.run(op)\n"
)
BLOCK = (
    "    config = tf.ConfigProto()\n"
    "    block = config.graph_options.rewrite_options.custom_optimizers.add()\n"
    "    block.name = 'NpuOptimizer'\n"
)
PORTED = TRAIN.replace("    with tf.Session()", f"{BLOCK}    with tf.Session(config=config)")


def scored(folder: Path, original: dict[str, str], hand: dict[str, str]) -> Score:
    sides = write_files(folder / "original", original), write_files(folder / "hand", hand)
    return score("it", *sides)


def test_session_ported_by_both_is_rewritten_in_the_same_place(tmp_path: Path) -> None:
    result = scored(tmp_path, {"train.py": TRAIN}, {"train.py": PORTED})
    (item,) = result.scored
    assert (item.topic, item.outcome, item.near) == ("session", "rewritten", "here")
    assert result.covered == 1.0


def test_change_missing_from_the_port_is_silent_and_lowers_the_share(tmp_path: Path) -> None:
    lines = "\nx = tf.mul(1, 2)\n"
    hand = PORTED + "\nfrom npu_bridge.estimator import npu_ops\ny = npu_dynamic_rnn(1)\n"
    result = scored(tmp_path, {"train.py": TRAIN + lines}, {"train.py": hand})
    assert [item.outcome for item in result.scored].count("silent") >= 1
    assert result.covered < 1.0


def test_paths_and_prints_added_by_hand_are_not_part_of_the_port(tmp_path: Path) -> None:
    hand = TRAIN.replace("1e-3", "2e-3").replace("sess.run(op)", "print(sess.run(op))")
    result = scored(tmp_path, {"train.py": TRAIN}, {"train.py": hand})
    assert not result.scored
    assert len(result.others) == 2


def test_comments_quotes_and_line_breaks_do_not_count_as_changes(tmp_path: Path) -> None:
    hand = TRAIN.replace("minimize(loss)", "minimize(\n        loss  # the loss\n    )")
    assert not scored(tmp_path, {"a.py": TRAIN}, {"a.py": hand}).paired.changes


def test_files_are_paired_by_path_then_name_then_content(tmp_path: Path) -> None:
    folder = write_files(
        tmp_path / "original",
        {"a.py": "import os\nprint(os.name)\n", "lib/net.py": PORTED, "main.py": f"{TRAIN}k = 1\n"},
    )
    hand = write_files(
        tmp_path / "hand",
        {"a.py": "print(1)\n", "src/lib/net.py": PORTED, "train_npu.py": f"{TRAIN}k = 2\n"},
    )
    result = paired(folder, hand)
    assert set(result.pairs) == {
        ("a.py", "a.py"),
        ("lib/net.py", "src/lib/net.py"),
        ("main.py", "train_npu.py"),
    }
    assert result.anew == ("a.py",)


@pytest.mark.parametrize(
    ("before", "after", "topic"),
    [
        ("x = tf.nn.dropout(x, 0.5)", "x = npu_ops.dropout(x, 0.5)", "dropout"),
        ("for i in xrange(3): pass", "for i in range(3): pass", "Python 2"),
        ("n = len(x) / 2", "n = len(x) // 2", "Python 2"),
        ("d = d.batch(4)", "d = d.batch(4, drop_remainder=True)", "batch size fixed"),
        ("x = tf.placeholder(tf.float32, [None, 3])", "x = tf.placeholder(tf.float32, [8, 3])",
         "fixed shapes"),
        ("from keras import layers", "from tensorflow.keras import layers", "tf.keras for keras"),
        ("with tf.device('/gpu:0'): pass", "pass", "GPU settings"),
    ],
)  # fmt: skip
def test_topic_of_a_change_follows_from_its_words(
    tmp_path: Path, before: str, after: str, topic: str
) -> None:
    original = write_files(tmp_path / "original", {"a.py": f"{TRAIN}{before}\n"})
    hand = write_files(tmp_path / "hand", {"a.py": f"{TRAIN}{after}\n"})
    (change,) = paired(original, hand).changes
    assert topic in [result.name for result in topics_of(change)]


def test_port_gets_the_options_of_the_hand_port(tmp_path: Path) -> None:
    text = "m = FixedLossScaleManager(1)\no = NPUDistributedOptimizer(o)\n# allow_mix_precision\n"
    options = options_of(write_files(tmp_path, {"a.py": text}))
    assert (options.precision, options.devices) == (None, 8)
    assert options.loss_scale is not None


def test_tensorflow_loss_scale_requests_a_loss_scale(tmp_path: Path) -> None:
    for line, asked in (
        ("o = tf.keras.mixed_precision.experimental.LossScaleOptimizer(o, 2)", True),
        ("m = ExponentialUpdateLossScaleManager(2)", True),
        ("# o = LossScaleOptimizer(o)", False),
        ("o = tf.train.AdamOptimizer(1)", False),
    ):
        (tmp_path / "a.py").write_text(line + "\n", encoding="utf-8")
        assert (options_of(tmp_path).loss_scale is not None) is asked


UNUSED = "DEVICE = '/gpu:0'\n"


@pytest.mark.parametrize(("use", "outcome"), [("", "needless"), ("print(DEVICE)\n", "silent")])
def test_only_unused_constants_are_needless(use: str, outcome: str, tmp_path: Path) -> None:
    result = scored(tmp_path, {"a.py": UNUSED + use}, {"a.py": use or "\n"})
    assert [(item.topic, item.outcome) for item in result.scored] == [("GPU settings", outcome)]


@pytest.mark.parametrize(
    ("start", "outcome"), [("tf.app.run(main)", "needless"), ("session.run(op)", "silent")]
)
def test_configuration_is_needless_if_only_the_script_runs(
    start: str, outcome: str, tmp_path: Path
) -> None:
    before = f"import tensorflow as tf\n{start}\n"
    after = before.replace(start, f"npu_sess, npu_shutdown = init_resource()\n{start}")
    result = scored(tmp_path, {"a.py": before}, {"a.py": after})
    assert [(item.topic, item.outcome) for item in result.scored] == [("session", outcome)]


@pytest.mark.parametrize(
    ("imported", "name", "counts"),
    [
        ("from scipy import misc", "misc", True),
        ("from scipy import misc as m", "m", True),
        ("import scipy.misc as m", "m", True),
        ("import scipy.misc", "scipy.misc", True),
        ("from misc import config as misc", "misc", False),
        ("import misc", "misc", False),
        ("import tools.misc as misc", "misc", False),
        ("from tools import misc", "misc", False),
        ("from .scipy import misc", "misc", False),
        ("import scipy.misc as m", "misc", False),
    ],
)
def test_misc_counts_as_scipys_only_if_imported_from_scipy(
    imported: str, name: str, counts: bool, tmp_path: Path
) -> None:
    before = f"{imported}\nx = {name}.face()\ny = 1\n"
    after = before.replace(f"{name}.face()", "ours()")
    result = scored(tmp_path, {"a.py": before}, {"a.py": after})
    assert [item.topic for item in result.scored] == ["newer libraries"] * counts
    assert len(result.others) == (not counts)


def test_removed_import_of_a_repository_package_is_not_scipys(
    tmp_path: Path,
) -> None:
    for line, topics in (
        ("from misc.utils import mkdir_p", []),
        ("import misc.config", []),
        ("from scipy import misc", ["newer libraries"]),
        ("from scipy.misc import face", ["newer libraries"]),
    ):
        result = scored(tmp_path, {"a.py": f"{line}\nx = 1\n"}, {"a.py": "x = 1\n"})
        assert [item.topic for item in result.scored] == topics


@pytest.mark.parametrize(
    ("before", "after", "outcome"),
    [
        ("from six.moves import range, xrange\nx = xrange(2)\n", "range(2)", "needless"),
        ("from six import xrange\nx = xrange(2)\n", "range(2)", "silent"),
        ("from six.moves import xrange\nx = list(xrange(unichr(2)))\n", "range(2)", "silent"),
        ("from six.moves import xrange\nx = xrange(2 / y)\n", "range(2 // y)", "silent"),
        ("import requests\nx = requests.Session()\n", "requests.Session(config=C)", "needless"),
        ("import s\nx = s.Session()\n", "s.Session(config=C)", "silent"),
    ],
)
def test_six_names_and_requests_sessions_need_no_port(
    before: str, after: str, outcome: str, tmp_path: Path
) -> None:
    head, _, last = before.rstrip("\n").rpartition("\n")
    hand = f"{head}\nx = {after.replace('C', 'npu_config_proto()')}\n"
    result = scored(tmp_path, {"a.py": before}, {"a.py": hand})
    assert last
    assert [item.outcome for item in result.scored] == [outcome]
