"""Loops on the device that are slow are said."""

import ast
from collections.abc import Iterator

from jumar.porting.edits import Text
from jumar.porting.rewriting.changes import Change
from jumar.porting.rewriting.editing import argument, literal
from jumar.porting.rewriting.registry import rule
from jumar.porting.rewriting.view import View
from jumar.porting.rules.tensorflow.py_func import mapped

_RNN = (
    "tensorflow.nn.dynamic_rnn",
    "tensorflow.nn.bidirectional_dynamic_rnn",
    "tensorflow.nn.raw_rnn",
)
_DECODER = ("tensorflow.contrib.seq2seq.dynamic_decode",)
_LOOPS = ("tensorflow.while_loop", "tensorflow.map_fn", "tensorflow.scan", "tensorflow.foldl")
_RNN_REASON = Text(
    en="the steps of this network run in a while_loop, which is slow on the NPU and keeps it from "
    "fusing them",
    zh="该网络的时间步在 while_loop 中执行，在 NPU 上较慢且无法融合",
)
_MAJOR = Text(
    en="its inputs are time-major: with a fixed number of steps, npu_rnn.npu_dynamic_rnn(cell, "
    "inputs=..., dtype=...) unrolls the same computation; see also DynamicRNN and DynamicGRUV2",
    zh="输入已是 time_major：步数固定时可用 npu_rnn.npu_dynamic_rnn(cell, inputs=..., dtype=...) "
    "展开同样的计算；另见 DynamicRNN、DynamicGRUV2",
)
_BATCH_MAJOR = Text(
    en="pad to a fixed number of steps, transpose to time-major, and use "
    "npu_rnn.npu_dynamic_rnn(cell, inputs=..., dtype=...), DynamicRNN or DynamicGRUV2",
    zh="补齐到固定步数并转为 time_major，再用 npu_rnn.npu_dynamic_rnn(cell, inputs=..., "
    "dtype=...)、DynamicRNN 或 DynamicGRUV2",
)
_DECODER_REASON = Text(
    en="the decoder runs until it is finished, in a while_loop of unknown length with growing "
    "arrays",
    zh="解码在长度未知的 while_loop 中进行，数组不断增长",
)
_DECODER_TODO = Text(
    en="train with a fixed number of steps (a static helper); give maximum_iterations to decode",
    zh="训练时使用固定步数（静态 helper）；推理时给出 maximum_iterations",
)
_LOOP_REASON = Text(
    en="loops of the graph run step by step on the NPU; with inputs of fixed shape they work",
    zh="图中的循环在 NPU 上逐步执行；输入形状固定时可以运行",
)
_LOOP_TODO = Text(
    en="give static shapes, and unroll short loops or compute the whole batch at once",
    zh="使用静态形状；短循环可展开，或一次计算整批",
)


@rule(
    "dynamic-rnn",
    title=Text(en="Recurrent networks and loops on the device", zh="设备上的循环网络与循环"),
    source="npu_rnn.py and npu_dynamic_rnn.py of Ascend/tensorflow; NMT_ID0512 of "
    "ModelZoo-TensorFlow",
    calls=(*_RNN, *_DECODER, *_LOOPS),
)
def dynamic_rnn(call: ast.Call, view: View) -> Iterator[Change]:
    """A finding for each."""
    name = view.module.name_of(call.func)
    if name in _RNN:
        major = literal(argument(call, "time_major")) is True
        todo = _MAJOR if major else _BATCH_MAJOR
        yield view.notice(call, reason=_RNN_REASON, todo=todo, severity="speed")
    elif name in _DECODER:
        yield view.notice(call, reason=_DECODER_REASON, todo=_DECODER_TODO, severity="speed")
    elif not mapped(call, view):
        yield view.notice(
            call, reason=_LOOP_REASON, todo=_LOOP_TODO, severity="speed", confidence="likely"
        )
