"""Questions about GPUs, and libraries for them."""

import ast
from collections.abc import Iterator

from jumar.porting.edits import Text
from jumar.porting.rewriting.changes import Change
from jumar.porting.rewriting.editing import literal
from jumar.porting.rewriting.registry import rule
from jumar.porting.rewriting.view import View
from jumar.porting.rules.tensorflow.concerned import is_concerned

_QUERIES = (
    "tensorflow.test.is_gpu_available",
    "tensorflow.test.gpu_device_name",
    "tensorflow.test.is_built_with_cuda",
    "tensorflow.python.client.device_lib.list_local_devices",
    "tensorflow.config.experimental.list_physical_devices",
    "tensorflow.config.experimental.list_logical_devices",
    "tensorflow.config.list_physical_devices",
    "tensorflow.contrib.eager.num_gpus",
    "tensorflow.contrib.memory_stats.MaxBytesInUse",
    "tensorflow.contrib.memory_stats.BytesInUse",
    "keras.backend.tensorflow_backend._get_available_gpus",
    "keras.backend._get_available_gpus",
    "tensorflow.keras.backend._get_available_gpus",
)
_LIBRARIES = (
    "pynvml",
    "py3nvml",
    "nvidia_smi",
    "GPUtil",
    "gpustat",
    "cupy",
    "pycuda",
    "numba.cuda",
)
_NO_GPU = Text(
    en="the answer is that there is no GPU, also where an NPU is",
    zh="即使有 NPU，该查询也只会得到没有 GPU 的结果",
)
_NO_GPU_TODO = Text(
    en="see what the script does without GPUs; the number of NPUs is RANK_SIZE in the environment",
    zh="请确认脚本在没有 GPU 时的行为；NPU 数量由环境变量 RANK_SIZE 给出",
)
_LIBRARY = Text(en="{name} is a library for NVIDIA's GPUs", zh="{name} 是 NVIDIA GPU 专用的库")
_LIBRARY_TODO = Text(
    en="remove what uses it; npu-smi shows the load and memory of NPUs, numpy computes on the host",
    zh="删除相关用法；NPU 的负载与内存用 npu-smi 查看，主机侧计算用 numpy",
)
_SMI = Text(en="nvidia-smi is not there beside NPUs", zh="NPU 服务器上没有 nvidia-smi")
_SMI_TODO = Text(
    en="npu-smi info tells of the NPUs; see what the script does with the answer",
    zh="用 npu-smi info 查看 NPU；请确认脚本如何使用其输出",
)


@rule(
    "gpu-queries",
    title=Text(en="Questions about GPUs are pointed out", zh="指出对 GPU 的查询"),
    source="TensorFlow 1.15 migration guide of CANN",
    nodes=(ast.Call, ast.Import, ast.ImportFrom, ast.Constant),
)
def gpu_queries(
    node: ast.Call | ast.Import | ast.ImportFrom | ast.Constant, view: View
) -> Iterator[Change]:
    """Tell of each; nothing is rewritten, since the answer is right and its use is unknown."""
    if isinstance(node, ast.Call):
        asks_for_cpus = bool(node.args) and literal(node.args[0]) == "CPU"
        if view.module.name_of(node.func) in _QUERIES and not asks_for_cpus:
            yield view.notice(node, reason=_NO_GPU, todo=_NO_GPU_TODO)
    elif isinstance(node, ast.Constant):
        if _runs_nvidia_smi(node, view) and is_concerned(view):
            yield view.notice(node, reason=_SMI, todo=_SMI_TODO, confidence="likely")
    else:
        for name in _imported(node):
            library = next((one for one in _LIBRARIES if f"{name}.".startswith(f"{one}.")), None)
            if library and is_concerned(view):
                yield view.notice(
                    node,
                    reason=_LIBRARY.filled(name=library),
                    todo=_LIBRARY_TODO,
                    severity="blocking",
                )


def _imported(node: ast.Import | ast.ImportFrom) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if node.level:
        return []
    return [node.module or ""] + [f"{node.module}.{alias.name}" for alias in node.names]


def _runs_nvidia_smi(node: ast.Constant, view: View) -> bool:
    if not isinstance(node.value, str) or not node.value.lstrip().startswith("nvidia-smi"):
        return False
    return any(isinstance(around, ast.Call) for around in view.module.scopes.ancestors(node))
