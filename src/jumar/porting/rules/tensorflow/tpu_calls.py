"""Calls that only a TPU answers."""

import ast
from collections.abc import Iterator

from jumar.porting.edits import Text
from jumar.porting.rewriting.changes import Change, Leave
from jumar.porting.rewriting.registry import rule
from jumar.porting.rewriting.view import View
from jumar.porting.rules.tensorflow.cross_shard_optimizer import asks_for_tpu

_NAMES = (
    "batch_parallel",
    "cross_replica_sum",
    "initialize_system",
    "keras_to_tpu_model",
    "replicate",
    "rewrite",
    "shard",
    "shutdown_system",
)
_CALLS = (
    "tensorflow.contrib.cluster_resolver.TPUClusterResolver",
    "tensorflow.distribute.cluster_resolver.TPUClusterResolver",
    "tensorflow.distribute.experimental.TPUStrategy",
    "tensorflow.contrib.distribute.TPUStrategy",
    *(f"tensorflow.contrib.tpu.{name}" for name in _NAMES),
    *(f"tensorflow.tpu.{name}" for name in _NAMES),
)
_TPU = Text(en="this needs a TPU, which is not there", zh="该调用依赖 TPU，而 NPU 服务器上没有 TPU")
_TPU_TODO = Text(
    en="remove it, or run it only where the script is asked to use a TPU",
    zh="删除该调用，或仅在指定使用 TPU 时执行",
)
_GUARDED = Text(
    en="the script runs this only where it is asked to use a TPU",
    zh="脚本仅在指定使用 TPU 时才执行此处",
)


@rule(
    "tpu-calls",
    title=Text(en="Calls that need a TPU are pointed out", zh="指出依赖 TPU 的调用"),
    source="API support list of convert_tf2npu, Ascend/tensorflow",
    calls=_CALLS,
)
def tpu_calls(call: ast.Call, view: View) -> Iterator[Change]:
    """Tell of each that runs without a question for a TPU."""
    if any(asks_for_tpu(around) for around in view.module.scopes.ancestors(call)):
        yield Leave(node=call, reason=_GUARDED)
    else:
        yield view.notice(call, reason=_TPU, todo=_TPU_TODO, severity="blocking")
