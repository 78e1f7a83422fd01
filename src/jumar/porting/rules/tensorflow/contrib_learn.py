"""Estimators of tf.contrib.learn, which were replaced by tf.estimator before 1.15."""

import ast
from collections.abc import Iterator

from jumar.porting.edits import Text
from jumar.porting.rewriting.changes import Change
from jumar.porting.rewriting.registry import rule
from jumar.porting.rewriting.view import View

_NAMES = ("Estimator", "Classifier", "Regressor", "Experiment", "learn_runner.run")
_OLD = Text(
    en="tf.contrib.learn makes its sessions itself: they get NpuOptimizer only from releases of "
    "the adapter whose npu_bridge changes every session, and no option of the port",
    zh="tf.contrib.learn 自行创建会话：仅在 npu_bridge 会修改所有会话的版本中才带有 NpuOptimizer，"
    "且不含移植选项",
)
_OLD_TODO = Text(
    en="move it to tf.estimator and port it again; import npu_bridge.npu_init before it runs",
    zh="改用 tf.estimator 后重新移植；运行前需导入 npu_bridge.npu_init",
)


@rule(
    "contrib-learn",
    title=Text(en="Estimators of tf.contrib.learn are pointed out", zh="指出 tf.contrib.learn"),
    source="tf.contrib.learn of TensorFlow 1.15, which is deprecated; npu_init.py",
    calls=("tensorflow.contrib.learn.*",),
)
def contrib_learn(call: ast.Call, view: View) -> Iterator[Change]:
    """Tell of each."""
    if (view.kinds.called(call) or "").endswith(_NAMES):
        yield view.notice(call, reason=_OLD, todo=_OLD_TODO, severity="blocking")
