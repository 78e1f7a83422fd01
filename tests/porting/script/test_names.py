"""Names: TensorFlow's own, however a script reaches what they name."""

import importlib.resources
import json

import pytest

from jumar.porting.script.names import canonical
from tests.tensorflow115 import run_tensorflow

_SAME_OBJECTS = """
import importlib
wrong = []
for internal, public in json.load(open(sys.argv[1])).items():
    module, _, name = internal.rpartition(".")
    value = getattr(importlib.import_module(module), name)
    exported = tf
    for part in public.split(".")[1:]:
        exported = getattr(exported, part)
    if value is not exported:
        wrong.append([internal, public])
answer(wrong)
"""


@pytest.mark.parametrize(
    ("internal", "public"),
    [
        ("tensorflow.python.training.adam.AdamOptimizer", "tensorflow.train.AdamOptimizer"),
        ("tensorflow.python.training.ftrl.FtrlOptimizer", "tensorflow.train.FtrlOptimizer"),
        (
            "tensorflow.contrib.learn.python.learn.monitored_session.MonitoredSession",
            "tensorflow.train.MonitoredSession",
        ),
        ("tensorflow.python.client.session.Session", "tensorflow.Session"),
        ("tensorflow.python.ops.nn.dropout", "tensorflow.nn.dropout"),
        ("tensorflow.python.ops.nn_ops.max_pool", "tensorflow.nn.max_pool"),
        ("tensorflow.python.ops.rnn_cell_impl.LSTMCell", "tensorflow.nn.rnn_cell.LSTMCell"),
        ("tensorflow.python.ops.math_ops.neg", "tensorflow.negative"),
        ("tensorflow.python.layers.core.dropout", "tensorflow.layers.dropout"),
        (
            "tensorflow.python.data.ops.dataset_ops.DatasetV1",
            "tensorflow.data.Dataset",
        ),
        ("tensorflow.compat.v1.train.AdamOptimizer", "tensorflow.train.AdamOptimizer"),
    ],
)
def test_internal_module_names_map_to_exported_ones(internal: str, public: str) -> None:
    assert canonical(internal) == public
    assert canonical(public) == public


@pytest.mark.parametrize(
    "name",
    [
        "tensorflow.python.ops.math_ops",
        "tensorflow.python.training.training",
        "tensorflow.python.ops.math_ops.no_such_function",
        "tensorflow.python.training.moving_averages.assign_moving_average",
    ],
)
def test_unexported_names_are_kept(name: str) -> None:
    assert canonical(name) == name


def test_both_names_are_one_object_in_tensorflow(tmp_path_factory: pytest.TempPathFactory) -> None:
    modules = json.loads(
        importlib.resources.files("jumar.porting.script")
        .joinpath("internal_modules.json")
        .read_text(encoding="utf-8")
    )
    names = {
        f"{module}.{name.partition('=')[0]}": canonical(f"{module}.{name.partition('=')[0]}")
        for module, exported in modules.items()
        for names in exported.values()
        for name in names.split()
    }
    assert len(names) > 1900
    file = tmp_path_factory.mktemp("names") / "names.json"
    file.write_text(json.dumps(names), encoding="utf-8")
    assert run_tensorflow(_SAME_OBJECTS, str(file)) == []


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("tensorflow.compat.v1.Session", "tensorflow.Session"),
        ("tensorflow.compat.v1", "tensorflow"),
        ("tensorflow.compat.v1.compat.v1.Session", "tensorflow.Session"),
        ("tensorflow.python.ops.nn", "tensorflow.python.ops.nn"),
        ("tensorflow.python.ops.nn.relu", "tensorflow.nn.relu"),
        ("tensorflow.python.estimator.run_config.RunConfig", "tensorflow.estimator.RunConfig"),
        ("tf_slim.learning.train", "tensorflow.contrib.slim.learning.train"),
        ("torch.autocast", "torch.amp.autocast"),
        ("torch.autocasting", "torch.autocasting"),
        ("npu_bridge.estimator.npu_ops", "npu_bridge.npu_init.npu_ops"),
        ("mine.tensorflow.compat.v1.x", "mine.tensorflow.compat.v1.x"),
        ("", ""),
    ],
)
def test_internal_name_becomes_the_public_one(name: str, expected: str) -> None:
    assert canonical(name) == expected
