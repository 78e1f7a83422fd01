"""Which scope binds a name, by Python's own rules."""

import ast
import symtable
from collections.abc import Iterator

import pytest

from jumar.porting.script.scopes import Binding, Scope, Scopes


def scopes(text: str) -> Scopes:
    return Scopes(ast.parse(text))


def home(text: str, name: str, place: int = -1) -> str:
    """What kind of scope binds the last use of a name, with the name of its function or class."""
    found = scopes(text)
    uses = [node for node in found.nodes if isinstance(node, ast.Name) and node.id == name]
    scope, _ = found.lookup(uses[place])
    if scope is None:
        return "none"
    return getattr(scope.node, "name", type(scope.node).__name__)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x = 1\ndef f():\n    x", "Module"),
        ("x = 1\ndef f():\n    x = 2\n    x", "f"),
        ("x = 1\ndef f(x): x", "f"),
        ("def f(*x): x", "f"),
        ("def f(**x): x", "f"),
        ("def f(*, x): x", "f"),
        ("def f(x, /): x", "f"),
        ("x = 1\ndef f(y=x): pass", "Module"),
        ("x = 1\ndef f(x=x): pass", "Module"),
        ("x = 1\nlambda x: x", "Lambda"),
        ("x = 1\nlambda y=x: y", "Module"),
        ("x = 1\nclass A:\n    x = 2\n    def f(self): x", "Module"),
        ("x = 1\nclass A:\n    x = 2\n    x", "A"),
        ("x = 1\nclass A:\n    x = 2\n    y = [x for _ in z]", "A"),
        ("x = 1\nclass A:\n    x = 2\n    y = lambda: x", "Module"),
        ("x = 1\nclass A(x):\n    def x(self): pass", "Module"),
        ("[x for x in y]", "ListComp"),
        ("{x for x in y}", "SetComp"),
        ("{1: x for x in y}", "DictComp"),
        ("sum(x for x in y)", "GeneratorExp"),
        ("def f():\n    [(x := y) for y in z]\n    x", "f"),
        ("def f():\n    global x\n    x = 1\n    x", "Module"),
        ("def f():\n    x = 1\n    def g():\n        nonlocal x\n        x = 2\n        x", "f"),
        ("def f():\n    x = 1\n    def g():\n        nonlocal x\n        x = 2\n    return x", "f"),
        ("def f():\n    try: pass\n    except E as x: x", "f"),
        ("async def f(x):\n    x", "f"),
        ("def f():\n    import x\n    x", "f"),
        ("def f():\n    import x.y\n    x", "f"),
        ("def f():\n    from y import x\n    x", "f"),
        ("def f():\n    for x in y: pass\n    x", "f"),
        ("def f():\n    with y as x: pass\n    x", "f"),
        ("@x\ndef x(): pass", "Module"),
        ("y", "none"),
        ("def f():\n    class x: pass\n    x", "f"),
        ("def f():\n    def x(): pass\n    x", "f"),
        ("def f():\n    global x\n    import x\n    x", "Module"),
        ("def f():\n    global x\n    from y import x\n    x", "Module"),
    ],
)
def test_name_resolves_to_the_binding_scope(text: str, expected: str) -> None:
    assert home(text, "y" if expected == "none" else "x") == expected


SCRIPT = """
import os.path as p, sys
from . import near
from ..far.away import one as two, three
from stars import *
from .local import *
a = b = 1
c: int = 2
(d := 3)
e, f = 4, 5
with open(a) as g, open(b) as (h, i):
    pass
for j in range(3):
    pass
for k, l in []:
    pass
async def fetch():
    async for m in a:
        pass
    async with a as n:
        pass
class Kind(Base):
    pass
def called(o, *q): pass
try: pass
except Error as r: pass
del a
"""


def test_each_binding_has_its_kind_and_value() -> None:
    found = scopes(SCRIPT)

    def told(scope: Scope) -> dict[str, list[tuple[str, str, str, str]]]:
        return {
            name: [
                (one.kind, (one.value and ast.unparse(one.value)) or "", one.module, one.member)
                for one in bindings
            ]
            for name, bindings in scope.bindings.items()
        }

    assert told(found.module) == {
        "p": [("import", "", "os.path", "")],
        "sys": [("import", "", "sys", "")],
        "near": [("import", "", ".", "near")],
        "two": [("import", "", "..far.away", "one")],
        "three": [("import", "", "..far.away", "three")],
        "a": [("assignment", "1", "", ""), ("other", "", "", "")],
        "b": [("assignment", "1", "", "")],
        "c": [("assignment", "2", "", "")],
        "d": [("assignment", "3", "", "")],
        **{name: [("other", "", "", "")] for name in "efhiklr"},
        "g": [("with", "open(a)", "", "")],
        "j": [("loop", "range(3)", "", "")],
        "fetch": [("function", "", "", "")],
        "Kind": [("class", "", "", "")],
        "called": [("function", "", "", "")],
    }
    assert found.module.stars == ["stars", ".local"]
    (fetch,) = (node for node in found.nodes if isinstance(node, ast.AsyncFunctionDef))
    assert told(found.scope_of(fetch)) == {
        "m": [("loop", "a", "", "")],
        "n": [("with", "a", "", "")],
    }
    (called,) = (node for node in found.nodes if isinstance(node, ast.FunctionDef))
    assert told(found.scope_of(called)) == {
        "o": [("argument", "", "", "")],
        "q": [("argument", "", "", "")],
    }
    assert found.scope_of(called).is_class is False
    (kind,) = (node for node in found.nodes if isinstance(node, ast.ClassDef))
    assert found.scope_of(kind).is_class is True
    assert found.binds("m")
    assert found.binds("o")
    assert not found.binds("Base")
    assert [name.lineno for name in found.module.references["a"]] == [11, 18, 20]
    assert "o" not in found.module.references


def test_nodes_are_in_the_order_of_the_text_with_their_ancestors() -> None:
    found = scopes("a = f(b)\nclass C:\n    def g(self):\n        return c\n")
    names = [node.id for node in found.nodes if isinstance(node, ast.Name)]
    assert names == ["a", "f", "b", "c"]
    last = next(node for node in found.nodes if isinstance(node, ast.Name) and node.id == "c")
    kinds = [type(node).__name__ for node in found.ancestors(last)]
    assert kinds == ["Return", "FunctionDef", "ClassDef", "Module"]
    assert getattr(found.scope_of(last).node, "name", "") == "g"
    assert found.scope_of(ast.Name("x")) is found.module
    assert list(found.ancestors(found.tree)) == []


def _functions(table: symtable.SymbolTable) -> Iterator[symtable.SymbolTable]:
    for child in table.get_children():
        if child.get_type() == "function" and child.get_name() not in ("lambda", "listcomp"):
            yield child
        yield from _functions(child)


def test_function_bindings_agree_with_pythons_symtable() -> None:
    text = (
        SCRIPT + "\ndef outer(s):\n    t = s\n    def inner():\n        nonlocal t\n        t = u\n"
    )
    found = scopes(text.replace("from stars import *\nfrom .local import *\n", ""))
    tables = _functions(symtable.symtable(ast.unparse(found.tree), "x", "exec"))
    expected = {table.get_name(): {one.get_name() for one in table.get_symbols() if one.is_local()}
                for table in tables}  # fmt: skip
    ours = {
        node.name: set(found.scope_of(node).bindings)
        for node in found.nodes
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }
    assert ours == expected


def test_bindings_are_immutable_and_distinct_per_location() -> None:
    node = ast.Pass()
    assert Binding("other", node) != Binding("other", node)
    with pytest.raises(AttributeError):
        setattr(Binding("other", node), "kind", "loop")  # noqa: B010
    assert Scope(ast.Module([], []), None) != Scope(ast.Module([], []), None)
    assert hash(Scope(ast.Module([], []), None)) is not None
