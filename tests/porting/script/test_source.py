"""A script's bytes as text and back, and where its lines are."""

import ast

import pytest

from jumar.porting.edits import Place
from jumar.porting.script.source import Lines, SourceText, Unreadable, decode

BOM = b"\xef\xbb\xbf"


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"x = 1\n", SourceText("x = 1\n")),
        (b"", SourceText("")),
        (BOM + b"x\n", SourceText("x\n", "utf-8", bom=True)),
        (b"# coding: latin-1\n\xe9\n", SourceText("# coding: latin-1\né\n", "iso8859-1")),
        (b"#!/usr/bin/python\n# -*- coding=gbk -*-\n\xd6\xd0", None),
        (b"\f\n# vim: fileencoding=gbk\r\xd6\xd0", None),
    ],
)
def test_script_is_decoded_like_python_and_encoded_back(
    content: bytes, expected: SourceText | None
) -> None:
    found = decode(content)
    if expected is None:
        assert (found.encoding, found.text[-1], found.bom) == ("gbk", "中", False)
    else:
        assert found == expected
    assert found.encoded(found.text) == content


@pytest.mark.parametrize(
    ("content", "en", "zh"),
    [
        (b"x\0", "contains NUL bytes: not a script", "含有 NUL 字节，不是脚本"),
        # The third line, and the line after code, are too late for a coding cookie.
        (b"\n\n# coding: latin-1\n\xe9", "cannot be read as utf-8: ", "无法按 utf-8 编码读取："),
        (b"x\n# coding: latin-1\n\xe9", "cannot be read as utf-8: ", "无法按 utf-8 编码读取："),
        (b"# coding: nothing\n", "cannot be read as nothing: ", "无法按 nothing 编码读取："),
        (b"# coding: utf-7\n+AGE-", "cannot be written back as utf-7", "无法按 utf-7 编码写回"),
        (b"# coding: hex\n", "cannot be read as hex: ", "无法按 hex 编码读取："),
    ],
)
def test_non_script_is_refused_with_the_reason(content: bytes, en: str, zh: str) -> None:
    with pytest.raises(Unreadable) as caught:
        decode(content)
    assert caught.value.note.en.startswith(en)
    assert caught.value.note.zh.startswith(zh)
    assert str(caught.value) == caught.value.note.en


def test_encoding_cookie_is_searched_only_in_the_first_bytes() -> None:
    cookie = b"# coding: latin-1"
    assert decode(b" " * (4096 - len(cookie)) + cookie + b"\n\xe9").encoding == "iso8859-1"
    with pytest.raises(Unreadable):
        decode(b"#" * 4096 + b"\n" + cookie + b"\n\xe9")


TEXT = "aé\r\nb中c\rd\n\f  e"
STARTS = {"a": 1, "b": 2, "d": 3, "\f": 4}


def test_lines_end_where_pythons_parser_ends_them() -> None:
    lines = Lines(TEXT)
    assert lines.starts == [0, 4, 8, 10]
    assert (lines.newline, lines.ascii) == ("\r\n", False)
    assert [lines.place(TEXT.index(letter)) for letter in "aébcde"] == [
        *(Place(line=1, column=1), Place(line=1, column=2), Place(line=2, column=1)),
        *(Place(line=2, column=3), Place(line=3, column=1), Place(line=4, column=4)),
    ]
    assert lines.place(len(TEXT)) == Place(line=4, column=5)
    # Columns of the parser are bytes: the letters before `c` have four.
    assert [lines.offset(1, 0), lines.offset(1, 3), lines.offset(2, 4), lines.offset(3, 1)] == [
        *(0, 2, 6, 9),
    ]
    assert lines.offset(4, 3) == 13
    assert [lines.line_start(offset) for offset in (0, 3, 4, 7, 8, 9, 10, 14)] == [
        *(0, 0, 4, 4, 8, 8, 10, 10),
    ]
    assert [lines.line_end(offset) for offset in (0, 3, 4, 7, 8, 9, 10, 14)] == [
        *(4, 4, 8, 8, 10, 10, 14, 14),
    ]
    assert [lines.indent(offset) for offset in (0, 9, 13)] == ["", "", "\f  "]
    plain = Lines("ab\ncd")
    assert (plain.newline, plain.ascii, plain.offset(2, 1)) == ("\n", True, 4)
    assert Lines("a\rb").newline == "\r"
    assert Lines("a").newline == "\n"
    late = Lines("a\né中b")
    assert (late.offset(2, 5), late.offset(1, 1)) == (4, 1)


@pytest.mark.parametrize(
    ("text", "indentation"),
    [
        ("if a:\n  b\nif c:\n  d\nif e:\n    f\n", "  "),
        ("def f():\n\tx\n", "\t"),
        ("class A:  # why\r\n   x\r\n", "   "),
        ("if a:\n        b\n", "        "),
        ("if a:\n     b\n", "    "),
        ("if a:\n b\n", "    "),
        ("x = 1\n", "    "),
        ('"""\nArgs:\n  x\n"""\n', "    "),
        ("if a:\n\t\tb\n", "\t\t"),
    ],
)
def test_indentation_unit_is_that_of_most_blocks(text: str, indentation: str) -> None:
    assert Lines(text).indentation == indentation


def test_indentation_counts_only_the_first_blocks() -> None:
    first, later = "if a:\n  b\n" * 251, "if a:\n    b\n" * 1000
    assert Lines(first + later).indentation == "  "
    assert Lines(first.replace("  b", "    b", 2) + later[: 249 * 12]).indentation == "    "
    ast.parse(first)


def test_script_text_is_immutable() -> None:
    with pytest.raises(AttributeError):
        setattr(SourceText("x"), "text", "y")  # noqa: B010
