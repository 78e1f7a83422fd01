"""Edits of calls and statements keep everything else."""

import ast
from pathlib import Path

import pytest

from jumar.porting.rewriting.applying import applied, ordered
from jumar.porting.rewriting.changes import Replacement
from jumar.porting.rewriting.editing import (
    add_argument,
    argument,
    delete,
    insert_after,
    insert_before,
    is_open,
    keyword,
    literal,
    open_parenthesis,
    replace,
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
def test_argument_is_added_after_the_others(before: str, expected: str) -> None:
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
def test_arguments_are_removed_with_their_comma(before: str, gone: str, expected: str) -> None:
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
def test_arguments_replace_others(before: str, gone: str, expected: str) -> None:
    module = parsed(before)
    call = call_of(module)
    without = frozenset(word for word in call.keywords if word.arg == gone)
    added = add_argument(module, call, "k=1", "l=2", without=without)
    assert after(module, *remove(module, call, set(without)), added) == expected


@pytest.mark.parametrize("text", ["f(a, g)", "f(a, k=g)", "f((g))"])
def test_argument_is_added_outside_the_wrapper_of_the_last(text: str) -> None:
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


def test_lines_after_a_last_statement_follow_its_wrapper() -> None:
    module = parsed("f(a)")
    statement = module.tree.body[0]
    wrapped = wrap(module, call_of(module), "w(", ")")
    assert after(module, insert_after(module, statement, "x"), *wrapped) == "w(f(a))\nx"


def test_slots_span_parentheses_and_keywords() -> None:
    module = parsed("f( (a) , k = (b),\n **c )")
    found = slots(module, call_of(module))
    assert [module.text[slot.start : slot.end] for slot in found] == ["(a)", "k = (b)", "**c"]


def test_wrapping_nests() -> None:
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
def test_statement_is_removed_with_its_line(before: str, expected: str) -> None:
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
def test_inserted_lines_get_indentation_and_line_endings(before: str, expected: str) -> None:
    module = parsed(before)
    statement = next(node for node in module.scopes.nodes if isinstance(node, ast.Assign))
    result = after(
        module, insert_before(module, statement, "x"), insert_after(module, statement, "y")
    )
    assert result == expected
    ast.parse(result)


@pytest.mark.parametrize(
    ("before", "expected"),
    [
        ("a\n\nb = 2\n\nc\n", "a\n\nc\n"),
        ("a\n\nb = 2\n\n\nc\n", "a\n\n\nc\n"),
        ("a\n\nb = 2\nc\n", "a\n\nc\n"),
        ("a\nb = 2\n\nc\n", "a\n\nc\n"),
        ("b = 2\n\nc\n", "\nc\n"),
        ("\nb = 2\n  ", "\n  "),
        ("a\n\nb = 2\n", "a\n\n"),
        ("for a in x:\n    c\nelse:\n    b = 2\n", "for a in x:\n    c\nelse:\n    pass\n"),
        ("try:\n    c\nfinally:\n    b = 2\n", "try:\n    c\nfinally:\n    pass\n"),
        ("try:\n    c\nexcept E:\n    b = 2\n", "try:\n    c\nexcept E:\n    pass\n"),
        ("if a:\n    c\n    b = 2\n", "if a:\n    c\n"),
        ("b = 2; c\n", "pass; c\n"),
    ],
)
def test_statement_is_removed_with_a_surplus_blank_line(before: str, expected: str) -> None:
    module = parsed(before)
    statement = next(node for node in module.scopes.nodes if isinstance(node, ast.Assign))
    assert after(module, delete(module, statement)) == expected


def test_function_or_class_is_removed_with_its_decorators() -> None:
    module = parsed("a\n@one\n@two(3)\ndef f():\n    1\nb\n@one\nclass C:\n    1\n")
    changes = [
        delete(module, node)
        for node in module.tree.body
        if isinstance(node, ast.FunctionDef | ast.ClassDef)
    ]
    assert after(module, *changes) == "a\nb\n"
    alone = parsed("if a:\n    @one\n    def f(): 1\n")
    function = next(node for node in alone.scopes.nodes if isinstance(node, ast.FunctionDef))
    assert after(alone, delete(alone, function)) == "if a:\n    pass\n"


def test_inserted_lines_may_be_several_and_blank() -> None:
    module = parsed("if a:\r\n    b = 2\r\n")
    statement = next(node for node in module.scopes.nodes if isinstance(node, ast.Assign))
    changes = insert_before(module, statement, "x\n\ny"), insert_after(module, statement, "z\n\nw")
    assert after(module, *changes) == (
        "if a:\r\n    x\r\n\r\n    y\r\n    b = 2\r\n    z\r\n\r\n    w\r\n"
    )
    line = parsed("if a: b = 2")
    statement = next(node for node in line.scopes.nodes if isinstance(node, ast.Assign))
    assert after(line, insert_before(line, statement, "x\ny")) == "if a: x; y; b = 2"
    assert after(line, insert_after(line, statement, "x\ny")) == "if a: b = 2; x; y"
    last = parsed("a\nb = 2  # end")
    statement = next(node for node in last.scopes.nodes if isinstance(node, ast.Assign))
    change = insert_after(last, statement, "x\ny")
    assert after(last, change) == "a\nb = 2  # end\nx\ny"
    # It is outside of whatever wraps the statement, whose length it exceeds.
    assert (change.side, change.width) == ("close", len("b = 2  # end") + 1)


def test_slots_have_their_comma_and_may_hold_a_lone_generator() -> None:
    module = parsed("f (  # one\n  (a) , *b,\n  c = 1, )")
    text = module.text
    found = slots(module, call_of(module))
    assert [(text[slot.start : slot.end], slot.comma) for slot in found] == [
        ("(a)", text.index(",")),
        ("*b", text.index(",", text.index(",") + 1)),
        ("c = 1", text.rindex(",")),
    ]
    assert open_parenthesis(module, call_of(module)) == 2
    for source, expected in (("f(x for x in y)", "x for x in y"), ("f((x for x in y))", None)):
        module = parsed(source)
        (slot,) = slots(module, call_of(module))
        assert module.text[slot.start : slot.end] == (expected or "(x for x in y)")
        assert slot.comma == -1
    none = parsed("f(a)")
    assert [slot.comma for slot in slots(none, call_of(none))] == [-1]


@pytest.mark.parametrize(
    ("before", "gone", "expected"),
    [
        ("f(a , b)", "a", "f(b)"),
        ("f(a,\tb)", "a", "f(b)"),
        ("f(a, b, c, d)", "bd", "f(a, c)"),
        ("f(a, b, c, d)", "cd", "f(a, b)"),
        ("f(a, b,)", "b", "f(a,)"),
    ],
)
def test_arguments_at_several_positions_are_removed_at_once(
    before: str, gone: str, expected: str
) -> None:
    module = parsed(before)
    call = call_of(module)
    names = {node for node in call.args if isinstance(node, ast.Name) and node.id in gone}
    assert after(module, *remove(module, call, set(names))) == expected


def test_argument_is_found_by_keyword_or_position() -> None:
    module = parsed("f(a, b, k=c, **d)")
    call = call_of(module)

    def told(name: str, position: int = -1) -> str | None:
        found = argument(call, name, position)
        return None if found is None else module.source(found)

    assert [told("k"), told("x", 0), told("x", 1), told("x", 2), told("x"), told("k", 0)] == [
        *("c", "a", "b", None, None, "c"),
    ]
    word = keyword(call, "k")
    assert word is not None
    assert module.source(word) == "k=c"
    assert keyword(call, "d") is None
    assert is_open(call)
    assert is_open(call_of(parsed("f(*a)")))
    assert not is_open(call_of(parsed("f(a, k=1)")))
    # Behind `*a` nobody knows which place an argument has.
    assert argument(call_of(parsed("f(a, *b)")), "x", 0) is None


def test_literals_are_evaluated() -> None:
    def value(text: str) -> object:
        return literal(ast.parse(text, mode="eval").body)

    assert [value(text) for text in ("3", "-1.5", "('a', 2)", "None", "a", "f(1)", "[1] + 2")] == [
        *(3, -1.5, ("a", 2), None, None, None, None),
    ]
    assert literal(None) is None


def test_expression_is_replaced_as_a_whole() -> None:
    module = parsed("x = f(a)\n")
    assert replace(module, call_of(module), "g") == Replacement(start=4, end=8, text="g")
    opening, closing = wrap(module, call_of(module), "(", ")")
    assert opening == Replacement(start=4, end=4, text="(", side="open", width=4)
    assert closing == Replacement(start=8, end=8, text=")", side="close", width=4)


@pytest.mark.parametrize(
    ("before", "expected"),
    [
        ("f(\n  a,\n  **b\n)", "f(\n  a,\n  k=1, l=2, **b\n)"),
        ("f(\n  a\n)", "f(\n  a,\n  k=1,\n  l=2\n)"),
        ("f(a,\n  b)", "f(a,\n  b,\n  k=1,\n  l=2)"),
        ("x = [\n  f(a)]", "x = [\n  f(a, k=1, l=2)]"),
        ("f()", "f(k=1, l=2)"),
        ("f((x for x in y))", "f((x for x in y), k=1, l=2)"),
    ],
)
def test_several_arguments_are_added_at_once(before: str, expected: str) -> None:
    module = parsed(before)
    assert after(module, add_argument(module, call_of(module), "k=1", "l=2")) == expected
