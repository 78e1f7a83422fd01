"""Questions about passages: their files and windows."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jumar.data.samples import SampleKey, fingerprint_of
from jumar.data.text.numbered_lines import Skipping
from jumar.data.text.reading_files import Answer, Question, Reading, read_questions
from jumar.data.text.reading_set import (
    ReadingData,
    ReadingWindows,
    open_reading_sets,
    reading_set,
    windows_of,
)
from jumar.data.text.tokenizer import Tokenizer, open_tokenizer
from jumar.data.text.vocabulary import Vocabulary
from jumar.ground.errors import UserError
from tests.data.text.vocabularies import PIECES

TOKENIZER = Tokenizer(Vocabulary(PIECES))


def squad(context: str, *questions: dict[str, Any]) -> dict[str, Any]:
    return {"data": [{"paragraphs": [{"context": context, "qas": list(questions)}]}]}


def question(text: str, *answers: tuple[str, int], number: str = "Q1") -> dict[str, Any]:
    listed = [{"text": answer, "answer_start": start} for answer, start in answers]
    return {"id": number, "question": text, "answers": listed}


def read(path: Path, content: Any, allowed: int | None = 0) -> Reading:
    path.write_text(json.dumps(content) if not isinstance(content, str) else content)
    skipping = None if allowed is None else Skipping(allowed, lambda _: None)
    return read_questions(path, skipping)


def windows(
    reading: Reading, length: int = 10, stride: int = 3, longest_query: int = 3
) -> ReadingWindows:
    data = ReadingData(max_seq_length=length, doc_stride=stride, max_query_length=longest_query)
    return ReadingWindows(reading, tokenizer=TOKENIZER, data=data)


def test_answers_are_looked_up_next_to_where_they_should_be(tmp_path: Path) -> None:
    answers = (("ab", 0), ("ab", 5), ("ab", -1), ("zz", 3), ("ab", 99), ("b", 1))
    reading = read(tmp_path / "a.json", squad("ab cd ab", question("c", *answers)))
    begins = [answer.begin for answer in reading.questions[0].answers]
    assert begins == [0, 6, 0, -1, 6, 1]
    assert (reading.moved, reading.absent) == (3, 1)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "line 1: is not JSON"),
        ('{"data": [],\n "x"}', "line 2: is not JSON"),
        ([], "the file is of type list, not dict"),
        ({"data": [{}]}, "article 1: has no 'paragraphs'"),
        (squad("ab", {"id": "q7", "answers": []}), r"question 1 of passage 1 \('q7'\): has no 'q"),
        (squad("ab", question("c", ("x", 0))), "the answer 'x' is not in its passage"),
        (squad("ab", question("c")), "has no answer"),
        ({"data": []}, "no questions that can be used"),
        (squad("ab", {"id": 1, "question": 5}), "'question' is of type int, not str"),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, content: Any, message: str) -> None:
    with pytest.raises(UserError, match=message):
        read(tmp_path / "a.json", content)


def test_questions_without_an_answer_can_be_skipped(tmp_path: Path) -> None:
    content = squad("ab", question("c", ("x", 0)), question("d", ("a", 0), number="Q2"))
    assert [each.number for each in read(tmp_path / "a.json", content, 1).questions] == ["Q2"]
    assert len(read(tmp_path / "a.json", content, None).questions) == 2


def original_windows(pieces: int, room: int, stride: int) -> list[tuple[int, int]]:
    spans: list[tuple[int, int]] = []
    start = 0
    while start < pieces:
        length = min(pieces - start, room)
        spans.append((start, length))
        if start + length == pieces:
            break
        start += min(length, stride)
    return spans


@given(st.integers(1, 60), st.integers(1, 30), st.integers(1, 30))
def test_windows_are_those_of_the_original(pieces: int, room: int, stride: int) -> None:
    assert windows_of(pieces, room, stride) == original_windows(pieces, room, stride)


def test_an_answer_is_marked_in_the_windows_that_hold_it(tmp_path: Path) -> None:
    content = squad("a b c d e f g h", question("x y", ("e f", 8)))
    made = windows(read(tmp_path / "a.json", content))
    batch = (
        reading_set(made, training=True).fetch([SampleKey(0, i) for i in range(len(made))]).batch
    )
    pieces = TOKENIZER.vocabulary.pieces
    texts = [" ".join(str(pieces[i]) for i in row) for row in batch["input_ids"].tolist()]
    assert texts == [
        "[CLS] x y [SEP] a b c d e [SEP]",
        "[CLS] x y [SEP] d e f g h [SEP]",
    ]
    assert batch["start"].tolist() == [0, 5]
    assert batch["end"].tolist() == [0, 6]
    assert batch["span_mask"].tolist() == [[1, 0, 0, 0, 1, 1, 1, 1, 1, 0]] * 2
    assert batch["segment_ids"].tolist() == [[0] * 4 + [1] * 6] * 2
    assert batch["window"].tolist() == [0, 1]


def test_a_piece_counts_where_most_of_the_passage_is_around_it(tmp_path: Path) -> None:
    made = windows(read(tmp_path / "a.json", squad("a b c d e f g h", question("x y", ("a", 0)))))
    counted = [made.has_most_context(number).tolist() for number in range(2)]
    # d is last but one in the first window and first in the second, e the other way round.
    assert counted == [[True, True, True, True, False], [False, True, True, True, True]]


def test_of_equal_contexts_the_first_counts(tmp_path: Path) -> None:
    reading = read(tmp_path / "a.json", squad("a b c d e f g", question("x y", ("a", 0))))
    made = windows(reading, stride=2)
    assert [window[1:] for window in made.windows] == [(0, 5), (2, 5)]
    assert made.has_most_context(0).tolist() == [True, True, True, True, False]
    assert made.has_most_context(1).tolist() == [False, False, True, True, True]


@given(st.integers(1, 40), st.integers(1, 12), st.integers(1, 12))
def test_every_piece_counts_in_one_window(pieces: int, room: int, stride: int) -> None:
    stride = min(stride, room)
    reading = Reading(passages=["a " * pieces])
    data = ReadingData(max_seq_length=room + 3, doc_stride=stride, max_query_length=1)
    made = ReadingWindows(reading, tokenizer=TOKENIZER, data=data)
    assert len(made) == 0
    reading.questions = read_one(pieces).questions
    made = ReadingWindows(reading, tokenizer=TOKENIZER, data=data)
    counted = np.zeros(pieces, dtype=int)
    for number, window in enumerate(made.windows):
        part = made.has_most_context(number)
        counted[window.begin : window.begin + window.length] += part
    assert (counted == 1).all()


def read_one(pieces: int) -> Reading:
    asked = Question("1", "", 0, [Answer("a", 0)], "")
    return Reading(passages=["a " * pieces], questions=[asked])


def test_questions_are_cut_and_answers_known_by_character(tmp_path: Path) -> None:
    content = squad("Cat SAT, on.", question("a b c d e", ("SAT", 4)))
    made = windows(read(tmp_path / "a.json", content), length=20)
    assert made.truncated == 1
    assert made.questions[0].tolist() == TOKENIZER.ids("a b c")
    passage = made.passages[0]
    assert made.spans == [(1, 1)]
    assert (passage.begins[1], passage.ends[1]) == (4, 7)
    assert passage.span(3, 4) is None


def test_the_fingerprint_follows_everything(tmp_path: Path) -> None:
    contents = [
        squad("a b c", question("x", ("a", 0))),
        squad("a b c", question("x", ("b", 2))),
        squad("a b c", question("y", ("a", 0))),
        squad("a b d", question("x", ("a", 0))),
    ]
    made = [windows(read(tmp_path / "a.json", content)) for content in contents]
    made.append(windows(read(tmp_path / "a.json", contents[0]), length=9))
    assert len({fingerprint_of(each) for each in made}) == 4
    long = squad("a b c d e f g h", question("x", ("a", 0)))
    by_stride = {
        fingerprint_of(windows(read(tmp_path / "a.json", long), stride=stride)) for stride in (2, 3)
    }
    assert len(by_stride) == 2


def test_real_data_is_read_whole(shared: Path) -> None:
    texts = shared / "data" / "nlp-zh"
    tokenizer = open_tokenizer(texts / "vocab.txt", lower_case=False)
    lines: list[str] = []
    sets = open_reading_sets(ReadingData(path=str(texts / "cmrc2018")), tokenizer, lines.append)
    assert sets.evaluation is not None
    assert lines == [
        "training: 2657 questions about 700 passages in 6561 windows, 0 questions cut to 64 tokens",
        "  0 answers looked up, since answer_start is wrong; 160 not in their passage",
        "evaluation: 562 questions about 148 passages in 1259 windows, 0 questions cut to 64 "
        "tokens",
        "  7 answers looked up, since answer_start is wrong; 33 not in their passage",
    ]
    kind = sets.train.kind
    for asked, span in list(zip(kind.reading.questions, kind.spans, strict=True))[:300]:
        assert span is not None
        passage = kind.passages[asked.passage]
        text = kind.reading.passages[asked.passage]
        answer = next(each for each in asked.answers if each.begin >= 0)
        covered = text[passage.begins[span.first] : passage.ends[span.last]]
        assert answer.text.strip() in covered
