"""Two of TensorFlow's graph rewrites are disabled: the NPU's graph engine does their work."""

import ast

from jumar.porting.rewriting import Changes, Remark, Text, View, rule
from jumar.porting.rewriting.editing import delete, keyword, literal, remove_arguments, replace
from jumar.porting.rules.tensorflow.concerned import uses_tensorflow

_REWRITES = ("remapping", "memory_optimization")
_MIXED = "auto_mixed_precision"
_OFF = Text(
    en="TensorFlow's {name} changes the graph in ways that the NPU's graph engine does not expect",
    zh="TensorFlow 的 {name} 会改写计算图，与 NPU 图引擎冲突，需关闭",
)
_PRECISION = Remark(
    en="mixed precision on the NPU is set by precision_mode, not by this rewrite for GPUs",
    zh="NPU 的混合精度由 precision_mode 设置，而非该针对 GPU 的图改写",
    todo_en="port again with --precision allow_mix_precision and --loss-scale exponential",
    todo_zh="使用 --precision allow_mix_precision 与 --loss-scale exponential 重新移植",
    severity="speed",
)
_EXPERIMENTAL = "tensorflow.config.optimizer.set_experimental_options"


@rule(
    "graph-rewrites",
    title=Text(
        en="Graph rewrites that conflict with the NPU are disabled",
        zh="关闭与 NPU 冲突的图改写",
    ),
    source="npu_init.py of Ascend/tensorflow; rewriter_config.proto of TensorFlow 1.15",
    nodes=(ast.Assign, ast.Call),
)
def graph_rewrites(node: ast.Assign | ast.Call, view: View) -> Changes:
    """Set both to OFF if the script sets them to anything else."""
    if isinstance(node, ast.Assign):
        target = node.targets[0]
        if len(node.targets) != 1 or not isinstance(target, ast.Attribute):
            return
        if not _is_rewrite_options(target.value, view) or not uses_tensorflow(view):
            return
        if target.attr in _REWRITES:
            yield from _disabled(target.attr, node.value, view)
        elif target.attr == _MIXED:
            yield from _precision(node, view)
            yield view.rewrite(node, delete(view.module, node), reason=_PRECISION.reason)
        return
    name = view.module.name_of(node.func) or ""
    if name == _EXPERIMENTAL:
        yield from _dictionary(node, view)
    elif name.endswith("rewriter_config_pb2.RewriterConfig"):
        for passed in node.keywords:
            if passed.arg in _REWRITES:
                yield from _disabled(passed.arg, passed.value, view)
        mixed = keyword(node, _MIXED)
        if mixed:
            yield from _precision(node, view)
            removals = remove_arguments(view.module, node, {mixed})
            yield view.rewrite(node, *removals, reason=_PRECISION.reason)


def _is_rewrite_options(node: ast.expr, view: View) -> bool:
    """Whether a node is `….rewrite_options`, or a name bound to that or to a RewriterConfig."""
    if isinstance(node, ast.Attribute):
        return node.attr == "rewrite_options"
    if not isinstance(node, ast.Name):
        return False
    for binding in view.module.bindings(node):
        value = binding.value
        if isinstance(value, ast.Attribute) and value.attr == "rewrite_options":
            return True
        if isinstance(value, ast.Call):
            name = view.module.name_of(value.func) or ""
            if name.endswith("rewriter_config_pb2.RewriterConfig"):
                return True
    return False


def _disabled(name: str, value: ast.expr, view: View) -> Changes:
    number = literal(value)
    if isinstance(value, ast.Attribute):
        if value.attr in ("OFF", "NO_MEM_OPT", "MANUAL"):
            return
        text = f"{view.module.source(value.value)}.OFF"
    elif number == 2 or (name == "memory_optimization" and number == 1):
        return
    else:
        text = "2"
    yield view.rewrite(value, replace(view.module, value, text), reason=_OFF.filled(name=name))


def _dictionary(call: ast.Call, view: View) -> Changes:
    if not call.args or not isinstance(call.args[0], ast.Dict):
        return
    mapping = call.args[0]
    for key, value in zip(mapping.keys, mapping.values, strict=True):
        name = literal(key)
        if name not in ("remapping", _MIXED) or literal(value) is False:
            continue
        if name == _MIXED:
            yield from _precision(call, view)
        reason = _PRECISION.reason if name == _MIXED else _OFF.filled(name=name)
        yield view.rewrite(value, replace(view.module, value, "False"), reason=reason)


def _precision(node: ast.AST, view: View) -> Changes:
    if view.options.precision is None:
        yield view.notice(node, _PRECISION)
