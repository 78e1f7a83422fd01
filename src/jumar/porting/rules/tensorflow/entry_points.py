"""Where a script begins and ends: the statements that run when it is started."""

import ast
from collections.abc import Callable
from dataclasses import dataclass

from jumar.porting.rewriting import View
from jumar.porting.rewriting.editing import argument
from jumar.porting.script.nodes import walk

EXITS = ("sys.exit", "builtins.exit", "builtins.quit")
_RUNNERS = ("tensorflow.app.run", "absl.app.run")
_DEFINITIONS = (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


@dataclass(frozen=True)
class Entry:
    """The first and the last statement of a script's work."""

    first: ast.stmt
    last: ast.stmt


def entry_point(view: View) -> Entry | None:
    """The body of the main function, or of the main guard; None for modules without one.

    Scripts without a guard are found by `top_level`.
    """
    for statement in reversed(view.module.tree.body):
        if isinstance(statement, ast.If) and _is_main_guard(statement):
            body = _main_body(statement, view) or statement.body
            return Entry(_after_docstring(body), body[-1])
    return None


def top_level(view: View) -> Entry | None:
    """The statements of a script without a main guard, from where its work begins.

    That is the first statement that calls something of TensorFlow, Keras or the script itself.
    """
    return _from_call(view.module.tree.body, lambda call: _does_work(call, view))


def first_call(view: View) -> Entry | None:
    """The statements of a script from the first one below its imports that calls anything."""
    body = view.module.tree.body
    imports = [
        index
        for index, statement in enumerate(body)
        if isinstance(statement, ast.Import | ast.ImportFrom)
    ]
    return _from_call(body[imports[-1] + 1 if imports else 0 :], lambda _: True)


def _from_call(statements: list[ast.stmt], matches: Callable[[ast.Call], bool]) -> Entry | None:
    """The statements from the first one that contains a matching call, outside definitions."""
    for statement in statements:
        if isinstance(statement, (*_DEFINITIONS, ast.Try)):
            continue
        if any(isinstance(node, ast.Call) and matches(node) for node in walk(statement)):
            return Entry(statement, statements[-1])
    return None


def _does_work(call: ast.Call, view: View) -> bool:
    name = view.module.name_of(call.func) or ""
    return name.startswith(("tensorflow.", "keras.", "tree:"))


def _is_main_guard(statement: ast.If) -> bool:
    test = statement.test
    if not isinstance(test, ast.Compare) or len(test.comparators) != 1:
        return False
    sides = [test.left, test.comparators[0]]
    names = [side.id for side in sides if isinstance(side, ast.Name)]
    values = [side.value for side in sides if isinstance(side, ast.Constant)]
    return names == ["__name__"] and values == ["__main__"]


def _main_body(guard: ast.If, view: View) -> list[ast.stmt] | None:
    """The body of the one function that a guard calls: `main()`, `tf.app.run(main)`."""
    last = guard.body[-1]
    if any(
        isinstance(node, ast.Call) and _may_create_model(node, view)
        for earlier in guard.body[:-1]
        for node in walk(earlier)
    ):
        return None
    call = last.value if isinstance(last, ast.Expr) else None
    if isinstance(call, ast.Call) and view.module.name_of(call.func) in EXITS and call.args:
        call = call.args[0]
    if not isinstance(call, ast.Call):
        return None
    callee: ast.expr | None = call.func
    if view.module.name_of(call.func) in _RUNNERS:
        callee = call.args[0] if call.args else argument(call, "main")
        if callee is None:
            return _function("main", view)
    return _function(callee.id, view) if isinstance(callee, ast.Name) else None


def _may_create_model(call: ast.Call, view: View) -> bool:
    """Whether a call may create a model: one of Keras, or of a class of the tree."""
    name = view.module.name_of(call.func) or ""
    _, node = view.module.definition(name)
    return isinstance(node, ast.ClassDef) or name.startswith(("keras.", "tensorflow.keras."))


def _function(name: str, view: View) -> list[ast.stmt] | None:
    bindings = view.module.scopes.module.bindings.get(name, [])
    if len(bindings) == 1 and isinstance(bindings[0].node, ast.FunctionDef):
        return bindings[0].node.body
    return None


def _after_docstring(body: list[ast.stmt]) -> ast.stmt:
    first = body[0]
    is_text = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
    return body[1] if is_text and len(body) > 1 else first
