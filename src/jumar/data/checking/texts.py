"""Checks of labelled texts, tagged texts and questions about passages."""

import hashlib
import unicodedata
from collections.abc import Sequence
from pathlib import Path

from jumar.data.checking.item import CheckedPart, Item
from jumar.data.samples import Fault, Notice
from jumar.data.text.entity_files import TaggedSentence, read_tagged
from jumar.data.text.numbered_lines import Skipping, line_of
from jumar.data.text.reading_files import read_questions
from jumar.data.text.sentence_files import Sentence, SentenceData, read_sentences
from jumar.ground.errors import UserError
from jumar.ground.text import counted


class CollectedFaults(Skipping):
    """Collects the faults of all malformed rows of a file."""

    def __init__(self) -> None:
        super().__init__(0, lambda _: None)
        self.faults: list[Fault] = []

    def fault(self, error: UserError) -> None:
        """Record a fault."""
        self.faults.append(Fault(origin=error.where, reason=error.what))


class TextReader:
    """Provides items that were read with their file."""

    def __init__(self, items: Sequence[Item]) -> None:
        self._items = items

    def __len__(self) -> int:
        return len(self._items)

    def item(self, index: int) -> Item:
        """See `ItemReader.item`."""
        return self._items[index]


def checked_sentences(path: Path, name: str, data: SentenceData) -> CheckedPart:
    """Read the labelled sentences or pairs of a file.

    Raises:
        UserError: It cannot be read, or has none of the columns.
    """
    faults = CollectedFaults()
    items = [_sentence(sentence) for sentence in read_sentences(path, data, faults)]
    return CheckedPart(name=name, reader=TextReader(items), faults=faults.faults)


def checked_tagged(path: Path, name: str) -> CheckedPart:
    """Read the tagged sentences of a file.

    Raises:
        UserError: It cannot be read.
    """
    faults = CollectedFaults()
    items = [_tagged(sentence, path) for sentence in read_tagged(path, faults)]
    return CheckedPart(name=name, reader=TextReader(items), faults=faults.faults)


def checked_questions(path: Path, name: str, notice: Notice) -> CheckedPart:
    """Read the questions of a file.

    Raises:
        UserError: It cannot be read, or is not in SQuAD's format.
    """
    faults = CollectedFaults()
    reading = read_questions(path, faults)
    items: list[Item] = []
    for question in reading.questions:
        passage = reading.passages[question.passage]
        texts = (passage, question.text)
        items.append(
            Item(
                where=question.where,
                content=_hash(*texts),
                meaning=_hash(*map(_plain, texts)),
                label=" | ".join(sorted({answer.text for answer in question.answers})),
                size=(("passage length", len(passage)), ("question length", len(question.text))),
                traits=("answer not in its passage",)
                if any(answer.begin < 0 for answer in question.answers)
                else (),
            )
        )
    if reading.moved:
        notice(
            f"{name}: {counted(reading.moved, 'answer')} not at answer_start; the actual "
            "positions are used"
        )
    return CheckedPart(name=name, reader=TextReader(items), faults=faults.faults)


def _sentence(sentence: Sentence) -> Item:
    texts = (sentence.first, sentence.second or "")
    traits: list[str] = []
    if not sentence.first.strip() or (sentence.second is not None and not sentence.second.strip()):
        traits.append("empty text")
    if any("\ufffd" in text for text in texts):
        traits.append("characters lost in a conversion (U+FFFD)")
    return Item(
        where=sentence.where,
        content=_hash(*texts),
        meaning=_hash(*map(_plain, texts)),
        label=sentence.label,
        classes=(sentence.label,),
        size=(("length", len("".join(texts))),),
        traits=tuple(traits),
    )


def _tagged(sentence: TaggedSentence, path: Path) -> Item:
    kinds = {tag.partition("-")[2] for tag in sentence.tags} - {""}
    return Item(
        where=line_of(path, sentence.line),
        content=_hash(*sentence.tokens),
        meaning=_hash(*map(_plain, sentence.tokens)),
        label=" ".join(sentence.tags),
        classes=tuple(sorted(kinds)),
        size=(("length", len(sentence.tokens)),),
        traits=_boundary_traits(sentence.tags),
    )


def _boundary_traits(tags: Sequence[str]) -> tuple[str, ...]:
    """Return a trait if a tag continues an entity that does not precede it."""
    previous = "O"
    for tag in tags:
        prefix, _, kind = tag.partition("-")
        continues = previous[:1] in ("B", "I", "M") and previous.partition("-")[2] == kind
        if prefix in ("I", "M", "E") and not continues:
            return ("entity without a beginning",)
        previous = tag
    return ()


def _plain(text: str) -> str:
    """Return a text without differences that readers ignore: case, width, whitespace."""
    return "".join(unicodedata.normalize("NFKC", text).casefold().split())


def _hash(*texts: str) -> bytes:
    joined = "\0".join(texts).encode("utf-8", "surrogatepass")
    return hashlib.blake2b(joined, digest_size=16).digest()
