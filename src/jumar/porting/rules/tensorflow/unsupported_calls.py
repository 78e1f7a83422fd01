"""What TensorFlow on the NPU does not do at all: eager mode and some readers."""

import ast
from collections.abc import Iterator

from jumar.porting.edits import Text
from jumar.porting.rewriting.changes import Change
from jumar.porting.rewriting.registry import rule
from jumar.porting.rewriting.view import View

_EAGER = (
    "tensorflow.enable_eager_execution",
    "tensorflow.enable_v2_behavior",
    "tensorflow.contrib.eager.enable_eager_execution",
)
_READERS = frozenset(
    f"tensorflow.{name}"
    for name in (
        "FixedLengthRecordReader",
        "IdentityReader",
        "LMDBReader",
        "TFRecordReader",
        "TextLineReader",
        "WholeFileReader",
    )
)
_REFUSED = frozenset(("IdentityReader", "LMDBReader", "WholeFileReader"))
_EAGER_REASON = Text(
    en="the NPU runs graphs: TensorFlow 1.15 has no eager mode there",
    zh="NPU 以图模式执行：TensorFlow 1.15 在 NPU 上不支持 eager 模式",
)
_EAGER_TODO = Text(
    en="build a graph and run it in a session, or by tf.keras or an Estimator",
    zh="改为构建计算图并用会话执行，或使用 tf.keras、Estimator",
)
_READER = Text(en="{name} is not supported beside the NPU", zh="NPU 场景下不支持 {name}")
_QUEUE = Text(
    en="{name} reads from a queue: queue operations stay on the host and need mix_compile_mode",
    zh="{name} 从队列读取：队列算子只能在主机侧执行，需要 mix_compile_mode",
)
_READER_TODO = Text(
    en="read by tf.data: TFRecordDataset, TextLineDataset, FixedLengthRecordDataset, or list_files "
    "with map(tf.read_file)",
    zh="改用 tf.data 读取：TFRecordDataset、TextLineDataset、FixedLengthRecordDataset，"
    "或 list_files 配合 map(tf.read_file)",
)


@rule(
    "unsupported-calls",
    title=Text(en="Eager mode and readers are pointed out", zh="指出 eager 模式与 Reader"),
    source="API support list of convert_tf2npu, Ascend/tensorflow",
    calls=(*_EAGER, *sorted(_READERS)),
)
def unsupported_calls(call: ast.Call, view: View) -> Iterator[Change]:
    """Tell of each, with what to do instead."""
    name = view.kinds.called(call) or ""
    if name in _EAGER:
        yield view.notice(call, reason=_EAGER_REASON, todo=_EAGER_TODO, severity="blocking")
        return
    short = name.rpartition(".")[2]
    reason = _READER if short in _REFUSED else _QUEUE
    yield view.notice(
        call,
        reason=reason.filled(name=f"tf.{short}"),
        todo=_READER_TODO,
        severity="blocking" if short in _REFUSED else "speed",
    )
