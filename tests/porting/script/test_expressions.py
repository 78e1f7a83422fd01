"""What the form of an expression reveals."""

import ast

import pytest

from jumar.porting.script.expressions import is_none, is_omitted, last_name, names_within


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
