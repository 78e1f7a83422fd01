"""What the form of an expression reveals."""

import ast

import pytest

from jumar.porting.script.expressions import (
    argument_values,
    imported_names,
    is_none,
    is_omitted,
    last_name,
    method_name,
    names_within,
)


def _expression(text: str) -> ast.expr:
    return ast.parse(text, mode="eval").body


@pytest.mark.parametrize(("text", "none"), [("None", True), ("0", False), ("''", False)])
def test_only_the_constant_none_is_none(text: str, none: bool) -> None:
    assert is_none(_expression(text)) is none


@pytest.mark.parametrize(("text", "omitted"), [("None", True), ("0", False), ("config", False)])
def test_an_argument_is_omitted_if_it_is_none_or_missing(text: str, omitted: bool) -> None:
    assert is_omitted(_expression(text)) is omitted
    assert is_omitted(None)
    assert not is_none(None)


@pytest.mark.parametrize(
    ("text", "name"), [("a.b.c", "c"), ("a", "a"), ("a.b()", ""), ("'a'", ""), ("a[b]", "")]
)
def test_the_last_name_is_that_of_a_name_or_an_attribute(text: str, name: str) -> None:
    assert last_name(_expression(text)) == name


def test_names_within_are_those_of_variables_and_attributes() -> None:
    assert sorted(names_within(_expression("a.b(c['d'], e=1)"))) == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("text", "name"), [("a.b(c)", "b"), ("a().b()", "b"), ("b(c)", ""), ("a.b", ""), ("a[b]()", "")]
)
def test_a_method_name_is_that_of_a_call_of_an_attribute(text: str, name: str) -> None:
    assert method_name(_expression(text)) == name
    assert method_name(None) == ""


def test_argument_values_are_those_of_positions_and_keywords() -> None:
    call = _expression("f(a, *b, c=1, **d)")
    assert isinstance(call, ast.Call)
    assert [ast.unparse(value) for value in argument_values(call)] == ["a", "*b", "1", "d"]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("import a.b, c as d", ["a.b", "c"]),
        ("from a import b, c as d", ["a.b", "a.c"]),
        ("from .a import b", []),
    ],
)
def test_imported_names_are_dotted_and_not_of_the_own_package(text: str, names: list[str]) -> None:
    statement = ast.parse(text).body[0]
    assert isinstance(statement, ast.Import | ast.ImportFrom)
    assert imported_names(statement) == names
