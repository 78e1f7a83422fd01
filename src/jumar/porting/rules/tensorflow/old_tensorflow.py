"""Names and argument orders of TensorFlow before 1.0 become those of 1.15."""

import ast
import re

from jumar.porting.rewriting import Change, Changes, Leave, Remark, Replacement, Text, View, rule
from jumar.porting.rewriting.editing import is_open, literal, replace, slots
from jumar.porting.rules.tensorflow.old_names import (
    OLD,
    REMOVED,
    STILL_AVAILABLE,
    SUMMARIES,
    OldFunction,
)
from jumar.porting.rules.tensorflow.release_choices import chooses_release
from jumar.porting.script.expressions import imported_names, is_none, last_name

_WIDEST = 1 << 30
_AXIS = re.compile(r"(?:^|_)(?:axis|dim)(?:$|_|\d)")
_LITERALS = (ast.List, ast.Tuple, ast.ListComp, ast.GeneratorExp)

_REASON = Text(
    en="TensorFlow 1.15 uses a different name or different parameters for this than releases "
    "before 1.0",
    zh="与 1.0 之前的版本相比，TensorFlow 1.15 中该接口的名称或参数已改变",
)
_SUMMARY = Text(
    en="TensorFlow 1.15 uses a different name for this than releases before 1.0; tags now begin "
    "with the name scope, and characters not allowed in names become _",
    zh="TensorFlow 1.15 中该接口的名称与 1.0 之前不同；标签会带上 name scope，非法字符变为 _",
)
_GONE = Remark(
    en="TensorFlow 1.15 no longer has {name}, which is from releases before 1.0",
    zh="TensorFlow 1.15 已没有 {name}（属于 1.0 之前的版本）",
    todo_en="use {now}; compare the parameters, whose names and order may differ",
    todo_zh="改用 {now}，并核对参数的名称与顺序",
    severity="blocking",
)
_STAYS = Text(
    en="TensorFlow 1.15 still has this under its old name, with a warning",
    zh="TensorFlow 1.15 仍保留该旧名称，只给出警告",
)
_CHOOSES = Text(
    en="the script itself chooses between this and the name of newer releases",
    zh="脚本已根据版本自行选择新旧名称",
)


@rule(
    "old-tensorflow",
    title=Text(
        en="Names of TensorFlow before 1.0 become those of 1.15",
        zh="TensorFlow 1.0 之前的接口改为 1.15 的接口",
    ),
    source="release notes of TensorFlow 0.12 and 1.0; the names of 1.15",
    references=(*OLD, *STILL_AVAILABLE, *REMOVED),
    nodes=(ast.Import, ast.ImportFrom),
)
def old_tensorflow(
    node: ast.Name | ast.Attribute | ast.Import | ast.ImportFrom, view: View
) -> Changes:
    """Rename functions, and pass arguments whose order has changed by keyword."""
    if isinstance(node, ast.Import | ast.ImportFrom):
        if not chooses_release(node, view):
            yield from _imported(node, view)
        return
    name = view.module.name_of(node) or ""
    if not isinstance(node.ctx, ast.Load):
        return
    if name in STILL_AVAILABLE:
        yield Leave(node=node, reason=_STAYS)
    elif name in REMOVED:
        if isinstance(node, ast.Attribute):
            yield _removed_name(node, name, REMOVED[name], view)
    elif name in OLD:
        yield from _ported(node, name, view)


def _imported(node: ast.Import | ast.ImportFrom, view: View) -> Changes:
    """Report imports from TensorFlow of names that no longer exist."""
    for name in imported_names(node):
        for old, new_name in REMOVED.items():
            if f"{name}.".startswith(f"{old}."):
                yield _removed_name(node, old, new_name, view)
        entry = OLD.get(name)
        if entry and entry.current_name:
            yield _removed_name(node, name, f"tf.{entry.current_name}", view)


def _removed_name(node: ast.AST, name: str, new_name: str, view: View) -> Change:
    short_name = name.replace("tensorflow.", "tf.", 1)
    return view.notice(node, _GONE.filled(name=short_name, now=new_name))


def _is_imported(node: ast.Name | ast.Attribute, view: View) -> bool:
    """Whether a bare name was imported from TensorFlow, which is reported there."""
    if not isinstance(node, ast.Name):
        return False
    bindings = view.module.bindings(node)
    return not bindings or any(binding.kind == "import" for binding in bindings)


def _ported(node: ast.Name | ast.Attribute, name: str, view: View) -> Changes:
    """The edit of one use of an old name, a report if it is not certain, or nothing."""
    old = OLD[name]
    outer = view.module.parent(node)
    call = outer if isinstance(outer, ast.Call) and outer.func is node else None
    if not old.current_name and (call is None or not _is_old_call(call, name, old)):
        return
    if chooses_release(node, view):
        yield Leave(node=node, reason=_CHOOSES)
        return
    name_changes: tuple[Replacement, ...] = ()
    if old.current_name:
        if _is_imported(node, view):
            return
        base = _tensorflow(node, view)
        if base is None or (call is not None and not _fits(call, name, old)):
            yield _removed_name(node, name, f"tf.{old.current_name}", view)
            return
        if base is not node:
            name_changes = (
                replace(view.module, node, f"{view.module.source(base)}.{old.current_name}"),
            )
    arguments = _with_keywords(call, old, view) if call is not None else ()
    if name_changes or arguments:
        yield view.rewrite(
            call if call is not None and arguments else node,
            *name_changes,
            *arguments,
            reason=_SUMMARY if name in SUMMARIES else _REASON,
            confidence="certain" if old.current_name or _is_certain(call, name) else "likely",
        )


def _tensorflow(node: ast.Name | ast.Attribute, view: View) -> ast.expr | None:
    """The part of a dotted name that refers to TensorFlow, such as `tf`; of a variable, itself."""
    current: ast.expr = node
    while isinstance(current, ast.Attribute):
        current = current.value
        if view.module.name_of(current) == "tensorflow":
            return current
    return node if isinstance(node, ast.Name) else None


def _fits(call: ast.Call, name: str, old: OldFunction) -> bool:
    """Whether the arguments of a call still mean the same under the new name."""
    if any(passed.arg in old.removed for passed in call.keywords):
        return False
    if (old.max_positional >= 0 or old.renamed) and is_open(call):
        return False
    if 0 <= old.max_positional < len(call.args):
        return False
    tags = call.args[:1] or [passed.value for passed in call.keywords if passed.arg == "tags"]
    return not (name in SUMMARIES and tags and isinstance(tags[0], _LITERALS))


def _is_old_call(call: ast.Call, name: str, old: OldFunction) -> bool:
    """Whether a function that has kept its name is called as it was before 1.0."""
    if is_open(call):
        return False
    if any(passed.arg in old.renamed for passed in call.keywords):
        return True
    if not call.args or len(call.args) > len(old.order):
        return False
    if "logits" in old.order:
        # In 1.15 the first parameter only accepts None, so that the others need keywords.
        return not is_none(call.args[0])
    return _is_certain(call, name) or _is_likely(call, old)


def _is_certain(call: ast.Call | None, name: str) -> bool:
    """Whether the first argument must be an axis: a number cannot be concatenated or split."""
    if call is None or "cross_entropy" in name or not call.args:
        return True
    return isinstance(literal(call.args[0]), int)


def _is_likely(call: ast.Call, old: OldFunction) -> bool:
    """Whether the first argument has the name of an axis, or the last one is a list of tensors."""
    last = old.order.index("value" if "value" in old.order else "values")
    if len(call.args) <= last or isinstance(call.args[0], _LITERALS):
        return False
    parts = call.args[last]
    if isinstance(parts, ast.List | ast.Tuple) and len(parts.elts) > 1:
        return "values" in old.order
    return _is_named_axis(call.args[0]) and not _is_named_axis(parts)


def _is_named_axis(node: ast.expr) -> bool:
    return bool(_AXIS.search(last_name(node).lower()))


def _with_keywords(call: ast.Call, old: OldFunction, view: View) -> tuple[Replacement, ...]:
    """Keywords for arguments whose order has changed, and new names of keywords."""
    result: list[Replacement] = []
    for slot in slots(view.module, call):
        if isinstance(slot.node, ast.keyword):
            parameter = slot.node.arg or ""
            if parameter in old.renamed:
                start, _ = view.module.span(slot.node)
                end, text = start + len(parameter), old.renamed[parameter]
                result.append(Replacement(start=start, end=end, text=text))
        elif old.order:
            text = f"{old.order[call.args.index(slot.node)]}="
            result.append(
                Replacement(start=slot.start, end=slot.start, text=text, side="open", width=_WIDEST)
            )
    return tuple(result)
