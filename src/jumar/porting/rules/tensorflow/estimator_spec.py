"""EstimatorSpec and TPUEstimatorSpec stay."""

import ast
from collections.abc import Iterator

from jumar.porting.edits import Text
from jumar.porting.rewriting.changes import Change, Leave
from jumar.porting.rewriting.registry import rule
from jumar.porting.rewriting.view import View

_SPEC = Text(
    en="with use_tpu=False TPUEstimator turns it into an EstimatorSpec by itself",
    zh="use_tpu=False 时 TPUEstimator 会自行将其转换为 EstimatorSpec",
)
_PLAIN_SPEC = Text(
    en="NPUEstimator accepts it; NPUEstimatorSpec is only for host_call, summaries computed on "
    "the device",
    zh="NPUEstimator 可直接接受；仅在需要 host_call（在设备上计算 summary）时才用 NPUEstimatorSpec",
)


@rule(
    "estimator-spec",
    title=Text(en="EstimatorSpec stays as it is", zh="EstimatorSpec 保持不变"),
    source="npu_estimator.py of Ascend/tensorflow",
    calls=("tensorflow.estimator.EstimatorSpec", "tensorflow.contrib.tpu.TPUEstimatorSpec"),
)
def estimator_spec(call: ast.Call, view: View) -> Iterator[Change]:
    """Count what is left on purpose."""
    if view.kinds.called(call) == "tensorflow.contrib.tpu.TPUEstimatorSpec":
        yield Leave(node=call, reason=_SPEC)
    else:
        yield Leave(node=call, reason=_PLAIN_SPEC)
