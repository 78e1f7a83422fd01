"""Reading a script and writing it back."""

import ast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jumar.porting.edits import Place
from jumar.porting.script.source import Lines, Unreadable, decode


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"x = 1",
        b"x = 1\r\ny = 2\r\n",
        b"x = 1\ry = 2\r",
        b"\xef\xbb\xbfx = 1\n",
        b"#!/usr/bin/python\n# -*- coding: latin-1 -*-\nname = '\xe9'\n",
        b"# vim: set fileencoding=gbk :\nname = '\xd6\xd0'\n",
        b"x = 1\x0c\ny = 2\n",
        "name = '中文'\n".encode(),
    ],
)
def test_what_is_read_is_written_back_byte_for_byte(content: bytes) -> None:
    source = decode(content)
    assert source.encoded(source.text) == content


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"x = 1\0", "NUL"),
        (b"name = '\xe9'\n", "utf-8"),
        (b"# coding: nonsense\nx = 1\n", "nonsense"),
        (b"# coding: rot13\nk = 1\n", "rot-13"),
        (b"\xff\xfex\x00", "NUL"),
    ],
)
def test_what_is_no_script_is_unreadable_with_the_reason(content: bytes, reason: str) -> None:
    with pytest.raises(Unreadable) as raised:
        decode(content)
    assert reason in raised.value.note.en
    assert raised.value.note.zh


def test_a_cookie_below_the_second_line_is_a_comment() -> None:
    assert decode(b"x = 1\n\n# coding: latin-1\n").encoding == "utf-8"
    assert decode(b"import os\n# coding: latin-1\n").encoding == "utf-8"


@given(
    st.lists(
        st.sampled_from(
            ["a = 'x'", "b = '中文é' + c", "\x0cif d:", "    e = '😀'; f = 2", "#\x0c", ""]
        ),
        max_size=12,
    ),
    st.sampled_from(["\n", "\r\n", "\r"]),
)
def test_offsets_are_those_of_pythons_parser(lines: list[str], newline: str) -> None:
    text = newline.join(
        line + (newline + "    pass" if line.endswith(":") else "")
        for line in lines
        if not line.startswith("    ")
    )
    found = Lines(text)
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Name):
            start = found.offset(node.lineno, node.col_offset)
            assert text[start : start + len(node.id)] == node.id
            assert found.offset(node.end_lineno or 0, node.end_col_offset or 0) == start + len(
                node.id
            )
            assert found.place(start).line == node.lineno


def test_places_count_characters_from_one() -> None:
    lines = Lines("ab\r\n中文x\n")
    assert lines.place(0) == Place(line=1, column=1)
    assert lines.place(6) == Place(line=2, column=3)
    assert lines.newline == "\r\n"
    assert lines.line_end(4) == 8
    assert Lines("").line_end(0) == 0


@pytest.mark.parametrize(
    ("text", "indentation"),
    [
        ("def f():\n  return 1\n", "  "),
        ("if a:  # why\r\n\tb\r\n", "\t"),
        ("x = {1:\n          2}\n", "    "),
        ("x = 1\n", "    "),
        ('"""Tool.\n\nArgs:\n        x: y\n"""\nif a:\n  b\n', "  "),
        ("class A:\n\n  x: int\nif a:\n    b\n", "    "),
    ],
)
def test_the_indentation_is_that_of_the_first_block(text: str, indentation: str) -> None:
    assert Lines(text).indentation == indentation
