"""What Ascend's converter convert_tf2npu gets wrong, reproduced with it, must come out right here.

The numbers are those of the list in the project's reference; each was seen by running the
converter of the repository Ascend/tensorflow (December 2023) on TensorFlow 1.15.
"""

import ast
import builtins
import json
import subprocess
import sys
from pathlib import Path

import pytest

from jumar.porting.edits import FileReport
from jumar.porting.options import LossScale, PortOptions
from jumar.porting.rewriting.port_file import port_file
from jumar.porting.script.project import Project
from jumar.porting.script.source import SourceText, decode
from jumar.porting.tree.porting import port_tree
from jumar.porting.tree.writing import write_tree

TF = "import tensorflow as tf\n\n"
HVD = "import tensorflow as tf\nimport horovod.tensorflow as hvd\n\n"


def port(text: str, path: str = "script.py", **options: object) -> FileReport:
    project = Project(Path("nowhere"))
    return port_file(SourceText(text), path, project, PortOptions(**options))  # type: ignore[arg-type]


def ported(text: str, **options: object) -> str:
    report = port(text, **options)
    return report.after if report.status == "ported" else text


def names_that_are_read_but_not_bound(text: str) -> set[str]:
    nodes = list(ast.walk(ast.parse(text)))
    bound = set(dir(builtins))
    read: set[str] = set()
    for node in nodes:
        if isinstance(node, ast.Import | ast.ImportFrom):
            bound |= {name.asname or name.name.split(".")[0] for name in node.names}
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            bound.add(node.name)
        elif isinstance(node, ast.arg):
            bound.add(node.arg)
        elif isinstance(node, ast.Name):
            (read if isinstance(node.ctx, ast.Load) else bound).add(node.id)
    return read - bound


@pytest.mark.parametrize(
    ("rate", "keep"), [("1 - kp", "1.0 - (1 - kp)"), ("a - b", "1.0 - (a - b)")]
)
def test_defect_1_dropout_rate_is_inverted_in_parentheses(rate: str, keep: str) -> None:
    after = ported(f"{TF}y = tf.nn.dropout(x, rate={rate})\n")
    assert f"npu_ops.dropout(x, keep_prob={keep})" in after


def test_defect_2_an_init_file_gets_the_import_that_it_needs() -> None:
    report = port(f"{TF}sess = tf.Session()\n", path="datasets/__init__.py")
    assert "from npu_bridge.npu_init import npu_config_proto" in report.after


@pytest.mark.parametrize(
    "call", ["utils.shard(list_of_files, 8)", "self.batch(x)", "loader.batch(3)", "q.shard(2, 0)"]
)
@pytest.mark.parametrize("devices", [1, 8])
def test_defects_3_and_4_unrelated_shard_and_batch_methods_are_kept(
    call: str, devices: int
) -> None:
    text = f"{TF}import utils\n\n\ndef f(self, x, loader, q):\n    return {call}\n"
    assert call in ported(text, devices=devices)


def test_defect_5_a_method_named_gelu_keeps_its_argument() -> None:
    text = f"{TF}class Net:\n    def gelu(self, x):\n        return x * tf.sigmoid(1.702 * x)\n"
    assert ported(text) == text


def test_defect_6_monitored_and_managed_sessions_are_configured() -> None:
    after = ported(
        f"{TF}with tf.train.MonitoredTrainingSession(hooks=hooks) as sess:\n    pass\n"
        "sv = tf.train.Supervisor()\nwith sv.managed_session() as sess:\n    pass\n"
    )
    assert after.count("config=npu_config_proto()") == 2


HOROVOD = (
    f"{HVD}hvd.init()\n"
    "opt = hvd.DistributedOptimizer(tf.train.AdamOptimizer(1e-3 * hvd.size()))\n"
    "train_op = opt.minimize(loss)\n"
    "total = hvd.allreduce(loss)\n"
    "start = hvd.broadcast_global_variables(0)\n"
    "hooks = [hvd.BroadcastGlobalVariablesHook(0)]\n"
    "if hvd.rank() == 0:\n    print(hvd.local_rank())\n"
)


@pytest.mark.parametrize("devices", [1, 8])
def test_defects_7_and_8_no_horovod_name_remains_without_its_import(devices: int) -> None:
    text = HOROVOD.replace("loss", "tf.constant(1.0)")
    report = port(text, devices=devices)
    left = names_that_are_read_but_not_bound(report.after)
    assert not left
    if "hvd." in report.after:
        assert any("horovod" in found.reason.en.lower() for found in report.findings)
    else:
        assert "horovod" not in report.after


def test_defect_9_an_odd_file_does_not_stop_the_tree(tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.mkdir()
    (source / "good.py").write_text(f"{TF}sess = tf.Session()\n")
    (source / "latin.py").write_bytes(b"import tensorflow as tf\nname = '\xe9'\n")
    (source / "bom.py").write_bytes(b"\xef\xbb\xbfimport tensorflow as tf\ns = tf.Session()\n")
    (source / "old.py").write_text("import tensorflow as tf\nprint 'x'\ns = tf.Session()\n")
    (source / "dangling.py").symlink_to("nowhere.py")
    report = port_tree(source, PortOptions())
    write_tree(report, source, tmp_path / "out", {})
    status = {file.path: file.status for file in report.files}
    assert status["good.py"] == "ported"
    assert status["bom.py"] == "ported"
    assert status["old.py"] == "ported"
    assert status["latin.py"] == "unreadable"
    assert (tmp_path / "out" / "latin.py").read_bytes() == (source / "latin.py").read_bytes()
    assert (tmp_path / "out" / "bom.py").read_bytes().startswith(b"\xef\xbb\xbf")


def test_defect_10_docstring_line_endings_and_end_of_file_are_kept() -> None:
    text = '"""What it does."""\r\nimport os\r\nimport tensorflow as tf\r\n\r\ns = tf.Session()'
    after = ported(text)
    assert ast.get_docstring(ast.parse(after)) == "What it does."
    assert "\n" not in after.replace("\r\n", "")
    assert after.endswith("s = tf.Session(config=npu_config_proto())")
    late = '"""Doc."""\nx = 1\n\n\ndef f():\n    import tensorflow as tf\n    return tf.Session()\n'
    assert ast.get_docstring(ast.parse(ported(late))) == "Doc."


def test_defect_11_aliases_are_followed() -> None:
    text = "from tensorflow import Session as S\nfrom tensorflow.nn import dropout as d\n\n"
    after = ported(f"{text}s = S()\ny = d(x, 0.5)\n")
    assert "S(config=npu_config_proto())" in after
    assert "npu_ops.dropout(x, 0.5)" in after or "npu_ops.dropout(x, keep_prob=0.5)" in after


def test_defect_12_unrelated_train_compile_and_fit_are_kept() -> None:
    text = (
        f"{TF}import re\n\npattern = re.compile('x')\n"
        "denoiser.train(data_noisy)\nclassifier.fit(x, y)\n"
    )
    assert ported(text, devices=8) == text


def test_defect_13_there_are_no_terminal_prompts(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(HOROVOD)
    done = subprocess.run(
        [sys.executable, "-m", "jumar", "port", str(tmp_path), "--json"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0
    assert json.loads(done.stdout)


def test_defect_14_every_long_option_is_accepted(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(f"{TF}sess = tf.Session()\n")
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "jumar",
            "port",
            str(tmp_path / "train.py"),
            "--devices",
            "8",
            "--precision",
            "allow_mix_precision",
            "--loss-scale",
            "exponential:2**32,1000,2,0.5",
            "--iterations-per-loop",
            "10",
            "--profiling",
            "--overflow-dump",
            "--minimal",
        ],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert 'parameter_map["precision_mode"].s = b"allow_mix_precision"' in done.stdout


def test_defect_15_dynamic_loss_scale_decreases_as_before() -> None:
    after = ported(f"{TF}scale = tf.train.experimental.DynamicLossScale()\n")
    (call,) = [
        node
        for node in ast.walk(ast.parse(after))
        if isinstance(node, ast.Call)
        and ast.unparse(node.func).endswith("ExponentialUpdateLossScaleManager")
    ]
    given = {word.arg: ast.unparse(word.value) for word in call.keywords}
    assert eval_number(given["init_loss_scale"]) == 2**15
    assert eval_number(given["incr_every_n_steps"]) == 2000
    assert eval_number(given["decr_every_n_nan_or_inf"]) == 1
    assert eval_number(given["decr_ratio"]) == 0.5


def eval_number(text: str) -> float:
    left, power, right = text.replace(" ", "").partition("**")
    if power:
        return float(left) ** float(right)
    left, division, right = text.partition("/")
    return float(left) / float(right) if division else float(text)


def test_defect_16_precision_loss_scale_profiling_and_dump_are_written() -> None:
    after = ported(
        f"{TF}opt = tf.train.AdamOptimizer(1e-3)\ntrain_op = opt.minimize(loss)\n"
        "sess = tf.Session()\n",
        precision="allow_mix_precision",
        profiling=True,
        overflow_dump=True,
        loss_scale=LossScale(kind="exponential", init_loss_scale=2.0**32),
    )
    for words in (
        "precision_mode",
        "profiling_mode",
        "enable_dump_debug",
        "dump_path",
        "NPULossScaleOptimizer",
        "ExponentialUpdateLossScaleManager",
    ):
        assert words in after
    estimator = ported(
        f"{TF}config = tf.estimator.RunConfig(model_dir='m')\n"
        "estimator = tf.estimator.Estimator(model_fn=model_fn, config=config)\n",
        precision="allow_mix_precision",
    )
    assert "NPURunConfig(" in estimator
    assert "NPUEstimator(" in estimator
    assert 'precision_mode="allow_mix_precision"' in estimator


def test_defect_17_edits_are_at_their_reported_location() -> None:
    text = f'"""Doc."""\n\n{TF}\nx = 1\nsess = tf.Session()\n'
    report = port(text)
    (edit,) = [edit for edit in report.edits if edit.rule == "session-config"]
    assert text.split("\n")[edit.place.line - 1] == "sess = tf.Session()"
    assert edit.place.column == 8
    assert edit.place_after is not None
    assert report.after.split("\n")[edit.place_after.line - 1].startswith("sess = tf.Session(")


def test_defect_18_samples_of_an_evaluation_are_not_dropped() -> None:
    report = port(
        f"{TF}def train_input():\n    return tf.data.TFRecordDataset(f).batch(8)\n\n\n"
        "def eval_input():\n    return tf.data.TFRecordDataset(g).batch(8)\n"
    )
    assert report.after.count("drop_remainder=True") == 1
    assert report.after.index("drop_remainder") < report.after.index("def eval_input")
    assert report.findings or report.kept


def test_defect_19_a_session_that_decodes_sound_stays_on_the_host() -> None:
    text = (
        f"{TF}from tensorflow.contrib.framework.python.ops import audio_ops as contrib_audio\n\n\n"
        "def load_wav_file(filename):\n"
        "    with tf.Session(graph=tf.Graph()) as sess:\n"
        "        name = tf.placeholder(tf.string, [])\n"
        "        wav = contrib_audio.decode_wav(tf.read_file(name), desired_channels=1)\n"
        "        return sess.run(wav, feed_dict={name: filename}).audio.flatten()\n"
    )
    report = port(text)
    assert not [edit for edit in report.edits if edit.rule == "session-config"]
    assert [kept for kept in report.kept if kept.rule == "session-config"]


def test_defect_20_files_without_tensorflow_are_unchanged(tmp_path: Path) -> None:
    for name, content in {
        "a.py": b"import os\nfrom x import *\n",
        "b.py": b"x = 1",
        "c.py": b"\r\nimport numpy\r\n",
    }.items():
        (tmp_path / name).write_bytes(content)
        report = port_file(decode(content), name, Project(tmp_path), PortOptions())
        assert report.status == "unchanged"
    report = port_tree(tmp_path, PortOptions())
    assert {file.status for file in report.files} == {"unchanged"}
