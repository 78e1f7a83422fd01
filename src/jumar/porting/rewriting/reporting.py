"""Rules that only report: their patterns and messages as data, with one checker."""

import ast
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

from jumar.porting.edits import Remark, Text
from jumar.porting.rewriting.changes import Change, Changes, Leave
from jumar.porting.rewriting.registry import Check, Language, rule
from jumar.porting.rewriting.view import View
from jumar.porting.script.expressions import imported_names

Condition = Callable[[Any, View], bool]
"""A test of a node: a call, a name, an import or a constant."""


@dataclass(frozen=True, kw_only=True)
class Case(Remark):
    """One thing that a rule reports.

    Code of a case without advice is deliberately left unchanged and only counted. The texts may
    have placeholders: `{name}` is the matching entry of `calls`, `references` or `imports`
    (`tensorflow.` as `tf.`), `{code}` the source, `{target}` the variable it is assigned to.

    Args:
        calls: Qualified names whose calls match; `tensorflow.train.*` for all names below it.
        references: Qualified names that match wherever they occur.
        imports: Packages, imported as a whole or in part; `apex.*` for parts only.
        nodes: Types of syntax nodes that match regardless of names.
        when: Conditions that must all hold.
        look_if: A condition under which it may be harmless: the severity is then `look`.
    """

    calls: tuple[str, ...] = ()
    references: tuple[str, ...] = ()
    imports: tuple[str, ...] = ()
    nodes: tuple[type[ast.AST], ...] = ()
    when: tuple[Condition, ...] = ()
    look_if: Condition | None = None


def report(
    id: str, *, title: Text, source: str, cases: tuple[Case, ...], language: Language = "tensorflow"
) -> None:
    """Register a rule that only reports; it sees the nodes that match one of its cases."""
    import_nodes = (ast.Import, ast.ImportFrom) if any(case.imports for case in cases) else ()
    rule(
        id,
        title=title,
        source=source,
        language=language,
        calls=tuple(dict.fromkeys(name for case in cases for name in case.calls)),
        references=tuple(dict.fromkeys(name for case in cases for name in case.references)),
        nodes=tuple(
            dict.fromkeys((*import_nodes, *(node for case in cases for node in case.nodes)))
        ),
    )(checker(cases))


def checker(cases: tuple[Case, ...]) -> Check:
    """Return a check that reports the first matching case for each name in a node."""

    @cache
    def matching(kind: type[ast.AST]) -> tuple[Case, ...]:
        return tuple(case for case in cases if _may_match(case, kind))

    def check(node: ast.AST, view: View) -> Changes:
        for name in _names(node, view):
            for case in matching(type(node)):
                entry = _entry(case, node, name)
                if entry is not None and all(holds(node, view) for holds in case.when):
                    yield _change(case, node, entry, view)
                    break

    return check


def _names(node: ast.AST, view: View) -> list[str]:
    """The names a node refers to: several for an import, "" for none."""
    if isinstance(node, ast.Import | ast.ImportFrom):
        return imported_names(node)
    if isinstance(node, ast.Call):
        return [view.kinds.called(node) or ""]
    return [view.module.name_of(node) or "" if isinstance(node, ast.expr) else ""]


def _may_match(case: Case, kind: type[ast.AST]) -> bool:
    """Whether a case can match a type of node at all."""
    if issubclass(kind, case.nodes):
        return True
    if issubclass(kind, ast.Import | ast.ImportFrom):
        return bool(case.imports)
    return bool(case.calls if issubclass(kind, ast.Call) else case.references)


def _entry(case: Case, node: ast.AST, name: str) -> str | None:
    """The entry of a case that matches a node; "" if its type alone decides, None for none."""
    if isinstance(node, case.nodes):
        return ""
    if isinstance(node, ast.Import | ast.ImportFrom):
        return next(
            (
                entry
                for entry in case.imports
                if f"{name}.".startswith(f"{entry}.") or _is_below(name, entry)
            ),
            None,
        )
    if not isinstance(node, ast.Call):
        return name if name in case.references else None
    return next((entry for entry in case.calls if name == entry or _is_below(name, entry)), None)


def _is_below(name: str, entry: str) -> bool:
    return entry.endswith("*") and name.startswith(entry[:-1])


def _change(case: Case, node: ast.AST, entry: str, view: View) -> Change:
    if not case.todo_en:
        return Leave(node=node, reason=case.reason)
    parent = view.module.parent(node)
    values = {
        "name": entry.replace("tensorflow.", "tf.", 1),
        "code": view.module.source(node),
        "target": view.module.source(parent.targets[0]) if isinstance(parent, ast.Assign) else "",
    }
    is_harmless = case.look_if is not None and case.look_if(node, view)
    return view.notice(node, case.filled(**values), severity="look" if is_harmless else None)
