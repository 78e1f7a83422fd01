"""Which files are texts, where they are cut, and what their documents are."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jumar.data.text.documents import (
    Document,
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


def spelt(documents: list[Document]) -> list[list[str]]:
    return [
        ["".join(PIECES[piece] for piece in sentence) for sentence in document]
        for document in documents
        if document
    ]


def test_files_folders_and_globs_are_taken_in_their_order(tmp_path: Path) -> None:
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
        (["empty"], "holds no file"),
        (["a.txt", "a.txt"], "named twice"),
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


def test_a_document_goes_on_in_the_next_file_in_the_originals_order_only(tmp_path: Path) -> None:
    paths = [tmp_path / "one", tmp_path / "two"]
    paths[0].write_text("a\n\nb\n")
    paths[1].write_text("c\n\nd\n")
    assert spelt(read_documents(TOKENIZER, paths)) == [["a"], ["b", "c"], ["d"]]
    (chunk,) = chunks_of(paths)
    assert spelt(chunk_documents(TOKENIZER, chunk)) == [["a"], ["b"], ["c"], ["d"]]


LINES = st.lists(st.sampled_from(["a", "bc d", "", " ", "中文", "e" * 40]), max_size=60)


@given(st.lists(LINES, min_size=1, max_size=4), st.integers(1, 200))
def test_chunks_are_the_files_and_end_where_documents_do(
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


def test_a_document_without_an_end_is_cut_between_lines(tmp_path: Path) -> None:
    path = tmp_path / "text"
    path.write_text("a b c d e f g\n" * 400_000)
    chunks = chunks_of([path], 1 << 20)
    assert len(chunks) >= 3
    assert all(span.end % 14 == 0 for chunk in chunks for span in chunk)


def test_a_line_without_an_end_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "text"
    path.write_bytes(b"a" * (18 << 20))
    with pytest.raises(UserError, match="a line of more than 16 MiB"):
        chunks_of([path], 1 << 20)


@pytest.mark.parametrize("line", [1, 2, 30_000])
def test_the_line_that_is_not_utf8_is_named(tmp_path: Path, line: int) -> None:
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
