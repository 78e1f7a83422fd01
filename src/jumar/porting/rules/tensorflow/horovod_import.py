"""Horovod's import is removed once nothing uses it; remaining uses are reported."""

import ast

from jumar.porting.rewriting import Changes, Remark, Replacement, Text, View, rule
from jumar.porting.rewriting.editing import delete, replace
from jumar.porting.rules.tensorflow.horovod_names import SOURCE, member
from jumar.porting.rules.tensorflow.ranks import RANK_IMPORTS, several_ranks
from jumar.porting.script.expressions import is_none
from jumar.porting.script.scopes import Binding

_GONE = Text(
    en="Horovod is no longer used, and is not installed with the NPU's TensorFlow",
    zh="已不再使用 Horovod，NPU 的 TensorFlow 环境中也不会安装它",
)
_TEST = Text(
    en="the script used a successful import of Horovod as a test for several ranks; RANK_SIZE "
    "replaces it",
    zh="原来以能否导入 Horovod 判断是否多卡，现由 RANK_SIZE 判断",
)
_NONE = Text(
    en="gradients are not compressed before HCCL reduces them",
    zh="HCCL 规约前不压缩梯度",
)
_LEFT = Remark(
    en="Horovod's {name} has no counterpart on the NPU",
    zh="Horovod 的 {name} 在 NPU 上没有对应接口",
    todo_en="rewrite it with hccl_ops or the environment (RANK_ID, RANK_SIZE), or remove it: "
    "Horovod cannot be imported on the NPU",
    todo_zh="用 hccl_ops 或环境变量（RANK_ID、RANK_SIZE）改写，或删除：NPU 环境中无法导入 Horovod",
    severity="blocking",
)
_HANDLED_ELSEWHERE = frozenset(
    "init shutdown rank size local_rank local_size DistributedOptimizer "  # noqa: SIM905
    "BroadcastGlobalVariablesHook callbacks.BroadcastGlobalVariablesCallback "
    "callbacks.MetricAverageCallback broadcast_global_variables broadcast_variables allreduce "
    "allgather broadcast".split()
)
_OPERATIONS = ("Sum", "Average", "Min", "Max", "Product", "Adasum")


@rule(
    "horovod-import",
    title=Text(
        en="Horovod's import is removed; remaining uses are reported",
        zh="删除 Horovod 导入并报告剩余用法",
    ),
    source=SOURCE,
)
def horovod_import(_: ast.Module, view: View) -> Changes:
    """Remove an import that is not needed; replace tests of it; report remaining uses."""
    if "horovod" not in view.module.text:
        return
    for node in view.module.scopes.nodes:
        if isinstance(node, ast.Import | ast.ImportFrom | ast.Name | ast.Attribute):
            yield from _of_node(node, view)


def _of_node(node: ast.Import | ast.ImportFrom | ast.Name | ast.Attribute, view: View) -> Changes:
    if isinstance(node, ast.Import | ast.ImportFrom):
        yield from _imported(node, view)
        return
    if not isinstance(node.ctx, ast.Load):
        return
    name = view.module.name_of(node)
    if name in ("horovod.tensorflow", "horovod.keras", "horovod.tensorflow.keras"):
        yield from _tested(node, view)
        return
    member_name = member(name)
    if member_name is None or _is_inner(node, view):
        return
    parent = view.module.parent(node)
    if member_name.startswith(("Compression.", *_OPERATIONS)) and _is_argument(node, view):
        # It is removed together with the call that it is passed to.
        return
    if member_name.startswith("Compression."):
        yield view.rewrite(node, replace(view.module, node, "None"), reason=_NONE)
    elif member_name in _HANDLED_ELSEWHERE and isinstance(parent, ast.Call) and parent.func is node:
        return
    else:
        yield view.notice(node, _LEFT.filled(name=member_name))


def _is_argument(node: ast.expr, view: View) -> bool:
    """Whether a node is in the arguments of a Horovod call."""
    for enclosing in view.module.scopes.ancestors(node):
        if isinstance(enclosing, ast.stmt):
            return False
        if isinstance(enclosing, ast.Call) and member(view.module.name_of(enclosing.func)):
            return True
    return False


def _is_inner(node: ast.expr, view: View) -> bool:
    """Whether a name is only the start of a longer one, such as `hvd.callbacks`."""
    parent = view.module.parent(node)
    return isinstance(parent, ast.Attribute) and member(view.module.name_of(parent)) is not None


def _tested(node: ast.Name | ast.Attribute, view: View) -> Changes:
    """Replace tests such as `if hvd:` and `if hvd is not None:`."""
    parent = view.module.parent(node)
    test: ast.expr = node
    several = True
    if isinstance(parent, ast.Compare) and parent.left is node and len(parent.ops) == 1:
        if not is_none(parent.comparators[0]):
            return
        test, several = parent, isinstance(parent.ops[0], ast.IsNot | ast.NotEq)
    elif isinstance(parent, ast.UnaryOp) and isinstance(parent.op, ast.Not):
        test, several = parent, False
    elif not isinstance(parent, ast.BoolOp) and not (
        isinstance(parent, ast.If | ast.IfExp | ast.While) and parent.test is node
    ):
        if not isinstance(parent, ast.Attribute):
            yield view.notice(node, _LEFT.filled(name="module"))
        return
    text = several_ranks(view) if several else several_ranks(view).replace(" > 1", " <= 1")
    yield view.rewrite(test, replace(view.module, test, text), reason=_TEST, imports=RANK_IMPORTS)


def _imported(node: ast.Import | ast.ImportFrom, view: View) -> Changes:
    """Remove the unused parts of Horovod from an import."""
    unused = [alias for alias in node.names if _is_unused(alias, node, view)]
    if not unused:
        return
    if len(unused) < len(node.names):
        kept_names = [ast.unparse(alias) for alias in node.names if alias not in unused]
        first, last = node.names[0], node.names[-1]
        start, end = view.module.span(first)[0], view.module.span(last)[1]
        yield view.rewrite(
            node, Replacement(start=start, end=end, text=", ".join(kept_names)), reason=_GONE
        )
        return
    enclosing = view.module.parent(node)
    statement: ast.stmt = node
    if isinstance(enclosing, ast.Try) and _only_imports(enclosing, node):
        statement = enclosing
    yield view.rewrite(statement, delete(view.module, statement), reason=_GONE)


def _is_unused(alias: ast.alias, node: ast.Import | ast.ImportFrom, view: View) -> bool:
    module = alias.name if isinstance(node, ast.Import) else f"{node.module or ''}.{alias.name}"
    if not f"{module}.".startswith(("horovod.tensorflow.", "horovod.keras.")):
        return False
    if isinstance(node, ast.ImportFrom) and (node.level or alias.name == "*"):
        return False
    name = alias.asname or alias.name.partition(".")[0]
    scope = view.module.scopes.scope_of(node)
    home_scope = scope.elsewhere.get(name, scope)
    return not home_scope.references.get(name) and any(
        binding.node is node for binding in home_scope.bindings.get(name, list[Binding]())
    )


def _only_imports(enclosing: ast.Try, node: ast.stmt) -> bool:
    """Whether a `try` guards a single import, and its handlers only report that it failed."""
    if enclosing.body != [node] or enclosing.orelse or enclosing.finalbody:
        return False
    return all(
        isinstance(statement, ast.Pass | ast.Raise | ast.Expr)
        or (
            isinstance(statement, ast.Assign)
            and isinstance(statement.value, ast.Constant)
            and statement.value.value in (None, False)
        )
        for handler in enclosing.handlers
        for statement in handler.body
    )
