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
from jumar.settings import describe
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


def test_answers_are_searched_near_their_stated_offset(tmp_path: Path) -> None:
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
        ({"data": []}, "no usable questions"),
        (squad("ab", {"id": 1, "question": 5}), "'question' is of type int, not str"),
    ],
)
def test_malformed_input_is_named(tmp_path: Path, content: Any, message: str) -> None:
    with pytest.raises(UserError, match=message):
        read(tmp_path / "a.json", content)


def test_unanswered_questions_can_be_skipped(tmp_path: Path) -> None:
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
def test_windows_match_the_original(pieces: int, room: int, stride: int) -> None:
    assert windows_of(pieces, room, stride) == original_windows(pieces, room, stride)


def test_answer_is_marked_in_the_windows_that_hold_it(tmp_path: Path) -> None:
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


def test_piece_counts_in_the_window_with_most_context(tmp_path: Path) -> None:
    made = windows(read(tmp_path / "a.json", squad("a b c d e f g h", question("x y", ("a", 0)))))
    counted = [made.has_most_context(number).tolist() for number in range(2)]
    # d is last but one in the first window and first in the second, e the other way round.
    assert counted == [[True, True, True, True, False], [False, True, True, True, True]]


def test_first_of_equal_contexts_counts(tmp_path: Path) -> None:
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


def test_questions_are_truncated_and_answers_located_by_character(tmp_path: Path) -> None:
    content = squad("Cat SAT, on.", question("a b c d e", ("SAT", 4)))
    made = windows(read(tmp_path / "a.json", content), length=20)
    assert made.truncated == 1
    assert made.questions[0].tolist() == TOKENIZER.ids("a b c")
    passage = made.passages[0]
    assert made.spans == [(1, 1)]
    assert (passage.begins[1], passage.ends[1]) == (4, 7)
    assert passage.span(3, 4) is None


def test_fingerprint_depends_on_everything(tmp_path: Path) -> None:
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
        "  0 answers searched for, since answer_start is wrong; 160 not in their passage",
        "evaluation: 562 questions about 148 passages in 1259 windows, 0 questions cut to 64 "
        "tokens",
        "  7 answers searched for, since answer_start is wrong; 33 not in their passage",
    ]
    kind = sets.train.kind
    for asked, span in list(zip(kind.reading.questions, kind.spans, strict=True))[:300]:
        assert span is not None
        passage = kind.passages[asked.passage]
        text = kind.reading.passages[asked.passage]
        answer = next(each for each in asked.answers if each.begin >= 0)
        covered = text[passage.begins[span.first] : passage.ends[span.last]]
        assert answer.text.strip() in covered


def test_settings_have_their_defaults_and_limits() -> None:
    rows = {row.path: (row.value, row.unit, row.allowed) for row in describe(ReadingData())}
    assert (
        rows
        | {
            "do_lower_case": (False, "", ""),
            "max_seq_length": (384, "", "8 to 2048"),
            "doc_stride": (120, "tokens", "1 or more"),
            "max_query_length": (64, "tokens", "1 to 2048"),
            "max_answer_length": (30, "tokens", "1 or more"),
            "n_best": (20, "", "1 or more"),
            "batch_size": (32, "samples per rank", "1 or more"),
        }
        == rows
    )
    fields = ReadingData.__dataclass_fields__
    changeable = {name for name, field in fields.items() if field.metadata["changeable"]}
    assert changeable == {
        *("eval_batch_size", "workers", "prefetch", "skip_corrupt", "eval_path"),
        *("max_answer_length", "n_best"),
    }


def test_question_leaves_room_for_one_piece_of_its_passage() -> None:
    ReadingData(max_seq_length=10, max_query_length=6).check()
    with pytest.raises(UserError) as error:
        ReadingData(max_seq_length=10, max_query_length=7).check()
    assert str(error.value) == (
        "data.max_query_length: a question of 7 tokens leaves no space for its passage in 10"
    )


@pytest.mark.parametrize(
    ("answer", "starts", "ends"),
    [
        ("a", (4, 0), (4, 0)),
        ("d e", (7, 4), (8, 5)),
        ("c d", (6, 0), (7, 0)),
        ("h", (0, 8), (0, 8)),
        ("a b c d e f", (0, 0), (0, 0)),
    ],
)
def test_answer_counts_only_in_windows_containing_all_of_it(
    tmp_path: Path, answer: str, starts: tuple[int, int], ends: tuple[int, int]
) -> None:
    text = "a b c d e f g h"
    made = windows(
        read(tmp_path / "a.json", squad(text, question("x y", (answer, text.index(answer)))))
    )
    # Five pieces each: from a, and three further.
    assert made.windows == [(0, 0, 5), (0, 3, 5)]
    samples = [made.map(number, number, SampleKey(0, number)) for number in range(2)]
    assert tuple(int(sample["start"]) for sample in samples) == starts
    assert tuple(int(sample["end"]) for sample in samples) == ends
    assert made.offset(made.windows[0]) == 4
    assert {array.dtype for sample in samples for array in sample.values()} == {np.dtype("int64")}


def test_each_question_has_its_own_passage_room_and_windows() -> None:
    reading = Reading(
        passages=["a b c d e f", "g h"],
        questions=[
            Question("1", "x", 1, [Answer("h", 2)], ""),
            Question("2", "", 0, [Answer("zz", -1), Answer(" ", 1), Answer("c", 4)], ""),
            Question("3", "x y z", 0, [], ""),
            Question("4", "x y z 1", 0, [Answer("f", 10)], ""),
        ],
    )
    made = windows(reading)
    assert made.windows == [
        *[(0, 0, 2), (1, 0, 6)],
        *[(2, 0, 4), (2, 3, 3)],
        *[(3, 0, 4), (3, 3, 3)],
    ]
    assert made.spans == [(1, 1), (2, 2), None, (5, 5)]
    assert made.truncated == 1
    assert [made.offset(window) for window in made.windows] == [3, 2, 5, 5, 5, 5]
    sample = made.map(made.open(5, SampleKey(0, 9)), 9, SampleKey(0, 9))
    ids = TOKENIZER.vocabulary.ids
    names = ["[CLS]", "x", "y", "z", "[SEP]", "d", "e", "f", "[SEP]", "[PAD]"]
    assert sample["input_ids"].tolist() == [ids[name] for name in names]
    assert sample["span_mask"].tolist() == [1, 0, 0, 0, 0, 1, 1, 1, 0, 0]
    assert (int(sample["start"]), int(sample["end"]), int(sample["window"])) == (7, 7, 5)


def test_answer_pieces_cover_its_characters() -> None:
    (passage,) = windows(Reading(passages=["cat  dogs ."])).passages
    pieces = [TOKENIZER.vocabulary.pieces[number] for number in passage.ids]
    assert pieces == ["cat", "dog", "##s", "."]
    assert passage.begins.tolist() == [0, 5, 8, 10]
    assert passage.ends.tolist() == [3, 8, 9, 11]
    spans = {
        (0, 3): (0, 0),
        (2, 3): (0, 0),
        (2, 6): (0, 1),
        (3, 5): None,
        (4, 6): (1, 1),
        (7, 8): (1, 1),
        (7, 9): (1, 2),
        (8, 10): (2, 2),
        (9, 10): None,
        (0, 11): (0, 3),
        (11, 12): None,
    }
    assert {each: passage.span(*each) for each in spans} == spans


def original_has_most_context(spans: list[tuple[int, int]], number: int, position: int) -> bool:
    """`_check_is_max_context` of google-research/bert's run_squad.py."""
    best_score, best = None, None
    for index, (start, length) in enumerate(spans):
        end = start + length - 1
        if position < start or position > end:
            continue
        score = min(position - start, end - position) + 0.01 * length
        if best_score is None or score > best_score:
            best_score, best = score, index
    return best == number


@given(st.integers(1, 40), st.integers(1, 12), st.integers(1, 12))
def test_context_matches_the_original(pieces: int, room: int, stride: int) -> None:
    stride = min(stride, room)
    data = ReadingData(max_seq_length=room + 3, doc_stride=stride, max_query_length=1)
    made = ReadingWindows(read_one(pieces), tokenizer=TOKENIZER, data=data)
    spans = original_windows(pieces, room, stride)
    for number, (start, length) in enumerate(spans):
        assert made.has_most_context(number).tolist() == [
            original_has_most_context(spans, number, position)
            for position in range(start, start + length)
        ]


def test_both_parts_are_opened_and_reported(tmp_path: Path) -> None:
    train = squad("a b c", question("x y z 1 2", ("b", 0)), question("z", ("q", 0), number="Q2"))
    (tmp_path / "train.json").write_text(json.dumps(train), encoding="utf-8")
    evaluation = squad("a b c", question("z", ("q", 0), ("c", 4)))
    (tmp_path / "dev.json").write_text(json.dumps(evaluation), encoding="utf-8")
    lines: list[str] = []
    data = ReadingData(
        path=str(tmp_path), max_seq_length=8, doc_stride=1, max_query_length=4, skip_corrupt=1
    )
    sets = open_reading_sets(data, TOKENIZER, lines.append)
    assert lines == [
        f"skipped: {tmp_path / 'train.json'}, question 2 of passage 1 ('Q2'): the answer 'q' is "
        "not in its passage",
        "training: 1 question about 1 passage in 3 windows, 1 question cut to 4 tokens",
        "  1 answer searched for, since answer_start is wrong; 1 not in their passage",
        "evaluation: 1 question about 1 passage in 1 window, 0 questions cut to 4 tokens",
        "  0 answers searched for, since answer_start is wrong; 1 not in their passage",
    ]
    assert sets.evaluation is not None
    assert (sets.train.training, sets.evaluation.training) == (True, False)
    assert (len(sets.train), len(sets.evaluation)) == (3, 1)
    alone = ReadingData(path=str(tmp_path), eval_path="none", max_seq_length=8, max_query_length=4)
    with pytest.raises(UserError, match="the answer 'q' is not in its passage"):
        open_reading_sets(alone, TOKENIZER)
    (tmp_path / "train.json").write_text(json.dumps(squad("a", question("z", ("a", 0)))))
    lines.clear()
    sets = open_reading_sets(alone, TOKENIZER, lines.append)
    assert sets.evaluation is None
    assert lines == [
        "training: 1 question about 1 passage in 1 window, 0 questions cut to 4 tokens"
    ]
