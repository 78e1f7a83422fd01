"""Pre-training data read back: as written, with new masks, and what is wrong with others."""

from pathlib import Path

import numpy as np
import pytest

from jumar.data.records.example import (
    Feature,
    FloatFeature,
    IntegerFeature,
    decode_example,
    encode_example,
)
from jumar.data.records.tfrecord import framed_payload
from jumar.data.samples import Batch, SampleKey
from jumar.data.text.original_order import Masking
from jumar.data.text.pretraining_files import PretrainingRequest
from jumar.data.text.pretraining_options import PretrainingOptions
from jumar.data.text.pretraining_set import NewMasks, open_pretraining_set, record_files
from jumar.data.text.streaming_writer import write_streaming
from jumar.data.text.tokenizer import Tokenizer
from jumar.data.text.vocabulary import Vocabulary
from jumar.ground.errors import UserError
from tests.data.text.one_by_one import masked
from tests.data.text.payloads import payloads_of
from tests.data.text.test_streaming_writer import text_of
from tests.data.text.vocabularies import PIECES

VOCABULARY = Vocabulary(PIECES)
LENGTH, WIDTH = 40, 6
MASK = PIECES.index("[MASK]")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("set")
    (place / "text.txt").write_text(text_of(60, 0), encoding="utf-8")
    options = PretrainingOptions(
        max_seq_length=LENGTH, max_predictions_per_seq=WIDTH, dupe_factor=2
    )
    write_streaming(
        PretrainingRequest(
            files=[place / "text.txt"],
            tokenizer=Tokenizer(VOCABULARY),
            options=options,
            destination=place / "data",
            shards=3,
        )
    )
    return place / "data"


def keys_of(count: int, epoch: int = 0) -> list[SampleKey]:
    return [SampleKey(epoch, index) for index in range(count)]


def true_ids(batch: Batch) -> np.ndarray:
    ids = batch["input_ids"].numpy().copy()
    known = batch["masked_lm_weights"].numpy() > 0
    for row in range(len(ids)):
        places = batch["masked_lm_positions"].numpy()[row, known[row]]
        ids[row, places] = batch["masked_lm_ids"].numpy()[row, known[row]]
    return ids


def test_batches_hold_the_records_in_their_order(folder: Path) -> None:
    data = open_pretraining_set(str(folder), VOCABULARY)
    payloads = [each for path in sorted(folder.glob("*.tfrecord")) for each in payloads_of(path)]
    assert len(data) == len(payloads)
    fetched = data.fetch(keys_of(len(data)))
    assert not fetched.faults
    for index, payload in enumerate(payloads):
        for name, feature in decode_example(payload).items():
            values = fetched.batch[name][index].reshape(-1).tolist()
            assert values == list(feature.values), name
    assert fetched.batch["input_ids"].shape == (len(data), LENGTH)
    assert fetched.batch["masked_lm_weights"].shape == (len(data), WIDTH)
    assert fetched.batch["next_sentence_labels"].shape == (len(data),)


@pytest.mark.parametrize("path", ["data", "data/*.tfrecord"])
def test_folder_and_a_glob_are_the_same_set(folder: Path, path: str) -> None:
    assert len(open_pretraining_set(str(folder.parent / path), VOCABULARY)) == len(
        open_pretraining_set(str(folder), VOCABULARY)
    )


@pytest.mark.parametrize("whole_words", [False, True])
def test_dynamic_masks_hide_other_pieces_of_the_same_text(folder: Path, whole_words: bool) -> None:
    data = open_pretraining_set(str(folder), VOCABULARY)
    anew = open_pretraining_set(
        str(folder), VOCABULARY, seed=3, new_masks=NewMasks(whole_word_mask=whole_words)
    )
    count = len(data)
    written = data.fetch(keys_of(count)).batch
    first, second = (anew.fetch(keys_of(count, epoch)).batch for epoch in (0, 1))
    options = PretrainingOptions(
        max_seq_length=LENGTH, max_predictions_per_seq=WIDTH, whole_word_mask=whole_words
    )
    words_of = Masking(VOCABULARY, options)._candidates
    for batch in (first, second):
        np.testing.assert_array_equal(true_ids(batch), true_ids(written))
        for name in ("input_mask", "segment_ids", "next_sentence_labels"):
            assert batch[name].equal(written[name])
        for row, ids in enumerate(true_ids(batch)):
            length = int(batch["input_mask"][row].sum())
            chosen = batch["masked_lm_positions"][row][batch["masked_lm_weights"][row] > 0]
            assert len(chosen) <= options.predictions(length)
            words = [set(word) for word in words_of(ids[:length].tolist())]
            assert all(
                word <= set(chosen.tolist()) or not word & set(chosen.tolist()) for word in words
            )
    assert not first["masked_lm_positions"].equal(second["masked_lm_positions"])
    assert not first["masked_lm_positions"].equal(written["masked_lm_positions"])
    shown = first["input_ids"].gather(1, first["masked_lm_positions"])
    assert float((shown[first["masked_lm_weights"] > 0] == MASK).float().mean()) == pytest.approx(
        0.8, abs=0.05
    )


def test_dynamic_masks_depend_only_on_seed_epoch_and_item(folder: Path) -> None:
    def ids(*keys: SampleKey, seed: int = 3, training: bool = True) -> np.ndarray:
        data = open_pretraining_set(
            str(folder), VOCABULARY, seed=seed, training=training, new_masks=NewMasks()
        )
        return data.fetch(keys).batch["input_ids"].numpy()

    some, other = SampleKey(1, 5), SampleKey(1, 9)
    np.testing.assert_array_equal(ids(some)[0], ids(other, some)[1])
    assert (ids(some) != ids(some, seed=4)).any()
    # An evaluation has the same masks in every epoch.
    many = [keys_of(20, epoch) for epoch in (0, 1)]
    np.testing.assert_array_equal(*(ids(*keys, training=False) for keys in many))
    assert (ids(*many[0]) != ids(*many[1])).any()


USUAL: dict[str, Feature] = {
    "input_ids": IntegerFeature((2, 7, 3, 8, 3)),
    "input_mask": IntegerFeature((1,) * 5),
    "segment_ids": IntegerFeature((0, 0, 0, 1, 1)),
    "masked_lm_positions": IntegerFeature((1,)),
    "masked_lm_ids": IntegerFeature((9,)),
    "masked_lm_weights": FloatFeature((1.0,)),
    "next_sentence_labels": IntegerFeature((0,)),
}


def write_records(path: Path, *records: dict[str, Feature]) -> Path:
    with path.open("wb") as file:
        for features in records:
            file.write(framed_payload(encode_example(features)))
    return path


@pytest.mark.parametrize(
    ("changed", "what"),
    [
        (
            {"input_ids": IntegerFeature((2, 7, 3, len(PIECES), 3))},
            "the vocabulary has 118 word pieces",
        ),
        ({"input_ids": IntegerFeature((2, 7, 3, -1, 3))}, "the vocabulary has 118 word pieces"),
        ({"masked_lm_positions": IntegerFeature((5,))}, "outside 0 to 4"),
        ({"segment_ids": IntegerFeature((0, 0, 0, 1))}, "different lengths"),
        ({"masked_lm_weights": IntegerFeature((1,))}, "lacks 'masked_lm_weights'"),
        ({"next_sentence_labels": IntegerFeature(())}, "lacks 'next_sentence_labels'"),
        ({"input_mask": FloatFeature((1.0,) * 5)}, "lacks 'input_mask'"),
        ({"input_mask": IntegerFeature((1, 1, 0, 1, 1))}, "padding before a word piece"),
        ({"input_mask": IntegerFeature((0, 1, 1, 1, 1))}, "padding before a word piece"),
    ],
)
def test_foreign_record_is_a_fault_and_as_the_first_an_error(
    tmp_path: Path, changed: dict[str, Feature], what: str
) -> None:
    path = write_records(tmp_path / "good-and-bad", USUAL, {**USUAL, **changed}, USUAL)
    fetched = open_pretraining_set(str(path), VOCABULARY).fetch(keys_of(3))
    (fault,) = fetched.faults
    assert what in fault.reason
    assert "good-and-bad, byte " in fault.origin
    assert len(fetched.batch["input_ids"]) == 3
    with pytest.raises(UserError, match=what):
        open_pretraining_set(str(write_records(tmp_path / "bad", {**USUAL, **changed})), VOCABULARY)


def test_missing_shards_and_paths_without_records_are_errors(folder: Path, tmp_path: Path) -> None:
    for number in (0, 2):
        name = f"pretraining-{number:05}-of-00003.tfrecord"
        (tmp_path / name).write_bytes((folder / name).read_bytes())
    with pytest.raises(UserError, match=r"2 of 3 shards exist; .*00001-of-00003"):
        open_pretraining_set(str(tmp_path), VOCABULARY)
    (tmp_path / "empty").mkdir()
    with pytest.raises(UserError, match="no TFRecord files"):
        open_pretraining_set(str(tmp_path / "empty"), VOCABULARY)
    with pytest.raises(UserError, match="no such folder or file"):
        open_pretraining_set(str(tmp_path / "none"), VOCABULARY)
    path = write_records(tmp_path / "nothing")
    with pytest.raises(UserError, match="no record"):
        open_pretraining_set(str(path), VOCABULARY)


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize(
    "new_masks",
    [
        NewMasks(),
        NewMasks(masked_lm_prob=0.4),
        NewMasks(whole_word_mask=True),
    ],
)
def test_vectorised_masks_equal_masking_one_by_one(
    folder: Path, new_masks: NewMasks, training: bool
) -> None:
    assert NewMasks() == NewMasks(masked_lm_prob=0.15, whole_word_mask=False)
    data = open_pretraining_set(
        str(folder), VOCABULARY, seed=3, new_masks=new_masks, training=training
    )
    keys = [SampleKey(2, item) for item in (4, 0, 7)]
    batch = data.fetch(keys).batch
    options = PretrainingOptions(
        max_seq_length=LENGTH,
        max_predictions_per_seq=WIDTH,
        masked_lm_prob=new_masks.masked_lm_prob,
        whole_word_mask=new_masks.whole_word_mask,
    )
    written = true_ids(open_pretraining_set(str(folder), VOCABULARY).fetch(keys).batch)
    for row, key in enumerate(keys):
        ids = written[row][: int(batch["input_mask"][row].sum())].tolist()
        end = ids.index(PIECES.index("[SEP]"))
        random = np.random.default_rng((2, 3, 2 if training else 0, key.index))
        segments = (ids[1:end], ids[end + 1 : -1], False)
        (expected,) = masked([segments], [0], VOCABULARY, options, random)
        count = len(expected.positions)

        def padded(numbers: list[int], length: int) -> list[int]:
            return [*numbers, *[0] * (length - len(numbers))]

        assert batch["input_ids"][row].tolist() == padded(expected.ids, LENGTH)
        assert batch["masked_lm_positions"][row].tolist() == padded(expected.positions, WIDTH)
        assert batch["masked_lm_ids"][row].tolist() == padded(expected.labels, WIDTH)
        assert batch["masked_lm_weights"][row].tolist() == padded([1] * count, WIDTH)


def test_set_is_opened_for_training_with_seed_0_by_default(folder: Path) -> None:
    plain = open_pretraining_set(str(folder), VOCABULARY, new_masks=NewMasks())
    report = open_pretraining_set(
        str(folder), VOCABULARY, new_masks=NewMasks(), seed=0, training=True
    )
    keys = keys_of(10, epoch=1)
    assert plain.training
    assert plain.fetch(keys).batch["input_ids"].equal(report.fetch(keys).batch["input_ids"])
    types = {name: str(array.dtype) for name, array in plain.fetch(keys).batch.items()}
    assert types.pop("masked_lm_weights") == "torch.float32"
    assert len(types) == 6
    assert set(types.values()) == {"torch.int64"}
    bare = type(plain.kind)(records=plain.kind.records, vocabulary=VOCABULARY)
    assert (bare.seed, bare.training, bare.new_masks) == (0, True, None)
    assert plain.fingerprint == bare.fingerprint == bare.records.fingerprint


@pytest.mark.parametrize(
    ("name", "limit", "after"),
    [
        ("input_ids", 118, ": the vocabulary has 118 word pieces"),
        ("masked_lm_ids", 118, ": the vocabulary has 118 word pieces"),
        ("masked_lm_positions", 5, ""),
        ("segment_ids", 2, ""),
        ("next_sentence_labels", 2, ""),
    ],
)
def test_numbers_have_lower_and_upper_limits(
    tmp_path: Path, name: str, limit: int, after: str
) -> None:
    count = len(USUAL[name].values)

    def opened(number: int) -> None:
        values = IntegerFeature((*USUAL[name].values[: count - 1], number))  # type: ignore[arg-type]
        path = write_records(tmp_path / "records", {**USUAL, name: values})
        open_pretraining_set(str(path), VOCABULARY)

    opened(0)
    opened(limit - 1)
    for number in (-1, limit):
        with pytest.raises(UserError) as error:
            opened(number)
        assert str(error.value) == (
            f"{tmp_path / 'records'}, byte 0: {name} has a number outside 0 to {limit - 1}"
            f"{after}\n  Is this pre-training data, made with this vocabulary?"
        )


def test_mask_has_zeros_and_ones(tmp_path: Path) -> None:
    for values in ((2, 1, 1, 1, 1), (1, 1, 1, 1, -1)):
        path = write_records(tmp_path / "a", {**USUAL, "input_mask": IntegerFeature(values)})
        with pytest.raises(UserError, match="input_mask has a number outside 0 to 1\n"):
            open_pretraining_set(str(path), VOCABULARY)
    path = write_records(tmp_path / "a", {**USUAL, "input_mask": IntegerFeature((1, 1, 1, 0, 0))})
    assert len(open_pretraining_set(str(path), VOCABULARY)) == 1


@pytest.mark.parametrize("name", ["input_mask", "segment_ids", "masked_lm_ids"])
def test_mismatched_lengths_are_reported_with_their_features(tmp_path: Path, name: str) -> None:
    longer = IntegerFeature((*USUAL[name].values, 1))  # type: ignore[arg-type]
    path = write_records(tmp_path / "a", {**USUAL, name: longer})
    with pytest.raises(UserError) as error:
        open_pretraining_set(str(path), VOCABULARY)
    together = {"masked_lm_ids": "masked_lm_positions, masked_lm_ids, masked_lm_weights"}
    names = together.get(name, "input_ids, input_mask, segment_ids")
    assert error.value.what == f"{names} have different lengths"


def test_records_are_identified_by_name(tmp_path: Path) -> None:
    names = [
        "b.tfrecord",
        "a.tfrecords",
        "c.tfrec",
        "x-00000-of-00001",
        "a.txt",
        "pretraining.json",
    ]
    for name in names:
        (tmp_path / name).write_bytes(b"")
    (tmp_path / "folder.tfrecord").mkdir()
    result = ["a.tfrecords", "b.tfrecord", "c.tfrec", "x-00000-of-00001"]
    assert record_files(str(tmp_path)) == [tmp_path / name for name in result]
    assert record_files(str(tmp_path / "a.txt")) == [tmp_path / "a.txt"]
    assert record_files(str(tmp_path / "*.t*")) == [
        tmp_path / name for name in ("a.tfrecords", "a.txt", "b.tfrecord", "c.tfrec")
    ]
    with pytest.raises(UserError) as error:
        record_files(str(tmp_path / "*.none"))
    assert str(error.value) == (
        f"{tmp_path / '*.none'}: there are no TFRecord files\n"
        "  To write some: jumar data pretraining TEXT --vocab VOCAB --to DEST"
    )
    (tmp_path / "x-00000-of-00002").write_bytes(b"")
    with pytest.raises(UserError, match="shards of different sets are mixed"):
        record_files(str(tmp_path))
