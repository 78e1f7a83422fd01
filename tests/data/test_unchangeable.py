"""What the rooms of records, texts and loading hand around cannot be changed on the way."""

import dataclasses

import pytest

from jumar.data.loading import collate, division, keyed_set, loader_settings
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
