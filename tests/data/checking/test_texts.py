"""What is learned about labelled texts, tagged texts and questions."""

import hashlib
from pathlib import Path

import pytest

from jumar.data.checking.item import Item
from jumar.data.checking.texts import checked_questions, checked_sentences, checked_tagged
from jumar.data.samples import Fault
from jumar.data.text.sentence_files import SentenceData


def hashed(*texts: str) -> bytes:
    return hashlib.blake2b("\0".join(texts).encode(), digest_size=16).digest()


def test_pair_has_hashes_with_and_without_case_width_and_blanks(tmp_path: Path) -> None:
    path = tmp_path / "train.tsv"
    rows = ("1\tA ＢC\td e", "0\tx\t ", "0\t \tx", "0\ta\ufffd\tb", "0\tx")
    path.write_text("label\ttext_a\ttext_b\n" + "\n".join(rows) + "\n", encoding="utf-8")
    part = checked_sentences(path, "training", SentenceData())
    assert (part.name, len(part.reader)) == ("training", 4)
    assert part.reader.item(0) == Item(
        where=f"{path}, line 2",
        content=hashed("A ＢC", "d e"),
        meaning=hashed("abc", "de"),
        label="1",
        classes=("1",),
        size=(("length", 7),),
    )
    assert [part.reader.item(index).traits for index in (1, 2, 3)] == [
        ("empty text",),
        ("empty text",),
        ("characters lost in a conversion (U+FFFD)",),
    ]
    assert [fault.origin for fault in part.faults] == [f"{path}, line 6"]
    path.write_text("label\ttext_a\n0\tone\n1\t \n")
    one, blank = map(checked_sentences(path, "training", SentenceData()).reader.item, (0, 1))
    assert (one.content, one.traits) == (hashed("one", ""), ())
    assert blank.traits == ("empty text",)


@pytest.mark.parametrize(
    ("tags", "is_wrong"),
    [
        ("O O", False),
        ("B-X I-X I-X O B-X", False),
        ("B-X M-X E-X S-X", False),
        ("O I-X", True),
        ("I-X O", True),
        ("B-X I-Y", True),
        ("B-X O I-X", True),
        ("B-X E-X I-X", True),
        ("S-X M-X", True),
        ("O E-X", True),
        ("O O B-X I-X I-Y", True),
    ],
)
def test_entity_without_a_begin_tag_is_a_trait(tmp_path: Path, tags: str, is_wrong: bool) -> None:
    path = tmp_path / "train.txt"
    lines = [f"W{number} {tag}" for number, tag in enumerate(tags.split())]
    path.write_text("\n".join(lines) + "\n")
    item = checked_tagged(path, "training").reader.item(0)
    words = [f"W{number}" for number in range(len(lines))]
    assert item == Item(
        where=f"{path}, line 1",
        content=hashed(*words),
        meaning=hashed(*(word.lower() for word in words)),
        label=tags,
        classes=tuple(sorted({tag[2:] for tag in tags.split() if tag != "O"})),
        size=(("length", len(lines)),),
        traits=("entity without a beginning",) if is_wrong else (),
    )


def test_question_has_its_passage_and_moved_answers_are_reported(tmp_path: Path) -> None:
    path = tmp_path / "train.json"
    path.write_text(
        '{"data": [{"paragraphs": [{"context": "The sky is blue", "qas": ['
        '{"id": "1", "question": "Which?", "answers": [{"text": "sky", "answer_start": 4},'
        ' {"text": "blue", "answer_start": 3}, {"text": "red", "answer_start": 0}]},'
        '{"id": "2", "question": "What is?", "answers": [{"text": "sky", "answer_start": 4},'
        ' {"text": "blue", "answer_start": 11}]},'
        '{"id": "3", "question": "None", "answers": [{"text": "red", "answer_start": 0}]}]}]}]}'
    )
    messages: list[str] = []
    part = checked_questions(path, "evaluation", messages.append)
    assert messages == ["evaluation: 1 answer not at answer_start; the actual positions are used"]
    assert (part.name, len(part.reader)) == ("evaluation", 2)
    first, second = map(part.reader.item, (0, 1))
    assert second == Item(
        where=second.where,
        content=hashed("The sky is blue", "What is?"),
        meaning=hashed("theskyisblue", "whatis?"),
        label="blue | sky",
        size=(("passage length", 15), ("question length", 8)),
    )
    assert "question 2" in second.where
    assert (first.label, first.traits) == ("blue | red | sky", ("answer not in its passage",))
    (fault,) = part.faults
    assert fault == Fault(origin=fault.origin, reason="the answer 'red' is not in its passage")
