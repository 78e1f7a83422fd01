"""PyTorch rules that report uses of a CUDA installation, and names that newer PyTorch lacks."""

import ast

from jumar.porting.rewriting import Case, Text, View, report
from jumar.porting.rules.nvidia_smi import runs_nvidia_smi
from jumar.porting.torch.scripts import may_use_torch, uses_torch


def _in_torch_script(_: ast.AST, view: View) -> bool:
    return uses_torch(view.module)


def _may_be_torch(_: ast.AST, view: View) -> bool:
    return may_use_torch(view.module)


def _is_only_shown(node: ast.AST, view: View) -> bool:
    """Whether a value is only printed, or only tested for presence."""
    parent = view.module.parent(node)
    if isinstance(parent, ast.Call):
        return isinstance(parent.func, ast.Name) and parent.func.id in ("print", "str", "bool")
    if isinstance(parent, ast.Compare):
        return all(isinstance(operator, ast.Is | ast.IsNot) for operator in parent.ops)
    return isinstance(parent, ast.If | ast.IfExp | ast.BoolOp | ast.FormattedValue | ast.UnaryOp)


report(
    "torch-cuda-version",
    title=Text(en="Queries of CUDA's version and driver", zh="查询 CUDA 版本与驱动"),
    source="torch/version.py of PyTorch; documents of npu-smi",
    language="torch",
    cases=(
        Case(
            references=("torch.version.cuda",),
            en="torch.version.cuda is None if PyTorch is built without CUDA, as for NPUs: "
            "comparing or parsing it fails",
            zh="未启用 CUDA 的 PyTorch（NPU 即如此）中 torch.version.cuda 为 None："
            "对其比较或拆分会出错",
            todo_en="use torch.npu.is_available(), and torch_npu.__version__ for the version",
            todo_zh="改用 torch.npu.is_available()；版本号用 torch_npu.__version__",
            severity="blocking",
            look_if=_is_only_shown,
        ),
        Case(
            nodes=(ast.Constant,),
            when=(runs_nvidia_smi, _may_be_torch),
            en="nvidia-smi does not exist on a machine with NPUs",
            zh="NPU 服务器上没有 nvidia-smi",
            todo_en="use npu-smi info for NPUs and torch.npu.mem_get_info for their memory; check "
            "how the script uses the output",
            todo_zh="用 npu-smi info 查看 NPU，用 torch.npu.mem_get_info 查看显存；"
            "请确认脚本如何使用其输出",
            confidence="likely",
        ),
    ),
)


report(
    "torch-six",
    title=Text(en="torch._six was removed", zh="torch._six 已删除"),
    source="release notes of PyTorch 2.0",
    language="torch",
    cases=(
        Case(
            imports=("torch._six",),
            when=(_in_torch_script,),
            en="PyTorch 2.0 and newer have no torch._six: this import fails",
            zh="PyTorch 2.0 及以上没有 torch._six，此导入会失败",
            todo_en="use collections.abc instead of container_abcs, str instead of "
            "string_classes, int instead of int_classes, math.inf instead of inf",
            todo_zh="container_abcs 改用 collections.abc，string_classes 改用 str，int_classes "
            "改用 int，inf 改用 math.inf",
            severity="blocking",
        ),
    ),
)
