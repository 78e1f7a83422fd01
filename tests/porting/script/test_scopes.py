"""Where names are bound."""

import ast

import pytest

from jumar.porting.script.scopes import Scopes


def home(text: str) -> str:
    """The kind of scope in which the last `wanted` of a script that is read was bound."""
    tree = ast.parse(text)
    scopes = Scopes(tree)
    reads = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Name) and node.id == "wanted" and isinstance(node.ctx, ast.Load)
    ]
    scope, bindings = scopes.lookup(max(reads, key=lambda node: node.lineno))
    assert bindings, "it is not bound"
    assert scope is not None
    return type(scope.node).__name__


@pytest.mark.parametrize(
    ("text", "scope"),
    [
        ("[y for x in z if (wanted := x)]\nwanted", "Module"),
        ("def f():\n    [[wanted := x for x in z] for z in a]\n    return wanted", "FunctionDef"),
        ("{(wanted := x): 1 for x in z}\nprint(wanted)", "Module"),
        ("wanted = 1\n[wanted for wanted in z]\nwanted", "Module"),
        ("if (wanted := 1):\n    wanted", "Module"),
    ],
)
def test_an_assignment_expression_binds_in_the_function_around(text: str, scope: str) -> None:
    assert home(text) == scope


def test_a_variable_of_a_comprehension_is_not_known_outside() -> None:
    tree = ast.parse("[x for x in z]\nx")
    outside = tree.body[1].value  # type: ignore[attr-defined]
    assert Scopes(tree).lookup(outside)[1] == []
