import ast
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jumar.porting.report.showing import code_and_prose, lines_of, one_line, visible

TURNING = {"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"}


@given(text=st.text())
def test_shown_code_has_no_hidden_or_direction_changing_characters(text: str) -> None:
    shown = visible(text)
    kinds = {unicodedata.category(letter) for letter in shown if letter not in "\n\t"}
    assert not kinds & {"Cc", "Cs", "Zl", "Zp"}
    assert not {unicodedata.bidirectional(letter) for letter in shown} & TURNING


def test_bidirectional_control_characters_are_made_visible() -> None:
    assert visible("if user != 'admin\u202e \u2066'") == "if user != 'admin<U+202E> <U+2066>'"
    assert visible("\x1b[2Jprint()\x7f") == "␛[2Jprint()␡"


def test_ordinary_text_in_any_language_is_unchanged() -> None:
    text = "def f():\n\treturn '完成 é ж 😀'\n"
    assert visible(text) == text


def test_name_stays_on_one_line() -> None:
    assert one_line("a\r\nb\nc\td\re") == "a⏎b⏎c d␍e"


@given(text=st.text(alphabet="a\r\n\x0c\u2028", max_size=20))
def test_joined_lines_equal_the_text(text: str) -> None:
    assert "".join(lines_of(text)) == text


def test_lines_are_counted_like_python() -> None:
    source = "a = 1\r\nb = '\u2028'\rc = 3\x0c\nd = 4\n"
    last = ast.parse(source).body[-1]
    assert lines_of(source)[last.lineno - 1] == "d = 4\n"


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("", []),
        ("plain", [(False, "plain")]),
        ("use `tf.data` here", [(False, "use "), (True, "tf.data"), (False, " here")]),
        ("`a``b`", [(True, "a"), (True, "b")]),
        ("a ` b", [(False, "a ` b")]),
        ("`a` and ` b", [(True, "a"), (False, " and ` b")]),
    ],
)
def test_code_is_wrapped_in_backticks(text: str, parts: list[tuple[bool, str]]) -> None:
    assert list(code_and_prose(text)) == parts
