"""Word pieces in a sample of fixed length."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from jumar.data.text.sequences import Frame, PieceRows, cut_pair, frame_of
from jumar.data.text.vocabulary import Vocabulary


def original_cut(first: int, second: int, room: int) -> tuple[int, int]:
    """`_truncate_seq_pair` of google-research/bert: a piece at a time."""
    while first + second > room:
        if first > second:
            first -= 1
        else:
            second -= 1
    return first, second


@given(st.integers(0, 30), st.integers(0, 30), st.integers(0, 40))
def test_pairs_are_truncated_as_in_the_original(first: int, second: int, room: int) -> None:
    assert cut_pair(first, second, room) == original_cut(first, second, room)


def test_texts_are_framed_by_special_pieces() -> None:
    frame = Frame(first=101, end=102, fill=9, length=8)
    single = frame.arrays([5, 6])
    assert single["input_ids"].tolist() == [101, 5, 6, 102, 9, 9, 9, 9]
    assert single["segment_ids"].tolist() == [0] * 8
    assert single["input_mask"].tolist() == [1, 1, 1, 1, 0, 0, 0, 0]
    pair = frame.arrays([5, 6], [7, 8])
    assert pair["input_ids"].tolist() == [101, 5, 6, 102, 7, 8, 102, 9]
    assert pair["segment_ids"].tolist() == [0, 0, 0, 0, 1, 1, 1, 0]
    assert pair["input_mask"].tolist() == [1, 1, 1, 1, 1, 1, 1, 0]
    assert frame.arrays([], [])["input_ids"].tolist()[:3] == [101, 102, 102]
    assert all(array.dtype == np.int64 for array in pair.values())


def test_rows_round_trip() -> None:
    rows = PieceRows([[1, 2], [], [3]])
    assert [row.tolist() for row in map(rows.__getitem__, range(len(rows)))] == [[1, 2], [], [3]]
    assert rows.content() != PieceRows([[1], [2], [3]]).content()
    assert len(PieceRows([])) == 0


def test_vocabulary_special_pieces_frame_a_text() -> None:
    vocabulary = Vocabulary(("[CLS]", "[SEP]", "x", "[MASK]", "[PAD]", "[UNK]"))
    assert frame_of(vocabulary, 7) == Frame(first=0, end=1, fill=4, length=7)
    # A sample that is filled to its last place.
    full = frame_of(vocabulary, 7).arrays([2, 3], [5, 2])
    assert {name: array.tolist() for name, array in full.items()} == {
        "input_ids": [0, 2, 3, 1, 5, 2, 1],
        "segment_ids": [0, 0, 0, 0, 1, 1, 1],
        "input_mask": [1, 1, 1, 1, 1, 1, 1],
    }


def test_rows_have_lengths_and_content() -> None:
    rows = PieceRows([[1, 2], [], [3]])
    assert rows.lengths().tolist() == [2, 0, 1]
    assert (rows[0].dtype, rows.lengths().dtype) == (np.int32, np.int64)
    ends, pieces = np.array([0, 2, 2, 3], np.int64), np.array([1, 2, 3], np.int32)
    assert rows.content() == ends.tobytes() + pieces.tobytes()
    assert PieceRows([]).content() == bytes(8)
    assert PieceRows([[]])[0].tolist() == []
