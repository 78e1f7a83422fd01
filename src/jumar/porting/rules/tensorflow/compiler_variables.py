"""Environment variables that enable XLA or TensorFlow's mixed precision are removed."""

import ast

from jumar.porting.rewriting import Changes, Remark, Text, View, rule
from jumar.porting.rewriting.editing import delete
from jumar.porting.rules.tensorflow.concerned import uses_tensorflow
from jumar.porting.rules.tensorflow.environment_variables import assigned_variable

_XLA = ("TF_XLA_FLAGS", "XLA_FLAGS")
_MIXED = (
    "TF_ENABLE_AUTO_MIXED_PRECISION",
    "TF_ENABLE_AUTO_MIXED_PRECISION_GRAPH_REWRITE",
    "TF_ENABLE_AUTO_MIXED_PRECISION_LOSS_SCALING",
)
_COMPILER = Text(
    en="XLA and the NPU's graph engine are mutually exclusive: the variable would enable XLA",
    zh="XLA 与 NPU 图引擎互斥：该环境变量会打开 XLA",
)
_PRECISION = Remark(
    en="mixed precision on the NPU is set by precision_mode, not by TensorFlow's variable for GPUs",
    zh="NPU 的混合精度由 precision_mode 设置，而非 TensorFlow 针对 GPU 的该环境变量",
    todo_en="port again with --precision allow_mix_precision and --loss-scale exponential",
    todo_zh="使用 --precision allow_mix_precision 与 --loss-scale exponential 重新移植",
    severity="speed",
)


@rule(
    "compiler-variables",
    title=Text(
        en="Variables that enable XLA or mixed precision for GPUs are removed",
        zh="删除打开 XLA 或 GPU 混合精度的环境变量",
    ),
    source="TensorFlow 1.15 migration guide of CANN",
    nodes=(ast.Assign, ast.Expr),
)
def compiler_variables(node: ast.Assign | ast.Expr, view: View) -> Changes:
    """Delete the statement; report how to set the precision instead."""
    variable = assigned_variable(node, view)
    if variable is None or variable[0] not in (*_XLA, *_MIXED) or not uses_tensorflow(view):
        return
    is_mixed = variable[0] in _MIXED
    if is_mixed and view.options.precision is None:
        yield view.notice(node, _PRECISION)
    reason = _PRECISION.reason if is_mixed else _COMPILER
    yield view.rewrite(node, delete(view.module, node), reason=reason)
