"""Sentences with a tag for each token as samples."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from jumar.data.loading.keyed_set import KeyedSet
from jumar.data.samples import Arrays, SampleKey, fingerprint
from jumar.data.text.entity_files import SUFFIXES, TaggedSentence, read_tagged
from jumar.data.text.labelled_parts import (
    LabelledData,
    max_seq_length_setting,
    part_file,
    unknown_label,
)
from jumar.data.text.numbered_lines import Skipping, line_of
from jumar.data.text.sentence_set import text_collate
from jumar.data.text.sequences import Frame, InMemory, PieceRows, frame_of
from jumar.data.text.tokenizer import Tokenizer
from jumar.ground.errors import UserError
from jumar.ground.text import counted
from jumar.settings import setting

UNSCORED = -1
"""The label of pieces that loss and scores ignore: [CLS], [SEP], [PAD], and all but the first piece
of a token."""

_MIN_CHARACTER_FRACTION = 0.9
"""Minimum fraction of tokens of one character in data tagged by character; in Weibo's Chinese file,
1 % are Latin letters followed by a digit."""


@dataclass(frozen=True, kw_only=True)
class EntityData(LabelledData):
    """Settings for data with tagged sentences."""

    max_seq_length: int = max_seq_length_setting(256)
    new_texts: str = setting(
        "auto",
        "How `jumar predict` splits a text before tagging it: into characters or words; auto: like "
        "the training data.",
        choices=("auto", "characters", "words"),
    )
    scoring: str = setting(
        "conll",
        "Which entities count: conll: all; strict-iob2, strict-iobes: only those whose tags follow "
        "this scheme, as in seqeval's strict mode.",
        choices=("conll", "strict-iob2", "strict-iobes"),
        changeable=True,
    )


class TaggedSentences(InMemory):
    """Tagged sentences, cut to the length of a sample.

    Args:
        sentences: Tokens and tags.
        numbers: The label of each tag.
        tokenizer: Splits tokens into pieces.
        frame: The length of a sample, and its special pieces.
    """

    def __init__(
        self,
        sentences: Sequence[TaggedSentence],
        numbers: dict[str, int],
        *,
        tokenizer: Tokenizer,
        frame: Frame,
    ) -> None:
        self.frame = frame
        self.truncated = self.lost = 0
        max_pieces = frame.length - 2
        pieces: list[list[int]] = []
        labels: list[list[int]] = []
        for sentence in sentences:
            row: list[int] = []
            label: list[int] = []
            for token, tag in zip(sentence.tokens, sentence.tags, strict=True):
                ids = pieces_of(token, tokenizer)
                row += ids
                label += [numbers[tag], *[UNSCORED] * (len(ids) - 1)]
            self.truncated += len(row) > max_pieces
            self.lost += sum(number != UNSCORED for number in label[max_pieces:])
            pieces.append(row[:max_pieces])
            labels.append(label[:max_pieces])
        self.pieces, self.labels = PieceRows(pieces), PieceRows(labels)

    def __len__(self) -> int:
        return len(self.pieces)

    @property
    def fingerprint(self) -> str:
        """Fingerprint of pieces and tags; see `Fingerprinted`."""
        return fingerprint(self.pieces.content(), self.labels.content())

    def scored_labels(self) -> Iterator[list[int]]:
        """Yield the labels of each sentence that are scored, without truncated tokens."""
        for index in range(len(self)):
            labels = self.labels[index]
            yield labels[labels != UNSCORED].tolist()

    def map(self, opened: int, _item: int, _key: SampleKey) -> Arrays:
        """Return `input_ids`, `segment_ids`, `input_mask` and `label`; see `SampleKind.map`."""
        labels = self.labels[opened]
        label = np.full(self.frame.length, UNSCORED, dtype=np.int64)
        label[1 : len(labels) + 1] = labels
        return {**self.frame.arrays(self.pieces[opened]), "label": label}


def pieces_of(token: str, tokenizer: Tokenizer) -> list[int]:
    """Return the pieces of a token; the piece for unknown words if there are none."""
    return tokenizer.ids(token) or [tokenizer.vocabulary.id_of(tokenizer.rules.unknown)]


@dataclass(frozen=True, kw_only=True, eq=False)
class EntitySets:
    """The parts of a data set.

    Attributes:
        labels: The tags, in the order of the network's outputs.
        by_character: Whether nearly every token of the training data is one character.
    """

    train: KeyedSet[TaggedSentences]
    evaluation: KeyedSet[TaggedSentences] | None
    labels: tuple[str, ...]
    by_character: bool


def open_entity_sets(
    data: EntityData, tokenizer: Tokenizer, notice: Callable[[str], None] = lambda _: None
) -> EntitySets:
    """Open the training and the evaluation set.

    Raises:
        UserError: The files cannot be read, or evaluation has tags that training lacks.
    """
    path = part_file(data, "train", SUFFIXES)
    assert path is not None
    sentences = _read(path, data, notice)
    labels = data.labels or tuple(sorted({tag for sentence in sentences for tag in sentence.tags}))
    opener = _PartOpener(data, tokenizer, labels, notice)
    train = opener.samples(path, sentences, "training")
    eval_path = part_file(data, "eval", SUFFIXES)
    evaluation = None
    if eval_path is not None:
        eval_sentences = opener.samples(eval_path, _read(eval_path, data, notice), "evaluation")
        evaluation = entity_set(eval_sentences, training=False)
    return EntitySets(
        train=entity_set(train, training=True),
        evaluation=evaluation,
        labels=labels,
        by_character=_is_by_character(sentences),
    )


def entity_set(sentences: TaggedSentences, *, training: bool) -> KeyedSet[TaggedSentences]:
    """Tagged sentences as batches of int64 [N, max_seq_length]: `input_ids`, `segment_ids`,
    `input_mask`, and `label`, which is `UNSCORED` for ignored pieces.
    """
    return KeyedSet(kind=sentences, collate=text_collate(sentences.frame), training=training)


def _read(path: Path, data: EntityData, notice: Callable[[str], None]) -> list[TaggedSentence]:
    sentences = list(read_tagged(path, Skipping(data.skip_corrupt, notice)))
    if not sentences:
        raise UserError("there is no usable sentence", where=str(path))
    return sentences


def _is_by_character(sentences: Sequence[TaggedSentence]) -> bool:
    tokens = [token for sentence in sentences for token in sentence.tokens]
    return sum(len(token) == 1 for token in tokens) > _MIN_CHARACTER_FRACTION * len(tokens)


@dataclass(frozen=True)
class _PartOpener:
    data: EntityData
    tokenizer: Tokenizer
    labels: tuple[str, ...]
    notice: Callable[[str], None]

    def samples(
        self, path: Path, sentences: Sequence[TaggedSentence], part: str
    ) -> TaggedSentences:
        """Return the samples of a part."""
        numbers = {label: number for number, label in enumerate(self.labels)}
        for sentence in sentences:
            for index, tag in enumerate(sentence.tags):
                if tag not in numbers:
                    raise unknown_label(tag, self.labels, line_of(path, sentence.line + index))
        frame = frame_of(self.tokenizer.vocabulary, self.data.max_seq_length)
        samples = TaggedSentences(sentences, numbers, tokenizer=self.tokenizer, frame=frame)
        tokens = sum(len(sentence.tokens) for sentence in sentences)
        cut_note = f", {samples.truncated} cut to {frame.length} tokens"
        lost_note = f", which loses {counted(samples.lost, 'tag')}" if samples.truncated else ""
        self.notice(
            f"{part}: {counted(len(samples), 'sentence')}, {counted(tokens, 'token')}, "
            f"{counted(len(self.labels), 'tag')}{cut_note}{lost_note}"
        )
        return samples
