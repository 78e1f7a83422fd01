"""Reads questions about passages with their answers, from JSON files like SQuAD 1.1 and CMRC 2018.

In CMRC's files, `answer_start` is wrong for 2 % of the answers, so an answer is searched for in its
passage if the text at its stated position differs.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from jumar.data.text.numbered_lines import Skipping, decoded_file, excerpt, line_of
from jumar.ground.errors import UserError
from jumar.ground.json_text import parse_json

SUFFIXES = (".json",)
T = TypeVar("T")


class Answer(NamedTuple):
    """An answer and its position in the passage; -1 if it does not occur there."""

    text: str
    begin: int


@dataclass(frozen=True)
class Question:
    """A question about a passage.

    Attributes:
        passage: Index of the passage.
        where: File and question, for messages.
    """

    number: str
    text: str
    passage: int
    answers: Sequence[Answer]
    where: str


@dataclass
class Reading:
    """The content of a file.

    Attributes:
        moved: Number of answers that are not at their `answer_start`.
        absent: Number of answers that are not in their passage.
    """

    passages: list[str] = field(default_factory=list[str])
    questions: list[Question] = field(default_factory=list[Question])
    moved: int = 0
    absent: int = 0


def read_questions(path: Path, skipping: Skipping | None = None) -> Reading:
    """Read the passages and questions of a file.

    Args:
        path: The file.
        skipping: For training: counter of questions without an answer in their passage, which are
            faults. None if answers are not needed.

    Raises:
        UserError: The file cannot be read, is not in this format, has no questions, or has more
            faults than are tolerated.
    """
    try:
        content = parse_json(decoded_file(path))
    except json.JSONDecodeError as error:
        raise UserError(f"is not JSON: {error.msg}", where=line_of(path, error.lineno)) from error
    except ValueError as error:
        raise UserError(f"cannot be read as JSON: {error}", where=str(path)) from None
    reading = Reading()
    for passage, questions in _paragraphs(content, str(path)):
        reading.passages.append(passage)
        for number, entry in enumerate(questions, start=1):
            where = f"{path}, question {number} of passage {len(reading.passages)}"
            _add(reading, _of_type(entry, dict, "a question", where), where, skipping)
    if not reading.questions:
        raise UserError("there are no usable questions", where=str(path))
    return reading


def _paragraphs(content: Any, where: str) -> Iterator[tuple[str, list[Any]]]:
    articles = _value(_of_type(content, dict, "the file", where), "data", list, where)
    for number, article in enumerate(articles, start=1):
        article_where = f"{where}, article {number}"
        article = _of_type(article, dict, "an article", article_where)
        for paragraph in _value(article, "paragraphs", list, article_where):
            paragraph = _of_type(paragraph, dict, "a paragraph", article_where)
            yield (
                _value(paragraph, "context", str, article_where),
                _value(paragraph, "qas", list, article_where),
            )


def _add(reading: Reading, entry: dict[str, Any], where: str, skipping: Skipping | None) -> None:
    number = str(entry.get("id", len(reading.questions)))
    where = f"{where} ('{excerpt(number)}')"
    text = _value(entry, "question", str, where)
    passage = reading.passages[-1]
    answers: list[Answer] = []
    for item in _of_type(entry.get("answers") or [], list, "'answers'", where):
        item = _of_type(item, dict, "an answer", where)
        answer_text = _value(item, "text", str, where)
        stated = item.get("answer_start", -1)
        begin = _begin(passage, answer_text, stated if isinstance(stated, int) else -1)
        reading.moved += begin not in (stated, -1)
        reading.absent += begin < 0
        answers.append(Answer(answer_text, begin))
    if skipping is not None and all(answer.begin < 0 for answer in answers):
        fault = f"the answer '{excerpt(answers[0].text)}' is not in its passage" if answers else ""
        advice = "Training needs an answer that is part of the passage."
        skipping.fault(UserError(fault or "has no answer", where=where, todo=advice))
        return
    question = Question(number, text, len(reading.passages) - 1, answers, where)
    reading.questions.append(question)


def _begin(passage: str, text: str, stated: int) -> int:
    """Return the position of a text in a passage nearest to the stated one; -1 if not found."""
    if not text.strip():
        return -1
    if stated >= 0 and passage.startswith(text, stated):
        return stated
    before = passage.rfind(text, 0, max(stated, 0) + len(text))
    after = passage.find(text, max(stated, 0))
    candidates = [candidate for candidate in (before, after) if candidate >= 0]
    return min(candidates, key=lambda candidate: abs(candidate - stated), default=-1)


def _value(entry: dict[str, Any], name: str, kind: type[T], where: str) -> T:
    if name not in entry:
        raise UserError(
            f"has no '{name}'",
            where=where,
            todo="The format is SQuAD's: data, paragraphs, context, qas, question, answers.",
        )
    return _of_type(entry[name], kind, f"'{name}'", where)


def _of_type(value: Any, kind: type[T], name: str, where: str) -> T:
    if not isinstance(value, kind):
        fault = f"{name} is of type {type(value).__name__}, not {kind.__name__}"
        raise UserError(fault, where=where)
    return value
