"""Operators and layers that exist for GPUs only, or come from compiled code, are said."""

import ast
from collections.abc import Iterator

from jumar.porting.edits import Text
from jumar.porting.rewriting.changes import Change
from jumar.porting.rewriting.registry import rule
from jumar.porting.rewriting.view import View

_CUDNN = Text(
    en="this layer is cuDNN's and runs on GPUs only",
    zh="该层由 cuDNN 实现，只能在 GPU 上运行",
)
_CUDNN_TODO = Text(
    en="use tf.nn.rnn_cell with tf.nn.static_rnn, or DynamicRNN and DynamicGRUV2 of "
    "npu_bridge.estimator.npu.npu_dynamic_rnn; the weights have another layout (see "
    "CudnnCompatibleLSTMCell)",
    zh="改用 tf.nn.rnn_cell 与 tf.nn.static_rnn，或 npu_bridge.estimator.npu.npu_dynamic_rnn 的 "
    "DynamicRNN、DynamicGRUV2；权重排布不同（参见 CudnnCompatibleLSTMCell）",
)
_COMPILED = Text(
    en="operators from a compiled library have kernels for CPU or GPU, none for the NPU",
    zh="编译库中的算子只有 CPU 或 GPU 实现，没有 NPU 实现",
)
_COMPILED_TODO = Text(
    en="write it with TensorFlow's operators or as a custom operator of Ascend (TBE, AI CPU), or "
    "keep it on the host: without_npu_compile_scope with mix_compile_mode",
    zh="用 TensorFlow 算子实现，或开发昇腾自定义算子（TBE、AI CPU），或留在主机："
    "without_npu_compile_scope 加 "
    "mix_compile_mode",
)
_RAW = Text(
    en="an operator called by its raw name; the adapter knows those that TensorFlow 1.15's public "
    "functions make",
    zh="直接按底层名称调用的算子；适配层支持的是 TensorFlow 1.15 公开接口所产生的算子",
)
_RAW_TODO = Text(
    en="use the public function, or check the operator in the list of the CANN release",
    zh="改用公开接口，或在所用 CANN 版本的算子清单中确认",
)
_CUDNN_NAMES = (
    "tensorflow.contrib.cudnn_rnn.*",
    "tensorflow.keras.layers.CuDNNLSTM",
    "tensorflow.keras.layers.CuDNNGRU",
    "keras.layers.CuDNNLSTM",
    "keras.layers.CuDNNGRU",
    "keras.layers.cudnn_recurrent.*",
)
_COMPILED_NAMES = (
    "tensorflow.load_op_library",
    "tensorflow.load_library",
    "tensorflow.load_file_system_library",
    "tensorflow.contrib.util.loader.load_op_library",
    "tensorflow.contrib.tensorrt.*",
)


@rule(
    "custom-operators",
    title=Text(en="Operators without a kernel for the NPU", zh="没有 NPU 实现的算子"),
    source="API support list of convert_tf2npu, December 2023; npu_dynamic_rnn.py of "
    "Ascend/tensorflow",
    calls=(*_CUDNN_NAMES, *_COMPILED_NAMES, "tensorflow.raw_ops.*"),
)
def custom_operators(call: ast.Call, view: View) -> Iterator[Change]:
    """A finding for each."""
    name = view.kinds.called(call) or ""
    if name in _COMPILED_NAMES or name.startswith("tensorflow.contrib.tensorrt."):
        yield view.notice(call, reason=_COMPILED, todo=_COMPILED_TODO, severity="blocking")
    elif name.startswith("tensorflow.raw_ops."):
        yield view.notice(call, reason=_RAW, todo=_RAW_TODO, severity="look", confidence="unsure")
    elif not name.rpartition(".")[2].startswith("CudnnCompatible"):
        yield view.notice(call, reason=_CUDNN, todo=_CUDNN_TODO, severity="blocking")
