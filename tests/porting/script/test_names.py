"""One name for one construct."""

import pytest

from jumar.porting.script.names import canonical


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
def test_a_name_behind_a_public_one_becomes_the_public_one(name: str, expected: str) -> None:
    assert canonical(name) == expected
