"""Arranges word pieces as the network's input: [CLS] first [SEP] second [SEP], padded."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from jumar.data.samples import Arrays, SampleKey
from jumar.data.text.vocabulary import Vocabulary

Ids = Sequence[int] | NDArray[np.int32]


@dataclass(frozen=True)
class Frame:
    """The length and the special pieces of a sample.

    Attributes:
        first: The id of [CLS].
        end: The id of [SEP].
        fill: The id of [PAD].
        length: Number of tokens in a sample.
    """

    first: int
    end: int
    fill: int
    length: int

    def arrays(self, first: Ids, second: Ids | None = None) -> Arrays:
        """Return `input_ids`, `segment_ids` and `input_mask`, int64 [length].

        Args:
            first: Pieces of the first text; both texts together must fit.
            second: Pieces of the second text; None if there is only one.
        """
        ids = np.full(self.length, self.fill, dtype=np.int64)
        segments = np.zeros(self.length, dtype=np.int64)
        mask = np.zeros(self.length, dtype=np.int64)
        end = len(first) + 2
        ids[0], ids[1 : end - 1], ids[end - 1] = self.first, first, self.end
        if second is not None:
            start, end = end, end + len(second) + 1
            ids[start : end - 1], ids[end - 1] = second, self.end
            segments[start:end] = 1
        mask[:end] = 1
        return {"input_ids": ids, "segment_ids": segments, "input_mask": mask}


def frame_of(vocabulary: Vocabulary, length: int) -> Frame:
    """Return the frame with the special pieces of a vocabulary."""
    first, end, fill = (vocabulary.id_of(piece) for piece in ("[CLS]", "[SEP]", "[PAD]"))
    return Frame(first, end, fill, length)


def cut_pair(first: int, second: int, max_pieces: int) -> tuple[int, int]:
    """Return how many pieces of each text to keep: as in the originals, the longer one is cut.

    Args:
        first: Number of pieces of the first text.
        second: Number of pieces of the second text.
        max_pieces: Number of pieces that fit.
    """
    shorter = min(first, second)
    if first + second <= max_pieces:
        return first, second
    if 2 * shorter <= max_pieces:
        return (first, max_pieces - first) if first == shorter else (max_pieces - second, second)
    # If the lengths are equal, the second text loses a piece.
    return max_pieces - max_pieces // 2, max_pieces // 2


class InMemory:
    """The first half of a `SampleKind` whose data is in memory."""

    def open(self, item: int, _key: SampleKey) -> int:
        """Return the item, since nothing needs to be read; see `SampleKind.open`."""
        return item


class PieceRows:
    """Pieces of many texts, in one array.

    Args:
        rows: The pieces of each text.
    """

    def __init__(self, rows: Iterable[Ids]) -> None:
        arrays = [np.asarray(row, dtype=np.int32) for row in rows]
        ends = np.cumsum([len(array) for array in arrays], dtype=np.int64)
        self.ends = np.concatenate([np.zeros(1, dtype=np.int64), ends])
        self.pieces = np.concatenate(arrays) if arrays else np.zeros(0, dtype=np.int32)

    def __len__(self) -> int:
        return len(self.ends) - 1

    def __getitem__(self, index: int) -> NDArray[np.int32]:
        return self.pieces[self.ends[index] : self.ends[index + 1]]

    def lengths(self) -> NDArray[np.int64]:
        """Return the number of pieces in each text."""
        return np.diff(self.ends)

    def content(self) -> bytes:
        """Return bytes that identify the rows, for a fingerprint."""
        return self.ends.tobytes() + self.pieces.tobytes()
