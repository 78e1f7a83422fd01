"""Edits of calls and statements keep everything else."""

import ast
from pathlib import Path

import pytest

from jumar.porting.rewriting.applying import applied, ordered
from jumar.porting.rewriting.changes import Replacement
from jumar.porting.rewriting.editing import (
    add_argument,
    delete,
    insert_after,
    insert_before,
    slots,
    wrap,
)
from jumar.porting.rewriting.editing import remove_arguments as remove
from jumar.porting.script.module import Module
from jumar.porting.script.project import Project


def parsed(text: str) -> Module:
    return Module(text, "script.py", Project(Path("nowhere")))


def call_of(module: Module) -> ast.Call:
    return next(node for node in module.scopes.nodes if isinstance(node, ast.Call))


def after(module: Module, *replacements: Replacement) -> str:
    return applied(module.text, ordered(replacements))


@pytest.mark.parametrize(
    ("before", "expected"),
    [
        ("f()", "f(k=1)"),
        ("f( )", "f(k=1 )"),
        ("f(a)", "f(a, k=1)"),
        ("f(a,)", "f(a, k=1,)"),
        ("f((a))", "f((a), k=1)"),
        ("f(a, (b), # why, (this\n  )", "f(a, (b), k=1, # why, (this\n  )"),
        ("f(\n    a,\n    b=2,\n)", "f(\n    a,\n    b=2,\n    k=1,\n)"),
        ("f(a,\r\n  b)", "f(a,\r\n  b,\r\n  k=1)"),
        ("f(*a)", "f(*a, k=1)"),
        ("f(a, **b)", "f(a, k=1, **b)"),
        ("(f)(a)", "(f)(a, k=1)"),
        ("f(')', \"#\")", "f(')', \"#\", k=1)"),
        ("f(lambda: (1, 2))", "f(lambda: (1, 2), k=1)"),
        ("f(a)(b)", "f(a)(b, k=1)"),
    ],
)
def test_an_argument_is_added_after_the_others(before: str, expected: str) -> None:
    module = parsed(before)
    result = after(module, add_argument(module, call_of(module), "k=1"))
    assert result == expected
    ast.parse(result)


@pytest.mark.parametrize(
    ("before", "gone", "expected"),
    [
        ("f(a, b, c)", "a", "f(b, c)"),
        ("f(a, b, c)", "b", "f(a, c)"),
        ("f(a, b, c)", "c", "f(a, b)"),
        ("f(a, b, c)", "bc", "f(a)"),
        ("f(a, b, c)", "abc", "f()"),
        ("f(a)", "a", "f()"),
        ("f(a,)", "a", "f()"),
        ("f(a, (b), c)", "b", "f(a, c)"),
        ("f(\n  a,  # first\n  b,\n  c)", "b", "f(\n  a,  # first\n  \n  c)"),
    ],
)
def test_arguments_go_with_their_comma(before: str, gone: str, expected: str) -> None:
    module = parsed(before)
    call = call_of(module)
    names = {node for node in call.args if isinstance(node, ast.Name) and node.id in gone}
    result = after(module, *remove(module, call, set(names)))
    assert result == expected
    ast.parse(result)


@pytest.mark.parametrize(
    ("before", "gone", "expected"),
    [
        ("f(a, b=2)", "b", "f(a, k=1, l=2)"),
        ("f(b=2)", "b", "f(k=1, l=2)"),
        ("f(b=2,)", "b", "f(k=1, l=2)"),
        ("f(b=2, a=1)", "b", "f(a=1, k=1, l=2)"),
        ("f(\n    a=1,\n    b=2,\n)", "b", "f(\n    a=1,\n    k=1,\n    l=2,\n)"),
        ("f(b=2, **c)", "b", "f(k=1, l=2, **c)"),
    ],
)
def test_arguments_take_the_place_of_others(before: str, gone: str, expected: str) -> None:
    module = parsed(before)
    call = call_of(module)
    without = frozenset(word for word in call.keywords if word.arg == gone)
    added = add_argument(module, call, "k=1", "l=2", without=without)
    assert after(module, *remove(module, call, set(without)), added) == expected


@pytest.mark.parametrize("text", ["f(a, g)", "f(a, k=g)", "f((g))"])
def test_an_argument_is_added_outside_of_what_wraps_the_last(text: str) -> None:
    module = parsed(text)
    call = call_of(module)
    last = [*call.args, *[word.value for word in call.keywords]][-1]
    added = add_argument(module, call, "z=1")
    for order in (
        [added, *wrap(module, last, "w(", ")")],
        [*wrap(module, last, "w(", ")"), added],
    ):
        written = after(module, *order)
        outer = ast.parse(written).body[0]
        assert isinstance(outer, ast.Expr)
        assert isinstance(outer.value, ast.Call)
        assert outer.value.keywords[-1].arg == "z"


def test_lines_after_a_last_statement_come_after_what_wraps_it() -> None:
    module = parsed("f(a)")
    statement = module.tree.body[0]
    wrapped = wrap(module, call_of(module), "w(", ")")
    assert after(module, insert_after(module, statement, "x"), *wrapped) == "w(f(a))\nx"


def test_slots_span_parentheses_and_keywords() -> None:
    module = parsed("f( (a) , k = (b),\n **c )")
    found = slots(module, call_of(module))
    assert [module.text[slot.start : slot.end] for slot in found] == ["(a)", "k = (b)", "**c"]


def test_wrapping_what_is_wrapped_nests() -> None:
    module = parsed("f(g(x))")
    outer = call_of(module)
    inner = outer.args[0]
    result = after(module, *wrap(module, inner, "b(", ")"), *wrap(module, outer, "a(", ")"))
    assert result == "a(f(b(g(x))))"


@pytest.mark.parametrize(
    ("before", "expected"),
    [
        ("a = 1\nb = 2\nc = 3\n", "a = 1\nc = 3\n"),
        ("a = 1\nb = 2  # why\nc = 3\n", "a = 1\nc = 3\n"),
        ("if a:\n    b = 2\n", "if a:\n    pass\n"),
        ("a = 1; b = 2; c = 3\n", "a = 1; pass; c = 3\n"),
        ("if a: b = 2\n", "if a: pass\n"),
        ("a = 1\r\nb = 2\r\n", "a = 1\r\n"),
        ("a = 1\nb = (2,\n  3)\n", "a = 1\n"),
        ("a = 1\nb = 2", "a = 1\n"),
    ],
)
def test_a_statement_goes_with_its_line(before: str, expected: str) -> None:
    module = parsed(before)
    statement = next(
        node
        for node in module.scopes.nodes
        if isinstance(node, ast.Assign) and module.source(node.targets[0]) == "b"
    )
    result = after(module, delete(module, statement))
    assert result == expected
    ast.parse(result)


@pytest.mark.parametrize(
    ("before", "expected"),
    [
        ("if a:\n\tb = 2\n", "if a:\n\tx\n\tb = 2\n\ty\n"),
        ("b = 2", "x\nb = 2\ny"),
        ("b = 2\r\n", "x\r\nb = 2\r\ny\r\n"),
        ("if a: b = 2\n", "if a: x; b = 2; y\n"),
    ],
)
def test_lines_are_inserted_with_indentation_and_line_ends(before: str, expected: str) -> None:
    module = parsed(before)
    statement = next(node for node in module.scopes.nodes if isinstance(node, ast.Assign))
    result = after(
        module, insert_before(module, statement, "x"), insert_after(module, statement, "y")
    )
    assert result == expected
    ast.parse(result)
