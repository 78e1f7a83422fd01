"""Vocabulary files, and what is wrong with them."""

from pathlib import Path

import pytest

from jumar.data.text.vocabulary import SPECIAL, Vocabulary, read_vocabulary
from jumar.ground.errors import UserError
from tests.data.text.vocabularies import PIECES, write_vocabulary


def test_pieces_are_numbered_by_line(tmp_path: Path) -> None:
    vocabulary = read_vocabulary(write_vocabulary(tmp_path / "vocab.txt"))
    assert list(vocabulary.pieces) == list(PIECES)
    assert vocabulary.ids["[CLS]"] == 2
    assert PIECES.index("##ing") in vocabulary.continuing
    assert PIECES.index("the") not in vocabulary.continuing


def test_windows_line_endings_and_a_missing_final_one_are_accepted(tmp_path: Path) -> None:
    path = tmp_path / "vocab.txt"
    path.write_bytes("\r\n".join(PIECES).encode())
    assert list(read_vocabulary(path).pieces) == list(PIECES)


def test_unicode_separator_line_is_a_piece_as_in_the_chinese_vocabulary(
    tmp_path: Path,
) -> None:
    path = write_vocabulary(tmp_path / "vocab.txt", (*PIECES, "\u2028", "last"))
    assert read_vocabulary(path).ids["last"] == len(PIECES) + 1


@pytest.mark.parametrize("missing", SPECIAL)
def test_missing_special_piece_is_named(tmp_path: Path, missing: str) -> None:
    pieces = tuple(piece for piece in PIECES if piece != missing)
    with pytest.raises(UserError, match=r"lacks \[") as error:
        read_vocabulary(write_vocabulary(tmp_path / "vocab.txt", pieces))
    assert missing in error.value.what
    assert error.value.where == str(tmp_path / "vocab.txt")


@pytest.mark.parametrize(
    ("content", "line", "what"),
    [
        (b"[PAD]\na\nb\na\n", 4, "'a' is also on line 2"),
        (b"[PAD]\n\nb\n", 2, "blank"),
        (b"[PAD]\nb\n\n", 3, "blank"),
        (b"[PAD]\nb\n\xff\xfe\n", 3, "not UTF-8"),
    ],
)
def test_bad_line_is_named(tmp_path: Path, content: bytes, line: int, what: str) -> None:
    path = tmp_path / "vocab.txt"
    path.write_bytes(content)
    with pytest.raises(UserError, match=what) as error:
        read_vocabulary(path)
    assert error.value.where == f"{path}, line {line}"


def test_missing_file_is_an_error_with_its_path(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no such file"):
        read_vocabulary(tmp_path / "none.txt")


def test_equal_pieces_give_equal_ids() -> None:
    assert Vocabulary(SPECIAL).ids == {piece: number for number, piece in enumerate(SPECIAL)}


def test_vocabulary_errors_have_the_full_message(tmp_path: Path) -> None:
    path = tmp_path / "vocab.txt"

    def refused(content: bytes) -> str:
        path.write_bytes(content)
        with pytest.raises(UserError) as error:
            read_vocabulary(path)
        return str(error.value)

    assert refused(b"a\n \n") == (
        f"{path}, line 2: the line is blank\n  Remove it: each line is a word piece."
    )
    assert refused(b"a\xe4\n") == (
        f"{path}, line 1: is not UTF-8 text: unexpected end of data\n"
        "  Is this a vocabulary? Expected: one word piece per line, in UTF-8."
    )
    assert refused(b"x\x01\na\nx\x01\n") == (
        f"{path}, line 3: 'x\\x01' is also on line 1\n"
        "  Every word piece has one id: remove one of the lines, unless a checkpoint was trained "
        "with this file."
    )
    assert refused(b"[PAD]\n[CLS]\n[SEP]\n") == (
        f"{path}: the vocabulary lacks [UNK], [MASK]\n"
        "  Every BERT vocabulary has [PAD], [UNK], [CLS], [SEP], [MASK], each on a separate "
        "line; `jumar data vocab` creates one."
    )


def test_vocabulary_has_length_ids_and_continuation_pieces() -> None:
    vocabulary = Vocabulary((*SPECIAL, "a", "##b", "#c", "##", "d##"))
    assert len(vocabulary) == 10
    assert vocabulary.continuing == {6, 8}
    assert [vocabulary.id_of(piece) for piece in (*SPECIAL, "d##")] == [0, 1, 2, 3, 4, 9]
    assert vocabulary.where == ""
