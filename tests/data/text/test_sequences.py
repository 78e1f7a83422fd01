"""Word pieces in a sample of fixed length."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from jumar.data.text.sequences import Frame, PieceRows, cut_pair


def original_cut(first: int, second: int, room: int) -> tuple[int, int]:
    """`_truncate_seq_pair` of google-research/bert: a piece at a time."""
    while first + second > room:
        if first > second:
            first -= 1
        else:
            second -= 1
    return first, second


@given(st.integers(0, 30), st.integers(0, 30), st.integers(0, 40))
def test_pairs_are_cut_as_in_the_original(first: int, second: int, room: int) -> None:
    assert cut_pair(first, second, room) == original_cut(first, second, room)


def test_texts_stand_between_their_marks() -> None:
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


def test_rows_come_back_as_they_went_in() -> None:
    rows = PieceRows([[1, 2], [], [3]])
    assert [row.tolist() for row in map(rows.__getitem__, range(len(rows)))] == [[1, 2], [], [3]]
    assert rows.content() != PieceRows([[1], [2], [3]]).content()
    assert len(PieceRows([])) == 0
