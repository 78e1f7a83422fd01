"""Which files are texts, where they are cut, and what their documents are."""

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jumar.data.text import documents
from jumar.data.text.documents import (
    Document,
    Span,
    chunk_documents,
    chunks_of,
    read_documents,
    text_files,
)
from jumar.data.text.tokenizer import Tokenizer
from jumar.data.text.vocabulary import Vocabulary
from jumar.ground.errors import UserError
from tests.data.text.vocabularies import PIECES

TOKENIZER = Tokenizer(Vocabulary(PIECES))


def spelt(several: list[Document]) -> list[list[str]]:
    return [
        ["".join(PIECES[piece] for piece in sentence) for sentence in document]
        for document in several
        if document
    ]


def test_files_folders_and_globs_are_read_in_order(tmp_path: Path) -> None:
    for name in ("b.txt", "a.txt", "deep/c.txt", ".hidden/d.txt", "e.md"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("a\n")
    names = [path.name for path in text_files([str(tmp_path)])]
    assert names == ["a.txt", "b.txt", "c.txt", "e.md"]
    globbed = text_files([str(tmp_path / "*.txt"), str(tmp_path / "e.md")])
    assert [path.name for path in globbed] == ["a.txt", "b.txt", "e.md"]
    both = text_files([f"{tmp_path}/e.md,{tmp_path}/a.txt"])
    assert [path.name for path in both] == ["e.md", "a.txt"]


@pytest.mark.parametrize(
    ("inputs", "what"),
    [
        (["none.txt"], "no such text file"),
        (["*.none"], "no file matches"),
        (["empty"], "has no files"),
        (["a.txt", "a.txt"], "listed twice"),
    ],
)
def test_inputs_without_a_file_are_errors(tmp_path: Path, inputs: list[str], what: str) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "a.txt").write_text("a\n")
    with pytest.raises(UserError, match=what):
        text_files([str(tmp_path / each) for each in inputs])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a b\nc\n\nd\n", [["ab", "c"], ["d"]]),
        ("\n\na\n \t \nb", [["a"], ["b"]]),
        ("a\r\n\r\nb\r\n", [["a"], ["b"]]),
        ("a\n\u3000\nb\n", [["a"], ["b"]]),
        ("a\n\u200b\nb\n", [["a", "b"]]),
        ("\ufeffa\n", [["a"]]),
        ("", []),
    ],
)
def test_documents_are_lines_between_blank_lines(
    tmp_path: Path, text: str, expected: list[list[str]]
) -> None:
    path = tmp_path / "text.txt"
    path.write_bytes(text.encode())
    assert spelt(read_documents(TOKENIZER, [path])) == expected
    chunks = chunks_of([path])
    assert [
        each for chunk in chunks for each in spelt(chunk_documents(TOKENIZER, chunk))
    ] == expected


def test_document_continues_in_the_next_file_only_in_the_originals_order(tmp_path: Path) -> None:
    paths = [tmp_path / "one", tmp_path / "two"]
    paths[0].write_text("a\n\nb\n")
    paths[1].write_text("c\n\nd\n")
    assert spelt(read_documents(TOKENIZER, paths)) == [["a"], ["b", "c"], ["d"]]
    (chunk,) = chunks_of(paths)
    assert spelt(chunk_documents(TOKENIZER, chunk)) == [["a"], ["b"], ["c"], ["d"]]


LINES = st.lists(st.sampled_from(["a", "bc d", "", " ", "中文", "e" * 40]), max_size=60)


@given(st.lists(LINES, min_size=1, max_size=4), st.integers(1, 200))
def test_chunks_cover_the_files_and_end_at_document_boundaries(
    tmp_path_factory: pytest.TempPathFactory, contents: list[list[str]], size: int
) -> None:
    folder = tmp_path_factory.mktemp("texts")
    paths = [folder / str(number) for number in range(len(contents))]
    for path, lines in zip(paths, contents, strict=True):
        path.write_text("\n".join(lines), encoding="utf-8")
    chunks = chunks_of(paths, size)
    spans = [span for chunk in chunks for span in chunk]
    whole = dict.fromkeys(paths, b"")
    for span in spans:
        data = span.path.read_bytes()
        assert len(whole[span.path]) == span.begin
        assert span.begin < span.end
        whole[span.path] += data[span.begin : span.end]
        # After a blank line, or at the end of the file.
        assert span.end == len(data) or data[: span.end].rstrip(b" ").endswith(b"\n")
    assert whole == {path: path.read_bytes() for path in paths}
    separate = [each for path in paths for each in spelt(read_documents(TOKENIZER, [path]))]
    cut = [each for chunk in chunks for each in spelt(chunk_documents(TOKENIZER, chunk))]
    assert cut == separate


def test_endless_document_is_split_between_lines(tmp_path: Path) -> None:
    path = tmp_path / "text"
    path.write_text("a b c d e f g\n" * 400_000)
    chunks = chunks_of([path], 1 << 20)
    assert len(chunks) >= 3
    assert all(span.end % 14 == 0 for chunk in chunks for span in chunk)


def test_endless_line_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "text"
    path.write_bytes(b"a" * (18 << 20))
    with pytest.raises(UserError, match="a line of more than 16 MiB"):
        chunks_of([path], 1 << 20)


@pytest.mark.parametrize("line", [1, 2, 30_000])
def test_non_utf8_line_is_named(tmp_path: Path, line: int) -> None:
    path = tmp_path / "text"
    lines = [b"the cat sat on the mat\n"] * 40_000
    lines[line - 1] = b"the c\xe4t\n"
    path.write_bytes(b"".join(lines))
    with pytest.raises(UserError) as error:
        read_documents(TOKENIZER, [path])
    assert error.value.where == f"{path}, line {line}"
    with pytest.raises(UserError) as error:
        [chunk_documents(TOKENIZER, chunk) for chunk in chunks_of([path], 100_000)]
    assert error.value.where == f"{path}, line {line}"


def test_commas_separate_files_unless_they_belong_to_a_name(tmp_path: Path) -> None:
    for name in ("a,b", "a", "c"):
        (tmp_path / name).write_text("a\n")
    assert text_files([f"{tmp_path}/a,b"]) == [tmp_path / "a,b"]
    assert text_files([f"{tmp_path}/c,,{tmp_path}/a"]) == [tmp_path / "c", tmp_path / "a"]
    with pytest.raises(UserError) as error:
        text_files([f"{tmp_path}/c", f"{tmp_path}/a", f"{tmp_path}/./c"])
    assert str(error.value) == (
        f"{tmp_path}/c: the file is listed twice, so its documents would count twice\n"
        "  List it once; --dupe-factor sets how often each document is used."
    )
    (tmp_path / "empty" / ".hidden").mkdir(parents=True)
    (tmp_path / "empty" / ".hidden" / "a").write_text("a\n")
    with pytest.raises(UserError, match="the folder has no files") as error:
        text_files([str(tmp_path / "empty")])
    assert error.value.where == str(tmp_path / "empty")
    # A pattern means files, at any depth where it says so.
    (tmp_path / "deep" / "er").mkdir(parents=True)
    (tmp_path / "deep" / "er" / "x.txt").write_text("a\n")
    assert text_files([f"{tmp_path}/**/*.txt"]) == [tmp_path / "deep" / "er" / "x.txt"]
    assert text_files([f"{tmp_path}/[ac]"]) == [tmp_path / "a", tmp_path / "c"]
    with pytest.raises(UserError, match="no file matches this pattern") as error:
        text_files([f"{tmp_path}/dee?"])
    assert error.value.where == f"{tmp_path}/dee?"


def defined_chunks(contents: dict[Path, bytes], size: int) -> list[list[Span]]:
    """The definition: a chunk is filled up, and ends with the first document that ends later."""
    chunks: list[list[Span]] = [[]]
    room = size
    for path, data in contents.items():
        begin = 0
        while begin < len(data):
            blank = re.compile(rb"\n[ \t\r]*\n").search(data, begin + room)
            fits = len(data) - begin <= room
            end = len(data) if fits or blank is None else blank.end()
            chunks[-1].append(Span(path, begin, end))
            room -= end - begin
            begin = end
            if room <= 0:
                chunks.append([])
                room = size
    return [chunk for chunk in chunks if chunk]


@given(
    st.lists(st.binary().map(lambda data: bytes(b"ab \n\n"[each % 5] for each in data))),
    st.integers(1, 12),
)
def test_chunks_end_at_the_first_blank_line_beyond_their_size(
    tmp_path_factory: pytest.TempPathFactory, contents: list[bytes], size: int
) -> None:
    folder = tmp_path_factory.mktemp("texts")
    files = {folder / str(number): data for number, data in enumerate(contents)}
    for path, data in files.items():
        path.write_bytes(data)
    assert [list(chunk) for chunk in chunks_of(list(files), size)] == defined_chunks(files, size)


def test_document_is_split_at_a_line_only_if_no_blank_one_follows_soon(
    tmp_path: Path,
) -> None:
    path = tmp_path / "text"
    line = b"a b c d e f g\n"
    mebibyte = 1 << 20
    # Looked for in steps of a quarter of a mebibyte, until there are more than one.
    # Lines have 14 bytes; the first that ends beyond 1,048,576 ends at 14 * 74,899.
    for lines_before_blank, end in [
        (100_000, 14 * 100_000 + 1),
        (14 * 12_000, 14 * 14 * 12_000 + 1),
        (14 * 12_100, 14 * 74_899),
    ]:
        path.write_bytes(line * lines_before_blank + b"\n" + line * 10)
        spans = [span for chunk in chunks_of([path], mebibyte) for span in chunk]
        assert spans[0] == Span(path, 0, end)
        assert spans[-1].end == path.stat().st_size


def test_endless_line_is_reported_at_the_search_position(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert documents.MAX_LINE_BYTES == 16 * 2**20
    monkeypatch.setattr(documents, "MAX_LINE_BYTES", 1 << 20)
    path = tmp_path / "text"
    path.write_bytes(b"b\n" + b"a" * (2 << 20))
    with pytest.raises(UserError) as error:
        chunks_of([path], 7)
    assert str(error.value) == (
        f"{path}, byte 7: a line of more than 1 MiB\n"
        "  Write one sentence per line, and a blank line between documents."
    )
    path.write_bytes(b"b\n" + b"a" * (1 << 20))
    assert [list(chunk) for chunk in chunks_of([path], 7)] == [[Span(path, 0, path.stat().st_size)]]


def test_non_utf8_bytes_are_reported_with_location_and_reason(tmp_path: Path) -> None:
    path = tmp_path / "text"
    path.write_bytes(b"ab\n\nc\xff\n")
    with pytest.raises(UserError) as error:
        read_documents(TOKENIZER, [path])
    assert str(error.value) == (
        f"{path}, line 3: is not UTF-8 text: invalid start byte at byte 5\n"
        "  Convert the file, for instance: iconv -f GB18030 -t UTF-8 FILE"
    )
    with pytest.raises(UserError, match="no such file"):
        read_documents(TOKENIZER, [tmp_path / "none"])
    with pytest.raises(UserError, match="no such file"):
        chunks_of([tmp_path / "none"])
