"""A Keras model that is copied to several GPUs."""

import ast
from collections.abc import Iterator

from jumar.porting.edits import Text
from jumar.porting.rewriting.changes import Change
from jumar.porting.rewriting.registry import rule
from jumar.porting.rewriting.view import View

_COPIES = Text(
    en="multi_gpu_model copies the model to GPUs of one process; a process uses one NPU, and it "
    "fails where no GPU is",
    zh="multi_gpu_model 在单进程内把模型复制到多个 GPU；一个进程只使用一个 NPU，"
    "且没有 GPU 时会报错",
)
_COPIES_TODO = Text(
    en="use the model itself, and start one process for each NPU (--devices N)",
    zh="直接使用原模型，并为每个 NPU 启动一个进程（--devices N）",
)


@rule(
    "keras-multi-gpu",
    title=Text(en="Models on several GPUs are pointed out", zh="指出多 GPU 模型"),
    source="multi_gpu_utils.py of TensorFlow 1.15",
    calls=(
        "tensorflow.keras.utils.multi_gpu_model",
        "keras.utils.multi_gpu_model",
        "keras.utils.training_utils.multi_gpu_model",
    ),
)
def keras_multi_gpu(call: ast.Call, view: View) -> Iterator[Change]:
    """Tell of each."""
    yield view.notice(call, reason=_COPIES, todo=_COPIES_TODO, severity="blocking")
