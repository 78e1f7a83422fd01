"""Environment variables of CUDA and NCCL, and their counterparts for Ascend."""

import ast
import re
from itertools import pairwise

from jumar.porting.rewriting import Changes, Remark, Text, View, rule
from jumar.porting.rewriting.editing import literal
from jumar.porting.torch.devices import device_text
from jumar.porting.torch.scripts import is_message, may_use_torch, replace_in_literal

RENAMED = {
    "CUDA_VISIBLE_DEVICES": "ASCEND_RT_VISIBLE_DEVICES",
    "CUDA_LAUNCH_BLOCKING": "ASCEND_LAUNCH_BLOCKING",
    "PYTORCH_CUDA_ALLOC_CONF": "PYTORCH_NPU_ALLOC_CONF",
    "PYTORCH_NO_CUDA_MEMORY_CACHING": "PYTORCH_NO_NPU_MEMORY_CACHING",
    "NCCL_SOCKET_IFNAME": "HCCL_SOCKET_IFNAME",
    "NCCL_ASYNC_ERROR_HANDLING": "HCCL_ASYNC_ERROR_HANDLING",
    "TORCH_NCCL_ASYNC_ERROR_HANDLING": "HCCL_ASYNC_ERROR_HANDLING",
    "NCCL_DESYNC_DEBUG": "HCCL_DESYNC_DEBUG",
    "TORCH_NCCL_DESYNC_DEBUG": "HCCL_DESYNC_DEBUG",
    "NCCL_BLOCKING_WAIT": "TORCH_HCCL_BLOCKING_WAIT",
    "TORCH_NCCL_BLOCKING_WAIT": "TORCH_HCCL_BLOCKING_WAIT",
}
"""Variables with a counterpart. Old releases of torch_npu only read HCCL_ASYNC_ERROR_HANDLING and
HCCL_DESYNC_DEBUG; newer ones also read the names that begin with TORCH_HCCL."""

_NO_EFFECT = Remark(
    en="{name} has no effect on an NPU",
    zh="{name} 在 NPU 上不起作用",
    todo_en="remove it",
    todo_zh="删除",
    confidence="likely",
)
_ADVICE = {
    "NCCL_DEBUG": Text(
        en="set ASCEND_GLOBAL_LOG_LEVEL=1 and ASCEND_SLOG_PRINT_TO_STDOUT=1 for HCCL's log",
        zh="需要 HCCL 日志时设置 ASCEND_GLOBAL_LOG_LEVEL=1 与 ASCEND_SLOG_PRINT_TO_STDOUT=1",
    ),
    "NCCL_BUFFSIZE": Text(
        en="HCCL_BUFFSIZE is its counterpart, in MB instead of bytes",
        zh="对应变量为 HCCL_BUFFSIZE，单位是 MB 而不是字节",
    ),
    "NCCL_TIMEOUT": Text(
        en="HCCL_CONNECT_TIMEOUT and HCCL_EXEC_TIMEOUT are its counterparts, in seconds",
        zh="对应变量为 HCCL_CONNECT_TIMEOUT 与 HCCL_EXEC_TIMEOUT，单位为秒",
    ),
    "NCCL_ALGO": Text(
        en="HCCL_ALGO is its counterpart, with different values",
        zh="对应变量为 HCCL_ALGO，取值不同",
    ),
    "CUBLAS_WORKSPACE_CONFIG": Text(
        en="torch.use_deterministic_algorithms(True) is enough; for reductions across devices, "
        "also set HCCL_DETERMINISTIC=true",
        zh="使用 torch.use_deterministic_algorithms(True) 即可；"
        "多卡归约设置 HCCL_DETERMINISTIC=true",
    ),
    "CUDA_HOME": Text(
        en="ASCEND_HOME_PATH is the folder of CANN", zh="CANN 的安装路径为 ASCEND_HOME_PATH"
    ),
}
_NO_COUNTERPART = re.compile(
    r"(?:TORCH_)?NCCL_[A-Z0-9_]+|CUDA_DEVICE_ORDER|CUDA_HOME|CUDA_PATH|CUBLAS_WORKSPACE_CONFIG|"
    r"CUDNN_[A-Z0-9_]+|CUDA_DEVICE_MAX_CONNECTIONS|TORCH_CUDA_ARCH_LIST|NVIDIA_TF32_OVERRIDE|"
    r"TORCH_ALLOW_TF32_CUBLAS_OVERRIDE"
)
_IN_SHELL = re.compile(rf"(?:^|[\s;&])({'|'.join(RENAMED)})=")
_WHY = Text(en="Ascend reads {new} instead", zh="昇腾读取的变量是 {new}")
_SHELL = Remark(
    en="this string sets {name}, whose counterpart for Ascend is {new}",
    zh="文本中设置了 {name}，昇腾对应 {new}",
    todo_en="change it if it is a command",
    todo_zh="若为命令行，请一并修改",
    confidence="unsure",
)
_ORDER = Remark(
    en="ASCEND_RT_VISIBLE_DEVICES must be in ascending order: devices from the first smaller "
    "number on are not visible",
    zh="ASCEND_RT_VISIBLE_DEVICES 必须升序，否则后续设备不可见",
    todo_en="sort the devices in ascending order",
    todo_zh="按升序书写设备编号",
    severity="blocking",
)


@rule(
    "torch-environment",
    title=Text(
        en="Environment variables of CUDA and NCCL become Ascend's",
        zh="CUDA 与 NCCL 环境变量改为昇腾对应变量",
    ),
    source="environment variable list of Ascend/pytorch; CANN environment variables (HCCL)",
    language="torch",
    nodes=(ast.Constant, ast.JoinedStr),
)
def torch_environment(node: ast.Constant | ast.JoinedStr, view: View) -> Changes:
    """Rename the variable, or report which one to set instead."""
    text = device_text(node)
    if text is None or "_" not in text or isinstance(view.module.parent(node), ast.JoinedStr):
        return
    if text in RENAMED or _NO_COUNTERPART.fullmatch(text):
        if is_message(view.module, node) or not may_use_torch(view.module):
            return
        yield from _variable(node, text, view)
        return
    for name in _IN_SHELL.findall(text):
        if may_use_torch(view.module):
            yield view.notice(node, _SHELL.filled(name=name, new=RENAMED[name]))


def _variable(node: ast.expr, name: str, view: View) -> Changes:
    if name not in RENAMED:
        yield view.notice(node, _NO_EFFECT.filled(name=name), todo=_ADVICE.get(name))
        return
    change = replace_in_literal(view.module, node, name, RENAMED[name])
    if change is None:
        return
    confidence = "certain" if _is_environment(node, view) else "likely"
    new = RENAMED[name]
    yield view.rewrite(node, change, reason=_WHY.filled(new=new), confidence=confidence)
    if name == "CUDA_VISIBLE_DEVICES" and not _is_ascending(node, view):
        yield view.notice(node, _ORDER)


def _is_environment(node: ast.expr, view: View) -> bool:
    """Whether a string is a key of `os.environ`, or the first argument of a call that reads it."""
    parent = view.module.parent(node)
    if isinstance(parent, ast.Subscript):
        return view.module.name_of(parent.value) == "os.environ"
    if isinstance(parent, ast.Call):
        name = view.module.name_of(parent.func) or ""
        return name.startswith("os.environ.") or name in ("os.getenv", "os.putenv")
    return False


def _is_ascending(node: ast.expr, view: View) -> bool:
    """Whether a variable is set to ascending numbers, or to a value that is not known here."""
    subscript = view.module.parent(node)
    statement = view.module.parent(subscript) if subscript is not None else None
    value = literal(statement.value) if isinstance(statement, ast.Assign) else None
    if not isinstance(value, str) or not re.fullmatch(r"\d+(?:,\d+)*", value):
        return True
    numbers = [int(number) for number in value.split(",")]
    return all(earlier < later for earlier, later in pairwise(numbers))
