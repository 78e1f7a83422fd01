"""XLA is disabled: it and the NPU's graph engine are two compilers for the same graph."""

import ast

from jumar.porting.rewriting import Changes, Remark, Text, View, rule
from jumar.porting.rewriting.editing import add_argument, argument, is_open, literal, replace
from jumar.porting.rules.tensorflow.concerned import uses_tensorflow

_SCOPES = (
    "tensorflow.contrib.compiler.jit.experimental_jit_scope",
    "tensorflow.xla.experimental.jit_scope",
    "tensorflow.python.compiler.xla.jit.experimental_jit_scope",
)
_COMPILES = (
    "tensorflow.xla.experimental.compile",
    "tensorflow.contrib.compiler.xla.compile",
    "tensorflow.python.compiler.xla.xla.compile",
)
_LEVELS = ("tensorflow.OptimizerOptions.ON_1", "tensorflow.OptimizerOptions.ON_2")
_OFF = Text(
    en="XLA and the NPU's graph engine are mutually exclusive: XLA is disabled",
    zh="XLA 与 NPU 图引擎互斥：关闭 XLA",
)
_COMPILE = Remark(
    en="this part of the graph is compiled by XLA, which the NPU does not run",
    zh="这部分图由 XLA 编译，NPU 无法执行",
    todo_en="call the function itself: xla.compile(f, inputs) returns the result of f(*inputs), a "
    "single tensor as a list of one",
    todo_zh="直接调用该函数：xla.compile(f, inputs) 返回 f(*inputs) 的结果，"
    "单个张量时返回只含一个元素的列表",
    severity="blocking",
)


@rule(
    "xla",
    title=Text(en="XLA is disabled", zh="关闭 XLA"),
    source="npu_init.py of Ascend/tensorflow; TensorFlow 1.15 migration guide of CANN",
    nodes=(ast.Call, ast.Assign, ast.Attribute, ast.keyword),
)
def xla(node: ast.Call | ast.Assign | ast.Attribute | ast.keyword, view: View) -> Changes:
    """Disable XLA wherever the script enables it."""
    if isinstance(node, ast.Call):
        yield from _call(node, view)
    elif isinstance(node, ast.Attribute):
        if isinstance(node.ctx, ast.Load) and view.module.name_of(node) in _LEVELS:
            text = f"{view.module.source(node.value)}.OFF"
            yield view.rewrite(node, replace(view.module, node, text), reason=_OFF)
    elif isinstance(node, ast.keyword):
        if node.arg == "global_jit_level" and _is_on(node.value) and uses_tensorflow(view):
            yield view.rewrite(
                node.value, replace(view.module, node.value, "-1"), reason=_OFF, confidence="likely"
            )
    else:
        target = node.targets[0]
        is_level = isinstance(target, ast.Attribute) and target.attr == "global_jit_level"
        is_option = (
            isinstance(target, ast.Attribute)
            and isinstance(target.value, ast.Attribute | ast.Name)
            and "options" in view.module.source(target.value)
        )
        if is_level and is_option and _is_on(node.value) and uses_tensorflow(view):
            yield view.rewrite(
                node, replace(view.module, node.value, "-1"), reason=_OFF, confidence="likely"
            )


def _call(call: ast.Call, view: View) -> Changes:
    name = view.module.name_of(call.func) or ""
    if name in _COMPILES:
        yield view.notice(call, _COMPILE)
    elif name in _SCOPES:
        yield from _disabled(call, "compile_ops", 0, view)
    elif name == "tensorflow.config.optimizer.set_jit":
        yield from _disabled(call, "enabled", 0, view)
    elif name == "tensorflow.function":
        value = argument(call, "experimental_compile")
        if value is not None and not _is_false(value):
            yield view.rewrite(call, replace(view.module, value, "False"), reason=_OFF)


def _disabled(call: ast.Call, name: str, position: int, view: View) -> Changes:
    value = argument(call, name, position)
    if value is None:
        if is_open(call):
            return
        change = add_argument(view.module, call, f"{name}=False")
    elif _is_false(value):
        return
    else:
        change = replace(view.module, value, "False")
    yield view.rewrite(call, change, reason=_OFF)


def _is_false(value: ast.expr) -> bool:
    return isinstance(value, ast.Constant) and value.value is False


def _is_on(value: ast.expr) -> bool:
    number = literal(value)
    return isinstance(number, int) and number > 0
