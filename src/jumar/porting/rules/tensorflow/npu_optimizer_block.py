"""A hand-written block of NpuOptimizer also has to disable two graph rewrites."""

import ast

from jumar.porting.rewriting import Changes, Leave, Text, View, rule
from jumar.porting.rewriting.editing import insert_after, literal
from jumar.porting.script.nodes import walk

_REWRITES = ("remapping", "memory_optimization")
_ADDED = Text(
    en="npu_config_proto does not change an existing block, so the block itself has to disable "
    "{names}",
    zh="npu_config_proto 不会修改已有的 NpuOptimizer 配置，因此需在此处显式关闭 {names}",
)
_KEPT = Text(
    en="NpuOptimizer is configured by hand, with both rewrites disabled",
    zh="已手工配置 NpuOptimizer，且两项图改写均已关闭",
)
_REWRITER = "tensorflow.core.protobuf.rewriter_config_pb2:RewriterConfig"


@rule(
    "npu-optimizer-block",
    title=Text(
        en="A hand-written NpuOptimizer block disables two graph rewrites",
        zh="手写的 NpuOptimizer 配置需关闭两项图改写",
    ),
    source="npu_init.py of Ascend/tensorflow; TensorFlow 1.15 migration guide of CANN",
    nodes=(ast.Assign,),
)
def npu_optimizer_block(node: ast.Assign, view: View) -> Changes:
    """Add the missing settings after the line that names the optimizer."""
    target = node.targets[0]
    if not isinstance(target, ast.Attribute) or target.attr != "name":
        return
    if literal(node.value) not in ("NpuOptimizer", b"NpuOptimizer"):
        return
    options = _rewrite_options(target.value, view)
    if options is None:
        return
    text = view.module.source(options)
    missing = [name for name in _REWRITES if not _is_set(node, name, view)]
    if not missing:
        yield Leave(node=node, reason=_KEPT)
        return
    lines = "\n".join(f"{text}.{name} = RewriterConfig.OFF" for name in missing)
    yield view.rewrite(
        node,
        insert_after(view.module, node, lines),
        reason=_ADDED.filled(names=", ".join(missing)),
        imports=(_REWRITER,),
    )


def _rewrite_options(node: ast.expr, view: View) -> ast.expr | None:
    """`config.graph_options.rewrite_options` of the block that a name refers to."""
    if not isinstance(node, ast.Name):
        return None
    for binding in view.module.bindings(node):
        value = binding.value
        if (
            isinstance(value, ast.Call)
            and isinstance(value.func, ast.Attribute)
            and value.func.attr == "add"
            and isinstance(value.func.value, ast.Attribute)
            and value.func.value.attr == "custom_optimizers"
        ):
            return value.func.value.value
    return None


def _is_set(node: ast.Assign, name: str, view: View) -> bool:
    """Whether the function (or module) around the block sets a rewrite."""
    return any(
        (isinstance(inner, ast.keyword) and inner.arg == name)
        or (
            isinstance(inner, ast.Assign)
            and any(
                isinstance(target, ast.Attribute) and target.attr == name
                for target in inner.targets
            )
        )
        for inner in walk(view.module.function(node) or view.module.tree)
    )
