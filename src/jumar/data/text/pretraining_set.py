"""Pre-training data as samples, with the stored masks or with new masks in every epoch."""

import glob
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jumar.data.loading.collate import Stacked
from jumar.data.loading.keyed_set import KeyedSet
from jumar.data.loading.sampler import sample_random
from jumar.data.records.example import FloatFeature, IntegerFeature, decode_example
from jumar.data.records.record_shards import (
    RECORD_SUFFIXES,
    SHARD_NAME,
    RecordShards,
    check_none_missing,
    check_one_set,
)
from jumar.data.samples import Arrays, CorruptRecord, SampleKey
from jumar.data.text.pretraining_options import PretrainingOptions
from jumar.data.text.streaming_order import VectorMasking
from jumar.data.text.vocabulary import Vocabulary
from jumar.ground.errors import UserError
from jumar.ground.paths import expanded, is_file, is_folder, missing

PIECES = ("input_ids", "input_mask", "segment_ids")
PREDICTIONS = ("masked_lm_positions", "masked_lm_ids", "masked_lm_weights")
LABEL = "next_sentence_labels"
_Features = dict[str, NDArray[Any]]
_KEYS = frozenset(name.encode() for name in (*PIECES, *PREDICTIONS, LABEL))


@dataclass(frozen=True, kw_only=True)
class NewMasks:
    """Masks drawn during training, instead of the stored ones.

    Attributes:
        masked_lm_prob: Fraction of the pieces that are masked.
        whole_word_mask: Whether either all pieces of a word are masked or none. Words found by a
            segmenter are not stored, so they are ignored.
    """

    masked_lm_prob: float = 0.15
    whole_word_mask: bool = False


@dataclass(frozen=True, kw_only=True, eq=False)
class PretrainingInstances:
    """Masked pairs of segments from TFRecord files of jumar or google-research/bert.

    A sample has the features of the records: `input_ids`, `input_mask`, `segment_ids`, int64
    [max_seq_length]; `masked_lm_positions`, `masked_lm_ids`, int64, and `masked_lm_weights`,
    float32, [max_predictions_per_seq]; `next_sentence_labels`, int64 [].

    Attributes:
        records: The records.
        vocabulary: The vocabulary; ids must be below its size.
        new_masks: How to redraw masks in each epoch; None for the stored masks.
        seed: Together with a key, determines the new masks.
        training: Whether new masks differ between epochs.
    """

    records: RecordShards
    vocabulary: Vocabulary
    new_masks: NewMasks | None = None
    seed: int = 0
    training: bool = True

    def __len__(self) -> int:
        return len(self.records)

    @property
    def fingerprint(self) -> str:
        """The records' fingerprint; see `Fingerprinted`."""
        return self.records.fingerprint

    def open(self, item: int, _key: SampleKey) -> tuple[bytes, str]:
        """Read the record and its origin; see `SampleKind.open`."""
        return self.records.payload(item)

    def map(self, opened: tuple[bytes, str], item: int, key: SampleKey) -> Arrays:
        """Decode the features; see `SampleKind.map`."""
        payload, origin = opened
        try:
            sample = _decoded(payload)
        except ValueError as error:
            raise CorruptRecord(origin, error) from error
        self._check(sample, origin)
        if self.new_masks is None:
            return sample
        return self._with_new_masks(sample, SampleKey(key.epoch if self.training else 0, item))

    def _check(self, sample: _Features, origin: str) -> None:
        for names in (PIECES, PREDICTIONS):
            lengths = {len(sample[name]) for name in names}
            if len(lengths) > 1:  # none is empty: see `_decoded`
                raise CorruptRecord(origin, f"{', '.join(names)} have different lengths")
        if np.any(np.diff(sample["input_mask"]) > 0) or not sample["input_mask"][0]:
            raise CorruptRecord(origin, "input_mask has padding before a word piece")
        length, pieces = len(sample["input_ids"]), len(self.vocabulary)
        for name, limit in (
            ("input_ids", pieces),
            ("masked_lm_ids", pieces),
            ("masked_lm_positions", length),
            ("segment_ids", 2),
            ("input_mask", 2),
            (LABEL, 2),
        ):
            if sample[name].min() < 0 or sample[name].max() >= limit:
                of_pieces = f": the vocabulary has {pieces} word pieces" * (limit == pieces)
                raise CorruptRecord(
                    origin, f"{name} has a number outside 0 to {limit - 1}{of_pieces}"
                )

    def _with_new_masks(self, sample: _Features, key: SampleKey) -> Arrays:
        is_masked = sample["masked_lm_weights"] > 0
        ids = sample["input_ids"].astype(np.int32)
        ids[sample["masked_lm_positions"][is_masked]] = sample["masked_lm_ids"][is_masked]
        width = len(is_masked)
        batch = self._masking(ids.shape[0], width)(
            ids[None],
            np.array([sample["input_mask"].sum()], dtype=np.int32),
            np.zeros(1, dtype=np.int32),
            np.zeros(1, dtype=np.bool_),
            sample_random(self.seed, key),
        )
        positions = batch.positions[0]
        return sample | {
            "input_ids": batch.ids[0].astype(np.int64),
            "masked_lm_positions": positions.astype(np.int64),
            "masked_lm_ids": batch.labels[0].astype(np.int64),
            "masked_lm_weights": (np.arange(len(positions)) < batch.counts[0]).astype(np.float32),
        }

    def _masking(self, length: int, width: int) -> VectorMasking:
        masking = self._maskings.get((length, width))
        if masking is None:
            assert self.new_masks is not None
            options = PretrainingOptions(
                max_seq_length=length,
                max_predictions_per_seq=width,
                masked_lm_prob=self.new_masks.masked_lm_prob,
                whole_word_mask=self.new_masks.whole_word_mask,
            )
            masking = self._maskings[length, width] = VectorMasking(self.vocabulary, options)
        return masking

    @cached_property
    def _maskings(self) -> dict[tuple[int, int], VectorMasking]:
        return {}


def open_pretraining_set(
    path: str,
    vocabulary: Vocabulary,
    *,
    seed: int = 0,
    training: bool = True,
    new_masks: NewMasks | None = None,
    notice: Callable[[str], None] = lambda _: None,
) -> KeyedSet[PretrainingInstances]:
    """Open pre-training data as batches: the features of the samples, [N, ...].

    Args:
        path: The folder of `jumar data pretraining`, or TFRecord files: a folder, a glob, a file.
        vocabulary: The vocabulary with which the data was made.
        seed: Seed of new masks.
        training: Whether unreadable records are replaced, and epochs masked differently.
        new_masks: How to redraw masks in each epoch; None for the stored masks.
        notice: Called with notices of slow steps.

    Raises:
        UserError: There are no records, some are missing or damaged, or the first one has other
            content or does not match the vocabulary.
    """
    records = RecordShards(
        record_files(path),
        notice,
        rewrite_command="jumar data pretraining TEXT --vocab VOCAB --to DEST",
    )
    instances = PretrainingInstances(
        records=records,
        vocabulary=vocabulary,
        new_masks=new_masks,
        seed=seed,
        training=training,
    )
    first = SampleKey(0, 0)
    try:
        instances.map(instances.open(0, first), 0, first)
    except CorruptRecord as error:
        raise UserError(
            error.fault.reason,
            where=error.fault.origin,
            todo="Is this pre-training data, made with this vocabulary?",
        ) from error
    return KeyedSet(
        kind=instances,
        collate=Stacked(what="instances", fields="data.batch_size"),
        training=training,
        what="instances",
        todo="Check the path of the data.",
    )


def record_files(path: str) -> list[Path]:
    """Find the TFRecord files at a path.

    Raises:
        UserError: There are none, or shards of a set are missing or mixed with others.
    """
    expanded_path = expanded(path)
    if is_file(expanded_path):
        return [expanded_path]
    if is_folder(expanded_path):
        files = sorted(
            entry
            for entry in expanded_path.iterdir()
            if (entry.suffix in RECORD_SUFFIXES or SHARD_NAME.match(entry.name)) and is_file(entry)
        )
    elif glob.has_magic(path):
        matches = glob.glob(str(expanded_path), recursive=True)  # noqa: PTH207 - absolute patterns
        files = sorted(Path(entry) for entry in matches if is_file(Path(entry)))
    else:
        raise missing(expanded_path, "folder or file of pre-training data")
    if not files:
        raise UserError(
            "there are no TFRecord files",
            where=path,
            todo="To write some: jumar data pretraining TEXT --vocab VOCAB --to DEST",
        )
    check_one_set(files)
    check_none_missing(files)
    return files


def _decoded(payload: bytes) -> _Features:
    """Decode the features of a record by name.

    Raises:
        ValueError: A feature is missing or of another type.
    """
    features = decode_example(payload, _KEYS)
    sample: _Features = {}
    for name in (*PIECES, *PREDICTIONS, LABEL):
        feature = features.get(name)
        kind = FloatFeature if name == "masked_lm_weights" else IntegerFeature
        if not isinstance(feature, kind) or not feature.values:
            raise ValueError(f"it lacks '{name}', which pre-training data needs")
        dtype = np.float32 if kind is FloatFeature else np.int64
        sample[name] = np.array(feature.values, dtype=dtype)
    sample[LABEL] = sample[LABEL].reshape(-1)[0].reshape(())
    return sample
