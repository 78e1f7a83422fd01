"""Files of questions about passages: what is read of them, and what is said of others."""

import json
from pathlib import Path
from typing import Any

import pytest

from jumar.data.text.numbered_lines import Skipping
from jumar.data.text.reading_files import Answer, Question, Reading, read_questions
from jumar.ground.errors import UserError

FORM = "The format is SQuAD's: data, paragraphs, context, qas, question, answers."


def written(path: Path, content: Any) -> Path:
    text = content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)
    path.write_text(text, encoding="utf-8")
    return path


def article(*paragraphs: tuple[str, list[Any]]) -> dict[str, Any]:
    return {"paragraphs": [{"context": text, "qas": asked} for text, asked in paragraphs]}


def asked(text: str, *answers: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"question": text, "answers": list(answers), **more}


def test_passages_and_questions_keep_their_order(tmp_path: Path) -> None:
    path = written(
        tmp_path / "a.json",
        {
            "data": [
                article(
                    ("ab ab", [asked("one", {"text": "ab", "answer_start": 3}, id="Q9")]),
                    ("no question", []),
                ),
                article(
                    (
                        "cd cd",
                        [
                            asked("two", {"text": "d"}, {"text": "d c", "answer_start": "1"}, id=7),
                            asked("three", {"text": "zz", "answer_start": 0}),
                            {"question": "four", "answers": None, "id": "x" * 50},
                        ],
                    )
                ),
            ]
        },
    )
    assert read_questions(path) == Reading(
        passages=["ab ab", "no question", "cd cd"],
        questions=[
            Question("Q9", "one", 0, [Answer("ab", 3)], f"{path}, question 1 of passage 1 ('Q9')"),
            Question(
                "7",
                "two",
                2,
                [Answer("d", 1), Answer("d c", 1)],
                f"{path}, question 1 of passage 3 ('7')",
            ),
            Question("2", "three", 2, [Answer("zz", -1)], f"{path}, question 2 of passage 3 ('2')"),
            Question("x" * 50, "four", 2, [], f"{path}, question 3 of passage 3 ('{'x' * 39}…')"),
        ],
        moved=2,
        absent=1,
    )


@pytest.mark.parametrize(
    ("given", "begin"),
    [
        (0, 0),
        (1, 0),  # 1 before it, 6 after
        (3, 0),  # 3 before it, 4 after
        (4, 7),  # 4 before it, 3 after
        (7, 7),
        (8, 7),
        (99, 7),
        (-1, 0),
        (-5, 0),
    ],
)
def test_answer_is_located_at_its_nearest_occurrence(
    tmp_path: Path, given: int, begin: int
) -> None:
    content = {
        "data": [article(("abc - -abc", [asked("q", {"text": "abc", "answer_start": given})]))]
    }
    reading = read_questions(written(tmp_path / "a.json", content))
    assert reading.questions[0].answers == [Answer("abc", begin)]
    assert (reading.moved, reading.absent) == (int(begin != given), 0)


def test_first_of_equally_near_occurrences_wins_and_blanks_are_not_an_answer(
    tmp_path: Path,
) -> None:
    answers = [{"text": "a", "answer_start": 2}, {"text": " ", "answer_start": 1}]
    content = {"data": [article(("a---a b", [asked("q", *answers)]))]}
    reading = read_questions(written(tmp_path / "a.json", content))
    assert reading.questions[0].answers == [Answer("a", 0), Answer(" ", -1)]
    assert (reading.moved, reading.absent) == (1, 1)


def test_training_skips_unanswered_questions_and_counts_all(
    tmp_path: Path,
) -> None:
    lacking = asked("q", {"text": "x" * 41, "answer_start": 0}, {"text": "y", "answer_start": 0})
    some = asked("q", {"text": "zz", "answer_start": 0}, {"text": "b", "answer_start": 1})
    path = written(tmp_path / "a.json", {"data": [article(("ab", [lacking, asked("r"), some]))]})
    lines: list[str] = []
    reading = read_questions(path, Skipping(2, lines.append))
    assert [question.number for question in reading.questions] == ["0"]
    assert (reading.moved, reading.absent) == (0, 3)
    where = f"{path}, question"
    assert lines == [
        f"skipped: {where} 1 of passage 1 ('0'): the answer '{'x' * 39}…' is not in its passage",
        f"skipped: {where} 2 of passage 1 ('0'): has no answer",
    ]
    with pytest.raises(UserError) as error:
        read_questions(path, Skipping(0, lines.append))
    assert error.value.todo.startswith("Training needs an answer that is part of the passage.")


@pytest.mark.parametrize(
    ("content", "where", "what", "todo"),
    [
        ('{"a": 1,\n\n "b" 2}', ", line 3", "is not JSON: Expecting ':' delimiter", ""),
        ("7", "", "the file is of type int, not dict", ""),
        ({"dat": []}, "", "has no 'data'", FORM),
        ({"data": {}}, "", "'data' is of type dict, not list", ""),
        ({"data": [article(), 3]}, ", article 2", "an article is of type int, not dict", ""),
        (
            {"data": [{"paragraphs": [3]}]},
            ", article 1",
            "a paragraph is of type int, not dict",
            "",
        ),
        (
            {"data": [{"paragraphs": [{"qas": []}]}]},
            ", article 1",
            "has no 'context'",
            FORM,
        ),
        ({"data": [{"paragraphs": [{"context": ""}]}]}, ", article 1", "has no 'qas'", FORM),
        (
            {"data": [article(("a", [])), article(("b", [asked("q"), 5]))]},
            ", question 2 of passage 2",
            "a question is of type int, not dict",
            "",
        ),
        (
            {"data": [article(("a", [{"question": "q", "answers": {"a": 1}}]))]},
            ", question 1 of passage 1 ('0')",
            "'answers' is of type dict, not list",
            "",
        ),
        (
            {"data": [article(("a", [asked("q", {"answer_start": 0})]))]},
            ", question 1 of passage 1 ('0')",
            "has no 'text'",
            FORM,
        ),
        ({"data": [article(("a", []))]}, "", "there are no usable questions", ""),
    ],
)
def test_other_formats_are_reported_with_their_location(
    tmp_path: Path, content: Any, where: str, what: str, todo: str
) -> None:
    path = written(tmp_path / "a.json", content)
    with pytest.raises(UserError) as error:
        read_questions(path)
    assert (error.value.where, error.value.what, error.value.todo) == (f"{path}{where}", what, todo)
