"""The first bytes of a file decide what it is."""

import gzip
from pathlib import Path

import pytest

from jumar.profiling.reading.files.opening import (
    HEAD,
    as_utf8,
    encoding_of,
    head_of,
    header_of,
    opened,
    text_of,
)

TEXT = "名称,开始时间,持续时间 and more letters to have some\r\n1,2,3\r\n"


@pytest.mark.parametrize(
    ("content", "encoding"),
    [
        (b"\xef\xbb\xbfa", "utf-8-sig"),
        (TEXT.encode("utf-16"), "utf-16"),
        ("a".encode("utf-32"), "utf-32"),
        (b"\xfe\xff\0a", "utf-16"),
        (b"\0\0\xfe\xff\0\0\0a", "utf-32"),
        (("a" * 17).encode("utf-16-le"), "utf-16-le"),
        (("a" * 16).encode("utf-16-le"), "utf-8"),
        (("a" * 17).encode("utf-16-be"), "utf-16-be"),
        (("a" * 16).encode("utf-16-be"), "utf-8"),
        (TEXT.encode(), "utf-8"),
        (TEXT.encode()[:2], "utf-8"),
        (TEXT.encode("gb18030"), "gb18030"),
        (b"\xff\xff\xff", "utf-8"),
        (b"", "utf-8"),
        # Only the first 64 bytes decide.
        (b"a" * 64 + b"b\0" * 40, "utf-8"),
        (b"aa" * 15 + b"a\0" * 17, "utf-16-le"),
    ],
)
def test_encoding_follows_from_the_bom_zero_bytes_or_characters(
    content: bytes, encoding: str
) -> None:
    assert encoding_of(content) == encoding


def test_start_of_a_file_is_decompressed_up_to_a_limit(tmp_path: Path) -> None:
    path = tmp_path / "x"
    content = bytes(range(256)) * 1025
    path.write_bytes(content)
    assert HEAD == 1024 * 256
    assert head_of(path) == content[:HEAD]
    packed = gzip.compress(content)
    path.write_bytes(packed)
    assert head_of(path) == content[:HEAD]
    path.write_bytes(packed[:200])
    assert content.startswith(head_of(path))
    path.write_bytes(b"\x1f\x8bno gzip")
    assert head_of(path) == b""
    for bytes_ in (content, packed):
        path.write_bytes(bytes_)
        with opened(path) as file:
            assert file.read() == content


def test_text_and_header_come_from_the_first_line() -> None:
    assert text_of(TEXT.encode("utf-8-sig")) == TEXT
    assert text_of(b"a\xffb" + b"\xff" * 3) == "a�b���"
    assert header_of(TEXT)[:2] == ["名称", "开始时间"]
    assert header_of('"a, b",c\r\n1') == ["a, b", "c"]
    assert header_of("") == []
    assert header_of("a" * (HEAD // 8)) == ["a" * (HEAD // 8)]
    assert header_of("a" * (HEAD // 8 + 1)) == []
    assert len(header_of("a" * (HEAD // 8 + 1) + "\n")[0]) == HEAD // 8 + 1
    assert header_of("a\rb\n") == []


def test_utf8_file_is_used_directly_and_others_as_a_temporary_copy(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_bytes(TEXT.encode())
    with as_utf8(path) as (same, problem):
        assert (same, problem) == (path, "")
    for content in (TEXT.encode("gb18030"), gzip.compress(TEXT.encode()), TEXT.encode("utf-16")):
        path.write_bytes(content)
        with as_utf8(path) as (copy, problem):
            assert copy != path
            assert (copy.read_bytes().decode(), problem) == (TEXT, "")
        assert not copy.exists()
    # A character cut at the end is replaced, and a truncated packed file is read up to the cut.
    path.write_bytes(TEXT.encode("utf-16")[:5])
    with as_utf8(path) as (copy, _):
        assert copy.read_bytes().decode() == "名�"
    long = "".join(f"{number},{number * 7919 % 1009}\n" for number in range(9000))
    path.write_bytes(gzip.compress(long.encode())[:-2000])
    with as_utf8(path) as (copy, problem):
        found = copy.read_bytes().decode()
        assert long.startswith(found)
        assert len(found) > 1000
        assert problem == (
            "cannot be decompressed to the end: "
            "Compressed file ended before the end-of-stream marker was reached"
        )
