"""Divisions of which Python 3's result would be refused."""

import ast

import pytest

from jumar.porting.python2.whole_numbers import divisions_of_integers
from jumar.porting.script.nodes import walk


def texts_of(text: str) -> list[str]:
    divisions = divisions_of_integers(walk(ast.parse(text)))
    return sorted(ast.unparse(division) for division in divisions)


@pytest.mark.parametrize(
    "text",
    [
        "range(n / 2)",
        "for i in xrange(1, n / 2): pass",
        "range(0, n, -(n / 2))",
        "x[: n / 2]",
        "x[n / 2 :]",
        "x[:: n / 2, 0]",
        "x[1 : 3 * (n / 2) + 1]",
        "def f(x, n):\n    k = n / 2\n    for i in range(k): pass",
        "k = n / 2\ny = x[: size * k]",
        "def f(flag):\n    if flag:\n        k = n / 2\n    else:\n        k = n / 2\n    range(k)",
    ],
)
def test_divisions_passed_to_range_or_a_slice_were_integer_divisions(text: str) -> None:
    assert set(texts_of(text)) == {"n / 2"}


@pytest.mark.parametrize(
    "text",
    [
        "range(n // 2)",
        "range(int(n / 2))",
        "x[n / 2]",
        "scale(n / 2)",
        "numbers.range(n / 2)",
        "range(n ** (n / 2))",
        "k = n / 2\nk = int(k)\nrange(k)",
        "k = n / 2\nk += 1\nrange(k)",
        "def f(k):\n    k = n / 2\n    range(k)",
        "k = n / 2\ndef f():\n    range(k)",
        "def f():\n    global k\n    k = n / 2\n    range(k)",
        "for k in all:\n    k = n / 2\n    range(k)",
        "k = m * (n / 2)\nrange(k)",
    ],
)
def test_other_divisions_are_not_known_to_be_integer_divisions(text: str) -> None:
    assert texts_of(text) == []


def test_both_operands_of_a_sum_are_checked_and_scopes_kept_separate() -> None:
    text = (
        "def f(a, b):\n    half = a / 2\n    third = b / 3\n    return x[half - 1 : third + half]\n"
        "class C:\n    half = c / 4\n    def g(self):\n        half = len(self) / 5.0\n"
        "        return range(half)\n"
    )
    assert texts_of(text) == ["a / 2", "b / 3", "len(self) / 5.0"]
