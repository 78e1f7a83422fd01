"""Labelled sentences and pairs as samples."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from jumar.data.loading.balanced import BalancedKeys
from jumar.data.loading.collate import Stacked
from jumar.data.loading.division import divided, is_divided, report_division
from jumar.data.loading.keyed_set import KeyedSet
from jumar.data.samples import Arrays, SampleKey, fingerprint
from jumar.data.text.labelled_parts import part_file, unknown_label
from jumar.data.text.numbered_lines import Skipping
from jumar.data.text.sentence_files import SUFFIXES, Sentence, SentenceData, read_sentences
from jumar.data.text.sequences import Frame, InMemory, PieceRows, cut_pair, frame_of
from jumar.data.text.tokenizer import Tokenizer
from jumar.ground.errors import UserError
from jumar.ground.text import counted


class Sentences(InMemory):
    """Sentences or pairs, cut to the length of a sample.

    Args:
        sentences: The texts; either all or none have a second text.
        labels: The label of each, as an integer.
        tokenizer: Splits texts into pieces.
        frame: The length of a sample, and its special pieces.
    """

    def __init__(
        self,
        sentences: Sequence[Sentence],
        labels: Sequence[int],
        *,
        tokenizer: Tokenizer,
        frame: Frame,
    ) -> None:
        self.frame = frame
        self.labels = np.array(labels, dtype=np.int64)
        first = [tokenizer.ids(sentence.first) for sentence in sentences]

        has_pairs = bool(sentences) and sentences[0].second is not None
        second = [tokenizer.ids(sentence.second or "") for sentence in sentences]
        max_pieces = frame.length - (3 if has_pairs else 2)
        self.truncated = 0
        for row, second_row in zip(first, second, strict=True):
            self.truncated += len(row) + len(second_row) > max_pieces
            first_length, second_length = cut_pair(len(row), len(second_row), max_pieces)
            del row[first_length:], second_row[second_length:]
        self.first = PieceRows(first)
        self.second = PieceRows(second) if has_pairs else None

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def fingerprint(self) -> str:
        """Fingerprint of pieces and labels; see `Fingerprinted`."""
        second = self.second.content() if self.second is not None else b""
        return fingerprint(self.first.content(), second, self.labels.tobytes())

    def map(self, opened: int, _item: int, _key: SampleKey) -> Arrays:
        """Return `input_ids`, `segment_ids`, `input_mask` and `label`; see `SampleKind.map`."""
        second = None if self.second is None else self.second[opened]
        label = np.asarray(self.labels[opened])
        return {**self.frame.arrays(self.first[opened], second), "label": label}


@dataclass(frozen=True, kw_only=True, eq=False)
class SentenceSets:
    """The parts of a data set, and the names of its labels."""

    train: KeyedSet[Sentences]
    evaluation: KeyedSet[Sentences] | None
    labels: tuple[str, ...]


def open_sentence_sets(
    data: SentenceData, tokenizer: Tokenizer, notice: Callable[[str], None] = lambda _: None
) -> SentenceSets:
    """Open the training and the evaluation set.

    Raises:
        UserError: A file cannot be read, or their labels or columns differ.
    """
    opener = _PartOpener(data, tokenizer, notice)
    path = part_file(data, "train", SUFFIXES)
    assert path is not None
    sentences = opener.read(path)
    labels = data.labels or tuple(sorted({sentence.label for sentence in sentences}))
    if len(labels) == 1:
        raise UserError(
            f"all rows have the label '{labels[0]}'",
            where=str(path),
            todo="Classification needs at least two labels.",
        )
    eval_sentences: Sequence[Sentence] | None = None
    if is_divided(data, data.eval_path):
        sentences, eval_sentences = _divided_sentences(sentences, labels, data, notice)
    train = opener.samples(sentences, labels, "training")
    if eval_sentences is None and (eval_path := part_file(data, "eval", SUFFIXES)) is not None:
        eval_sentences = opener.read(eval_path)
        if (sentences[0].second is None) != (eval_sentences[0].second is None):
            raise UserError(
                "one file has pairs and the other single sentences",
                where=f"{path} and {eval_path}",
                todo="To ignore the second text: data.text_b=none",
            )
    evaluation = None
    if eval_sentences is not None:
        evaluation = sentence_set(
            opener.samples(eval_sentences, labels, "evaluation"), training=False
        )
    balanced = BalancedKeys(train.labels) if data.sampling == "balanced" else None
    return SentenceSets(
        train=replace(sentence_set(train, training=True), epoch_keys=balanced),
        evaluation=evaluation,
        labels=labels,
    )


def _divided_sentences(
    sentences: Sequence[Sentence],
    labels: Sequence[str],
    data: SentenceData,
    notice: Callable[[str], None],
) -> tuple[list[Sentence], list[Sentence]]:
    """Divide sentences into training and held-out ones; equal texts stay on one side."""
    keys = ["\0".join([sentence.first, sentence.second or ""]).encode() for sentence in sentences]
    numbers = {label: number for number, label in enumerate(labels)}
    classes = np.array([numbers.get(sentence.label, -1) for sentence in sentences], np.int64)
    division = divided(data, keys, classes)
    report_division(division, data, classes, notice, by="of each label")
    train, held_out = (
        [sentences[index] for index in side.tolist()]
        for side in (division.train, division.held_out)
    )
    return train, held_out


@dataclass(frozen=True)
class _PartOpener:
    data: SentenceData
    tokenizer: Tokenizer
    notice: Callable[[str], None]

    def read(self, path: Path) -> list[Sentence]:
        """Read the sentences of a file; at least one is required."""
        skipping = Skipping(self.data.skip_corrupt, self.notice)
        sentences: list[Sentence] = []
        labels = self.data.labels
        for sentence in read_sentences(path, self.data, skipping):
            if labels and sentence.label not in labels:
                skipping.fault(unknown_label(sentence.label, labels, sentence.where))
            else:
                sentences.append(sentence)
        if not sentences:
            raise UserError("there is no usable row", where=str(path))
        return sentences

    def samples(self, sentences: Sequence[Sentence], labels: Sequence[str], part: str) -> Sentences:
        """Return the samples of a part."""
        numbers = {label: number for number, label in enumerate(labels)}
        for sentence in sentences:
            if sentence.label not in numbers:
                raise unknown_label(sentence.label, labels, sentence.where)
        frame = frame_of(self.tokenizer.vocabulary, self.data.max_seq_length)
        label_numbers = [numbers[sentence.label] for sentence in sentences]
        samples = Sentences(sentences, label_numbers, tokenizer=self.tokenizer, frame=frame)
        kind = "sentence" if samples.second is None else "pair"
        self.notice(
            f"{part}: {counted(len(samples), kind)} of {counted(len(labels), 'label')}, "
            f"{samples.truncated} cut to {frame.length} tokens"
        )
        return samples


def sentence_set(sentences: Sentences, *, training: bool) -> KeyedSet[Sentences]:
    """Sentences as batches of int64: `input_ids`, `segment_ids` and `input_mask`
    [N, max_seq_length], and `label` [N].
    """
    return KeyedSet(kind=sentences, collate=text_collate(sentences.frame), training=training)


def text_collate(frame: Frame) -> Stacked:
    """Return a collate function for samples of equal length."""
    return Stacked(
        what="samples",
        fields="data.batch_size or data.max_seq_length",
        sample_bytes=3 * 8 * frame.length,
    )
