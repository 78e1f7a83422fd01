"""Questions about passages as samples, each with a window of the passage, as in run_squad.py.

A passage that is longer than a sample is split into several windows, each shifted by `doc_stride`
pieces. Answers have character positions, so texts need not be matched again.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from jumar.data.loading.keyed_set import KeyedSet
from jumar.data.samples import Arrays, SampleKey, fingerprint
from jumar.data.text.labelled_parts import TextData, part_file
from jumar.data.text.numbered_lines import Skipping
from jumar.data.text.reading_files import SUFFIXES, Answer, Reading, read_questions
from jumar.data.text.sentence_set import text_collate
from jumar.data.text.sequences import Frame, InMemory, PieceRows, frame_of
from jumar.data.text.tokenizer import Tokenizer
from jumar.ground.errors import UserError
from jumar.ground.text import counted
from jumar.settings import setting


@dataclass(frozen=True, kw_only=True)
class ReadingData(TextData):
    """Where to find questions about passages, and how to split passages into windows."""

    do_lower_case: bool = setting(False, "Convert texts to lower case and remove accents.")
    max_seq_length: int = setting(
        384, "Tokens of a window with the question, [CLS] and two [SEP].", minimum=8, maximum=2048
    )
    doc_stride: int = setting(
        120, "Step from one window of a passage to the next.", unit="tokens", minimum=1
    )
    max_query_length: int = setting(
        64, "Longer questions are truncated.", unit="tokens", minimum=1, maximum=2048
    )
    max_answer_length: int = setting(
        30, "Maximum length of a predicted answer.", unit="tokens", minimum=1, changeable=True
    )
    n_best: int = setting(
        20,
        "Start and end candidates of an answer, and number of answers returned by `predict`.",
        minimum=1,
        changeable=True,
    )

    def check(self) -> None:
        """Reject question lengths that leave no space for the passage.

        Raises:
            UserError: There is no space.
        """
        if self.max_query_length + 4 > self.max_seq_length:
            raise UserError(
                f"a question of {self.max_query_length} tokens leaves no space for its passage in "
                f"{self.max_seq_length}",
                where="data.max_query_length",
            )


class Span(NamedTuple):
    """The first and the last piece of an answer in a passage."""

    first: int
    last: int


class Passage(NamedTuple):
    """The pieces of a passage, with the range of characters that each covers."""

    ids: NDArray[np.int32]
    begins: NDArray[np.int32]
    ends: NDArray[np.int32]

    def span(self, begin: int, end: int) -> Span | None:
        """Return the pieces that cover a range of characters; None if no piece does."""
        first = int(np.searchsorted(self.ends, begin, side="right"))
        last = int(np.searchsorted(self.begins, end, side="left")) - 1
        return Span(first, last) if first <= last else None


class Window(NamedTuple):
    """A part of a passage, for one question.

    Attributes:
        question: Index of the question.
        begin: Its first piece in the passage.
        length: Its number of pieces.
    """

    question: int
    begin: int
    length: int


class ReadingWindows(InMemory):
    """Windows of passages with a question each.

    Args:
        reading: The passages and questions.
        tokenizer: Splits texts into pieces.
        data: The settings.
    """

    def __init__(self, reading: Reading, *, tokenizer: Tokenizer, data: ReadingData) -> None:
        self.reading, self.data = reading, data
        self.frame: Frame = frame_of(tokenizer.vocabulary, data.max_seq_length)
        self.passages = [_passage(text, tokenizer) for text in reading.passages]
        questions = [tokenizer.ids(question.text) for question in reading.questions]
        self.truncated = sum(len(row) > data.max_query_length for row in questions)
        self.questions = PieceRows([row[: data.max_query_length] for row in questions])
        self.windows: list[Window] = []
        self.spans: list[Span | None] = []
        for number, question in enumerate(reading.questions):
            passage = self.passages[question.passage]
            max_pieces = data.max_seq_length - len(self.questions[number]) - 3
            spans = windows_of(len(passage.ids), max_pieces, data.doc_stride)
            self.windows += [Window(number, begin, length) for begin, length in spans]
            self.spans.append(_answer_span(passage, question.answers))

    def __len__(self) -> int:
        return len(self.windows)

    @property
    def fingerprint(self) -> str:
        """Fingerprint of pieces, windows and answers; see `Fingerprinted`."""
        spans = np.array([span or Span(-1, -1) for span in self.spans], dtype=np.int64)
        windows = np.array(self.windows, dtype=np.int64)
        passages = [passage.ids.tobytes() for passage in self.passages]
        parts = (self.questions.content(), windows.tobytes(), spans.tobytes())
        return fingerprint(*parts, *passages)

    def offset(self, window: Window) -> int:
        """Return the position of the passage's first piece in a sample."""
        return len(self.questions[window.question]) + 2

    def map(self, opened: int, _item: int, _key: SampleKey) -> Arrays:
        """See `reading_set` and `SampleKind.map`."""
        window = self.windows[opened]
        question = self.reading.questions[window.question]
        end = window.begin + window.length
        ids = self.passages[question.passage].ids[window.begin : end]
        arrays = self.frame.arrays(self.questions[window.question], ids)
        offset = self.offset(window)
        span_mask = np.zeros(self.frame.length, dtype=np.int64)
        # [CLS] represents an answer that is not in this window.
        span_mask[0] = 1
        span_mask[offset : offset + window.length] = 1
        first = last = 0
        span = self.spans[window.question]
        if span is not None and window.begin <= span.first and span.last < end:
            first, last = (piece - window.begin + offset for piece in span)
        return {
            **arrays,
            "span_mask": span_mask,
            "start": np.asarray(first, dtype=np.int64),
            "end": np.asarray(last, dtype=np.int64),
            "window": np.asarray(opened, dtype=np.int64),
        }

    def has_most_context(self, number: int) -> NDArray[np.bool_]:
        """Return which pieces of a window have more context in it than in any other window.

        If windows overlap, an answer may start at a piece only in one of them.
        """
        window = self.windows[number]
        passage = self.reading.questions[window.question].passage
        max_pieces = self.data.max_seq_length - len(self.questions[window.question]) - 3
        pieces = len(self.passages[passage].ids)
        best = _best_windows(pieces, max_pieces, self.data.doc_stride)
        best_begins = best[window.begin : window.begin + window.length]
        return best_begins == window.begin


def windows_of(pieces: int, max_pieces: int, stride: int) -> list[tuple[int, int]]:
    """Return first piece and length of each window of a passage, as in run_squad.py."""
    spans: list[tuple[int, int]] = []
    begin = 0
    while True:
        length = min(pieces - begin, max_pieces)
        spans.append((begin, length))
        if begin + length >= pieces:
            return spans
        begin += min(length, stride)


@lru_cache(maxsize=1024)
def _best_windows(pieces: int, max_pieces: int, stride: int) -> NDArray[np.int64]:
    """Return, for each piece, the start of the window in which it has the most context."""
    positions = np.arange(pieces)
    best = np.zeros(pieces, dtype=np.int64)
    most_context = np.full(pieces, -np.inf)
    for begin, length in windows_of(pieces, max_pieces, stride):
        context = np.minimum(positions - begin, begin + length - 1 - positions) + 0.01 * length
        is_better = (positions >= begin) & (positions < begin + length) & (context > most_context)
        most_context[is_better], best[is_better] = context[is_better], begin
    return best


def _passage(text: str, tokenizer: Tokenizer) -> Passage:
    tokens = tokenizer.tokens(text)
    columns = np.array([token[1:] for token in tokens], dtype=np.int32).reshape(-1, 3)
    ids, begins, ends = columns.T.copy()
    return Passage(ids, begins, ends)


def _answer_span(passage: Passage, answers: Sequence[Answer]) -> Span | None:
    """Return the pieces of the first answer that is in the passage."""
    for text, begin in answers:
        if begin >= 0 and (span := passage.span(begin, begin + len(text))):
            return span
    return None


@dataclass(frozen=True, kw_only=True, eq=False)
class ReadingSets:
    """The parts of a data set."""

    train: KeyedSet[ReadingWindows]
    evaluation: KeyedSet[ReadingWindows] | None


def open_reading_sets(
    data: ReadingData, tokenizer: Tokenizer, notice: Callable[[str], None] = lambda _: None
) -> ReadingSets:
    """Open the training and the evaluation set.

    Raises:
        UserError: A file cannot be read, or an answer is not in its passage.
    """

    def open_windows(path: Path, part: str) -> ReadingWindows:
        skipping = Skipping(data.skip_corrupt, notice) if part == "training" else None
        reading = read_questions(path, skipping)
        windows = ReadingWindows(reading, tokenizer=tokenizer, data=data)
        notice(
            f"{part}: {counted(len(reading.questions), 'question')} about "
            f"{counted(len(reading.passages), 'passage')} in {counted(len(windows), 'window')}, "
            f"{counted(windows.truncated, 'question')} cut to {data.max_query_length} tokens"
        )
        if reading.moved or reading.absent:
            notice(
                f"  {counted(reading.moved, 'answer')} searched for, since answer_start is wrong; "
                f"{reading.absent} not in their passage"
            )
        return windows

    path = part_file(data, "train", SUFFIXES)
    assert path is not None
    train = reading_set(open_windows(path, "training"), training=True)
    eval_path = part_file(data, "eval", SUFFIXES)
    if eval_path is None:
        return ReadingSets(train=train, evaluation=None)
    evaluation = reading_set(open_windows(eval_path, "evaluation"), training=False)
    return ReadingSets(train=train, evaluation=evaluation)


def reading_set(windows: ReadingWindows, *, training: bool) -> KeyedSet[ReadingWindows]:
    """Windows as batches of int64: `input_ids`, `segment_ids`, `input_mask` and `span_mask`
    [N, max_seq_length], where `span_mask` is 1 if an answer may be at a position; `start` and `end`
    [N], the answer's first and last position, 0 if it is not in the window; and `window` [N], the
    index of the window.
    """
    return KeyedSet(kind=windows, collate=text_collate(windows.frame), training=training)
