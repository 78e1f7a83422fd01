"""What the rooms of records, texts and loading hand around cannot be changed on the way, and what
is easily confused is given by name."""

import dataclasses
import inspect
from collections.abc import Callable
from typing import Any

import pytest

from jumar.data.loading import (
    collate,
    division,
    keyed_set,
    loader,
    loader_settings,
    sampler,
)
from jumar.data.records import example, record_shards, stored_shards, tfrecord
from jumar.data.text import (
    basic_words,
    documents,
    entity_set,
    estimate,
    instance_batch,
    labelled_parts,
    pretraining_files,
    pretraining_options,
    pretraining_set,
    reading_files,
    reading_set,
    sentence_files,
    sentence_set,
    sequences,
    streaming_order,
    streaming_writer,
    tokenizer,
    vocabulary,
    vocabulary_training,
)

NAMED = (
    *(collate.Stacked, collate.Padded, division.DividedData, division.Division),
    *(keyed_set.KeyedSet, loader_settings.LoaderSettings, record_shards.ShardGap),
    *(stored_shards.ShardListing, stored_shards.StoredShards, tfrecord.RecordIndex),
    *(entity_set.EntityData, entity_set.EntitySets, estimate.Estimate),
    *(instance_batch.InstanceBatch, labelled_parts.TextData, labelled_parts.LabelledData),
    *(pretraining_files.PretrainingRequest, pretraining_files.WrittenPretraining),
    *(pretraining_options.PretrainingOptions, pretraining_set.NewMasks),
    *(pretraining_set.PretrainingInstances, reading_set.ReadingData, reading_set.ReadingSets),
    *(sentence_files.SentenceData, sentence_set.SentenceSets, streaming_order.FlatDocuments),
    *(tokenizer.TokenizerRules, tokenizer._TokenizerConfig),
)
"""Their fields are given by name alone."""
IN_ORDER = (
    *(example.BytesFeature, example.FloatFeature, example.IntegerFeature),
    *(basic_words.BasicWords, documents.Span, entity_set._Opening, sentence_set._Opening),
    *(reading_files.Question, sequences.Frame, streaming_writer.ChunkFacts),
    *(streaming_writer._Work, vocabulary.Vocabulary),
)
"""Few enough fields to be given in their order."""
THEMSELVES = (
    *(keyed_set.KeyedSet, entity_set.EntitySets, pretraining_set.PretrainingInstances),
    *(reading_set.ReadingSets, sentence_set.SentenceSets, vocabulary.Vocabulary),
)
"""They hold arrays or words by the thousand, and equal only themselves."""


def parameters(kind: type) -> tuple[bool, bool]:
    made = kind.__dataclass_params__  # type: ignore[attr-defined]
    return made.frozen, made.eq


@pytest.mark.parametrize("kind", [*NAMED, *IN_ORDER])
def test_no_field_can_be_set_afterwards_and_few_kinds_compare_by_content(kind: type) -> None:
    assert parameters(kind) == (True, kind not in THEMSELVES)
    by_name = {field.kw_only for field in dataclasses.fields(kind)}
    assert by_name == {kind in NAMED}


BY_NAME: dict[Callable[..., Any], str] = {
    division.divided: "groups",
    loader.resolve_workers: "local_world on_cpu",
    loader.train_batches: (
        "seed first_step last_step batch_per_rank rank world workers prefetch tally"
    ),
    loader.eval_batches: "batch rank world workers tally",
    sampler.batch_keys: "size batch_per_rank rank world epoch_keys",
    record_shards.RecordShards: "again stored",
    stored_shards.ShardListing.opened: "beside",
    tfrecord.RecordFileError: "where good",
    tfrecord.scan_records: "block_bytes",
    entity_set.TaggedSentences: "tokenizer frame",
    entity_set.entity_set: "training",
    estimate.announced: "processes",
    pretraining_set.open_pretraining_set: "seed training new_masks notice",
    reading_set.ReadingWindows: "tokenizer data",
    reading_set.reading_set: "training",
    sentence_files.read_sentences: "labelled",
    sentence_set.Sentences: "tokenizer frame",
    sentence_set.sentence_set: "training",
    streaming_order.streaming_instances: "chunk duplicate",
    tokenizer.open_tokenizer: "lower_case longest_word",
    vocabulary_training.train_vocabulary: "size words min_frequency progress",
}


@pytest.mark.parametrize("function", BY_NAME, ids=lambda function: function.__qualname__)
def test_numbers_and_options_side_by_side_are_given_by_name(function: Callable[..., Any]) -> None:
    parameters = inspect.signature(function).parameters.values()
    by_name = [each.name for each in parameters if each.kind is each.KEYWORD_ONLY]
    assert by_name == BY_NAME[function].split()
