"""TensorFlow's canned estimators, and classes derived from Estimator, keep their names."""

import ast

from jumar.porting.rewriting import Changes, Text, View, rule
from jumar.porting.rules.tensorflow.estimator import with_minimal_config
from jumar.porting.rules.tensorflow.estimator_plan import CANNED


@rule(
    "canned-estimators",
    title=Text(
        en="Canned estimators get a configuration for the NPU",
        zh="预置 Estimator 使用 NPU 运行配置",
    ),
    source="npu_init.py of Ascend/tensorflow; signatures of TensorFlow 1.15",
    calls=tuple(CANNED),
)
def canned_estimators(call: ast.Call, view: View) -> Changes:
    """Wrap the configuration in `npu_run_config_init`."""
    yield from with_minimal_config(call, CANNED[view.kinds.called(call) or ""], view)
