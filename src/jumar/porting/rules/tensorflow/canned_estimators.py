"""TensorFlow's canned estimators, and classes derived from Estimator, keep their names."""

import ast
from collections.abc import Iterator

from jumar.porting.edits import Text
from jumar.porting.rewriting.changes import Change
from jumar.porting.rewriting.registry import rule
from jumar.porting.rewriting.view import View
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
def canned_estimators(call: ast.Call, view: View) -> Iterator[Change]:
    """Wrap the configuration in `npu_run_config_init`."""
    yield from with_minimal_config(call, CANNED[view.kinds.called(call) or ""], view)
