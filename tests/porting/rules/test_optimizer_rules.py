"""Positions of loss scale and distribution in scripts that are not simple."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from jumar.porting.edits import FileReport
from jumar.porting.options import PortOptions, parse_loss_scale
from jumar.porting.rewriting.port_file import port_file
from jumar.porting.script.project import Project
from jumar.porting.script.source import SourceText

FIXED = PortOptions(loss_scale=parse_loss_scale("fixed:1024"))
BOTH = PortOptions(loss_scale=parse_loss_scale("fixed:1024"), devices=8)
EIGHT = PortOptions(devices=8)
TF = "import tensorflow as tf\n\n"


def port(text: str, options: PortOptions) -> FileReport:
    return port_file(SourceText(text), "script.py", Project(Path("nowhere")), options)


def after(report: FileReport, rule: str) -> list[str]:
    return [edit.after.strip() for edit in report.edits if edit.rule == rule]


def test_optimizer_for_an_estimators_own_graph_is_reported_and_not_wrapped() -> None:
    text = TF + "tf.estimator.DNNClassifier([8], c, optimizer=tf.train.AdamOptimizer(lr))\n"
    report = port(text, FIXED)
    assert not after(report, "loss-scale")
    assert [found.severity for found in report.findings if found.rule == "loss-scale"] == [
        "accuracy"
    ]


@pytest.mark.parametrize(
    ("arguments", "names", "severity"),
    [
        ("opt, 'hvd', False, compression=fp16", "'hvd', False, compression", "look"),
        (
            "opt, 'hvd', False, '', '', fp16, False, 4",
            "'hvd', False, '', '', fp16, False, 4",
            "accuracy",
        ),
        ("opt, op=hvd.Sum", "op", "accuracy"),
    ],
)
def test_removed_arguments_of_horovods_optimizer_are_reported(
    arguments: str, names: str, severity: str
) -> None:
    text = f"{TF}import horovod.tensorflow as hvd\n\nopt = hvd.DistributedOptimizer({arguments})\n"
    report = port(text, PortOptions())
    assert "npu_distributed_optimizer_wrapper(opt)" in report.after
    (finding,) = [found for found in report.findings if found.rule == "horovod-optimizer"]
    assert finding.reason.en.endswith(f"were removed: {names}")
    assert finding.severity == severity


def test_table_of_optimizer_classes_is_reported() -> None:
    text = TF + "OPTIMIZERS = {'adam': tf.train.AdamOptimizer, 'sgd': None}\n"
    report = port(text, FIXED)
    assert [found.code for found in report.findings] == ["tf.train.AdamOptimizer"]


def test_gradients_without_a_visible_optimizer_are_reported() -> None:
    text = TF + (
        "def train(opt, loss, params):\n    grads = tf.gradients(loss, params)\n"
        "    return opt.apply_gradients(zip(grads, params))\n"
    )
    report = port(text, FIXED)
    assert report.status == "unchanged"
    assert [found.rule for found in report.findings] == ["gradients-through-optimizer"]


def test_gradients_of_several_losses_or_other_variables_are_kept() -> None:
    start = TF + "opt = tf.train.AdamOptimizer(lr)\n"
    end = "opt.apply_gradients(zip(grads, params))\n"
    for middle in ("grads = tf.gradients([a, b], params)\n", "grads = tf.gradients(a, others)\n"):
        report = port(start + middle + end, FIXED)
        assert not report.edits
        assert report.findings


def test_gradient_penalty_is_not_an_optimizer_step() -> None:
    text = TF + (
        "slope = tf.gradients(critic(x), [x])[0]\nloss += tf.reduce_mean(slope)\n"
        "train_op = tf.train.AdamOptimizer(lr).minimize(loss)\n"
    )
    report = port(text, FIXED)
    assert not after(report, "gradients-through-optimizer")
    assert not report.findings


def test_loss_scale_wraps_the_distributed_optimizer() -> None:
    text = TF + (
        "def f(name):\n    if name:\n        opt = tf.train.AdamOptimizer(lr)\n"
        "    else:\n        opt = tf.train.AdagradOptimizer(lr)\n"
        "    return opt.minimize(loss)\n"
    )
    lines = port(text, BOTH).after.split("\n")
    inner = lines.index("    opt = NPUDistributedOptimizer(opt)")
    assert lines[inner + 1 : inner + 3] == ["    opt = NPULossScaleOptimizer(", "        opt,"]
    assert max(map(len, lines)) < 150
    assert lines[inner + 4] == '        is_distributed=int(os.getenv("RANK_SIZE", "1")) > 1,'
    assert lines[inner + 5 : inner + 7] == ["    )", "    return opt.minimize(loss)"]


SCALED = "FixedLossScaleManager(1024)"


def test_existing_loss_scale_is_not_wrapped_and_is_reported() -> None:
    text = (
        f"{TF}from npu_bridge.npu_init import *\n"
        f"opt = NPULossScaleOptimizer(tf.train.AdamOptimizer(lr), {SCALED})\n"
        "train = opt.minimize(loss)\n"
    )
    report = port(text, EIGHT)
    assert not report.edits
    (finding,) = [each for each in report.findings if each.rule == "distributed-optimizer"]
    assert (finding.place.line, finding.severity) == (4, "accuracy")
    averaged = text.replace("tf.train.Adam", "NPUDistributedOptimizer(tf.train.Adam").replace(
        "(lr)", "(lr))"
    )
    assert not port(averaged, EIGHT).findings


def test_optimizer_used_in_a_loop_is_wrapped_where_it_is_created() -> None:
    text = TF + (
        "for rate in rates:\n    if rate > 1:\n        opt = tf.train.AdamOptimizer(rate)\n"
        "    else:\n        opt = tf.train.AdagradOptimizer(rate)\n"
        "    towers.append(opt.compute_gradients(loss))\n"
    )
    report = port(text, FIXED)
    assert len(after(report, "loss-scale")) == 2
    assert all(
        re.match(r"NPULossScaleOptimizer\(\s*tf\.", edit) for edit in after(report, "loss-scale")
    )


def test_optimizer_inside_an_optimizer_class_is_wrapped_as_a_whole() -> None:
    text = TF + (
        "class Conditional(tf.train.Optimizer):\n    def __init__(self, lr):\n"
        "        self._opt = tf.train.AdamOptimizer(lr)\n\n"
        "    def compute_gradients(self, loss):\n"
        "        return self._opt.compute_gradients(loss)\n\n\n"
        "train_op = Conditional(0.1).minimize(loss)\n"
    )
    assert after(port(text, FIXED), "loss-scale") == [
        "NPULossScaleOptimizer(\n    Conditional(0.1),\n"
        "    FixedLossScaleManager(loss_scale=1024)\n)"
    ]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("model.compile('sgd', 'mse')", "npu_distributed_optimizer_wrapper('sgd')"),
        (
            "model.compile(optimizer=tf.keras.optimizers.Adam(1e-3), loss='mse')",
            "npu_distributed_optimizer_wrapper(tf.keras.optimizers.Adam(1e-3))",
        ),
        ("model.fit(x, y)", "model.fit(x, y, callbacks=npu_callbacks_append(callbacks_list=[]))"),
        (
            "model.fit(x, y, callbacks=[stop])",
            "model.fit(x, y, callbacks=npu_callbacks_append(callbacks_list=[stop]))",
        ),
        (
            "model.fit(x, y, callbacks=given)",
            "model.fit(x, y, callbacks=npu_callbacks_append(callbacks_list=list((given) or ())))",
        ),
    ],
)
def test_keras_models_average_and_start_equal_on_several_devices(given: str, expected: str) -> None:
    report = port(f"{TF}model = tf.keras.Sequential()\n{given}\n", EIGHT)
    assert after(report, "keras-distributed") == [expected]
    again = port(report.after, EIGHT)
    assert not after(again, "keras-distributed")


def test_records_are_sharded_over_devices_and_uneven_shards_reported() -> None:
    text = TF + "def train_data(names):\n    return tf.data.TFRecordDataset(names).batch(8)\n"
    report = port(text, EIGHT)
    assert after(report, "dataset-shard") == [
        'tf.data.TFRecordDataset(names).shard(int(os.getenv("RANK_SIZE", "1")), '
        'int(os.getenv("RANK_ID", "0")))'
    ]
    assert "blocking" in {found.severity for found in report.findings}


def test_record_file_names_are_not_sharded() -> None:
    text = TF + (
        "def train_data(files):\n    ds = tf.data.Dataset.from_tensor_slices(files).repeat()\n"
        "    return ds.interleave(tf.data.TFRecordDataset, cycle_length=4)\n"
    )
    report = port(text, EIGHT)
    assert not after(report, "dataset-shard")
    assert "dataset-shard" in {found.rule for found in report.findings}


def test_slices_of_one_example_are_not_sharded() -> None:
    text = TF + (
        "def preprocess_train(example):\n"
        "    return tf.data.Dataset.from_tensor_slices(example)\n\n\n"
        "def train_data(names):\n"
        "    return tf.data.TFRecordDataset(names).flat_map(preprocess_train).repeat().batch(8)\n"
    )
    [edit] = after(port(text, EIGHT), "dataset-shard")
    assert edit.startswith("tf.data.TFRecordDataset(names).shard(")


def test_star_imported_tensorflow_name_suffices(tmp_path: Path) -> None:
    (tmp_path / "ops.py").write_text("import tensorflow as tf\n")
    text = (
        "from ops import *\n\n\ndef train(sess):\n"
        "    op = tf.train.AdamOptimizer(0.1).minimize(loss)\n"
        "    tf.global_variables_initializer().run()\n"
    )
    report = port_file(SourceText(text), "gan.py", Project(tmp_path), EIGHT)
    [edit] = after(report, "initial-broadcast")
    assert "        tf.get_default_session().run(\n            tf.group(*[\n" in edit


TABLE = "OPTIMIZERS = {'adam': tf.train.AdamOptimizer, 'sgd': tf.train.GradientDescentOptimizer}\n"


@pytest.mark.parametrize(
    ("text", "made"),
    [
        (TABLE + "opt = OPTIMIZERS[name](rate)\n", "OPTIMIZERS[name](rate)"),
        (
            TABLE + "assert name in OPTIMIZERS.keys()\nopt = OPTIMIZERS[name](rate)\n",
            "OPTIMIZERS[name](rate)",
        ),
        (
            "kind = tf.train.AdamOptimizer if fast else tf.train.FtrlOptimizer\nopt = kind(rate)\n",
            "kind(rate)",
        ),
        (
            "class Net:\n    def __init__(self):\n        self.kind = None\n"
            "        self.kind = tf.train.AdamOptimizer\n    def build(self, rate):\n"
            "        opt = self.kind(rate)\n        return opt.minimize(loss)\n",
            "self.kind(rate)",
        ),
    ],
)
def test_optimizer_class_held_in_a_table_variable_or_attribute_is_wrapped(
    text: str, made: str
) -> None:
    script = TF + text + "opt.minimize(loss)\n"
    report = port(script, EIGHT)
    assert after(report, "distributed-optimizer") == [f"NPUDistributedOptimizer({made})"]
    assert not [one for one in report.findings if one.rule == "distributed-optimizer"]
    (scaled,) = after(port(script, FIXED), "loss-scale")
    assert scaled.startswith(f"NPULossScaleOptimizer({made}, FixedLossScaleManager(")
    assert not [one for one in report.findings if "made where this class" in one.reason.en]


@pytest.mark.parametrize(
    "text",
    [
        "OPTIMIZERS = {'adam': tf.train.AdamOptimizer, 'own': load('own')}\n"
        "opt = OPTIMIZERS[name](rate)\n",
        "OPTIMIZERS = {'adam': tf.train.AdamOptimizer}\nOPTIMIZERS['own'] = Own\n"
        "opt = OPTIMIZERS[name](rate)\n",
        "OPTIMIZERS = {'adam': tf.train.AdamOptimizer}\nOPTIMIZERS.update(more)\n"
        "opt = OPTIMIZERS[name](rate)\n",
        "kind = tf.train.AdamOptimizer\nkind = find(name)\nopt = kind(rate)\n",
        "class Net:\n    def __init__(self, kind):\n        self.kind = kind\n"
        "        self.kind = tf.train.AdamOptimizer\n"
        "    def build(self, rate):\n        opt = self.kind(rate)\n",
        "def build(rate, kind=tf.train.AdamOptimizer):\n    opt = kind(rate)\n",
        "OPTIMIZERS = dict(adam=tf.train.AdamOptimizer)\nopt = OPTIMIZERS[name](rate)\n",
    ],
)
def test_ambiguous_class_is_reported_where_it_is_named(text: str) -> None:
    report = port(TF + text + "opt.minimize(loss)\n", EIGHT)
    assert not after(report, "distributed-optimizer")
    reports = [one for one in report.findings if one.rule == "distributed-optimizer"]
    assert [(one.code, one.severity) for one in reports] in (
        [("tf.train.AdamOptimizer", "blocking")],
        [],
    )


def test_optimizers_returned_by_a_method_are_wrapped_only_where_created() -> None:
    text = TF + (
        "class Net:\n    def make(self, rate):\n        return tf.train.AdamOptimizer(rate)\n"
        "    def build(self, rate):\n        opt = self.make(rate)\n"
        "        return opt.minimize(loss)\n"
    )
    report = port(text, EIGHT)
    assert after(report, "distributed-optimizer") == [
        "NPUDistributedOptimizer(tf.train.AdamOptimizer(rate))"
    ]


@pytest.mark.parametrize(
    ("call", "findings"),
    [
        ("experimental.enable_mixed_precision_graph_rewrite(opt)", []),
        ("experimental.enable_mixed_precision_graph_rewrite(opt, 'dynamic')", []),
        ("experimental.MixedPrecisionLossScaleOptimizer(opt, loss_scale=128)", []),
        ("experimental.MixedPrecisionLossScaleOptimizer(opt, own)", [5]),
    ],
)
def test_loss_scale_option_overrides_the_scripts_or_is_reported(
    call: str, findings: list[int]
) -> None:
    text = TF + (
        "own = tf.train.experimental.DynamicLossScale()\n"
        f"opt = tf.train.AdamOptimizer(lr)\nopt = tf.train.{call}\ntrain = opt.minimize(loss)\n"
    )
    report = port(text, replace(FIXED, precision="allow_mix_precision"))
    manager = "own" if findings else "FixedLossScaleManager(loss_scale=1024)"
    assert f"opt = NPULossScaleOptimizer(opt, {manager})\n" in report.after
    assert [found.place.line for found in report.findings] == findings
    assert all(
        "FixedLossScaleManager(loss_scale=1024)" in found.todo.en for found in report.findings
    )
    (edit,) = [edit for edit in report.edits if edit.rule == "loss-scale-optimizer"]
    assert ("--loss-scale" in edit.reason.en) == (not findings)
