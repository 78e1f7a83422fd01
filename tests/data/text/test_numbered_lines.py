"""Text files line by line, and what a run tolerates of them."""

from pathlib import Path

import pytest

from jumar.data.text.numbered_lines import (
    Skipping,
    decoded_file,
    excerpt,
    line_of,
    numbered_lines,
)
from jumar.ground.errors import UserError


def test_lines_are_numbered_with_any_line_ending(tmp_path: Path) -> None:
    path = tmp_path / "text"
    path.write_bytes(b"\xef\xbb\xbfone\r\n\ntwo \x85three")
    with pytest.raises(UserError, match="line 3: is not UTF-8 text"):
        list(numbered_lines(path))
    path.write_bytes("\ufeffone\r\n\ntwo \x85three".encode())
    assert list(numbered_lines(path)) == [(1, "one"), (2, ""), (3, "two \x85three")]


@pytest.mark.parametrize("content", [b"", b" \n\n"])
def test_empty_file_is_an_error(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "text"
    path.write_bytes(content)
    with pytest.raises(UserError, match="the file is empty"):
        list(numbered_lines(path))
    with pytest.raises(UserError, match="no such file"):
        list(numbered_lines(tmp_path / "none"))


def test_allowed_number_of_samples_is_skipped() -> None:
    lines: list[str] = []
    skipping = Skipping(2, lines.append)
    for number in (1, 2):
        skipping.fault(UserError(f"bad {number}", where=f"line {number}"))
    assert lines == ["skipped: line 1: bad 1", "skipped: line 2: bad 2"]
    with pytest.raises(UserError, match=r"line 3: bad 3 \(after skipping 2 samples\)") as raised:
        skipping.fault(UserError("bad 3", where="line 3", todo="Mend it."))
    assert raised.value.todo == "Mend it. To skip N such samples: data.skip_corrupt=N"
    with pytest.raises(UserError) as raised:
        Skipping(0, lines.append).fault(UserError("bad", where="line 1"))
    assert raised.value.what == "bad"


def test_excerpt_is_short_and_escaped() -> None:
    assert excerpt("a\x1bb") == "a\\x1bb"
    assert excerpt("x" * 50) == "x" * 39 + "…"


def test_non_utf8_bytes_are_reported_with_line_reason_and_remedy(tmp_path: Path) -> None:
    path = tmp_path / "text"
    path.write_bytes(b"a\nb\xff\n")
    with pytest.raises(UserError) as error:
        decoded_file(path)
    assert str(error.value) == (
        f"{path}, line 2: is not UTF-8 text: invalid start byte\n"
        f"  Convert it, from GBK for instance: iconv -f GB18030 -t UTF-8 {path} > converted.txt"
    )
    path.write_bytes(b"\xff\n")
    with pytest.raises(UserError) as error:
        decoded_file(path)
    assert error.value.where == f"{path}, line 1"
    path.write_bytes(b" \r\n")
    with pytest.raises(UserError) as error:
        decoded_file(path)
    assert str(error.value) == f"{path}: the file is empty"
    path.write_bytes("\ufeffa\r\n\r\nb".encode())
    assert decoded_file(path) == "a\r\n\r\nb"


def test_excerpt_has_at_most_forty_characters_by_default() -> None:
    assert excerpt("x" * 40) == "x" * 40
    assert excerpt("x" * 41) == "x" * 39 + "…"
    assert [excerpt("abcd", longest) for longest in (3, 4)] == ["ab…", "abcd"]
    assert line_of(Path("a"), 7) == "a, line 7"


def test_caller_names_the_setting_that_allows_skipping() -> None:
    lines: list[str] = []
    skipping = Skipping(1, lines.append, "--skip N")
    skipping.fault(UserError("one", where="a"))
    with pytest.raises(UserError) as error:
        skipping.fault(UserError("two", where="b"))
    assert str(error.value) == (
        "b: two (after skipping 1 sample)\n  To skip N such samples: --skip N"
    )
    assert skipping.count == 2
