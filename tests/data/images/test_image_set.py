import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from jumar.data.images.image_set import (
    ImageData,
    LabelledPictures,
    check_classes,
    image_set,
    offset_for,
    open_image_sets,
)
from jumar.data.images.sources import open_source
from jumar.data.images.tfrecord_writer import write_tfrecords
from jumar.data.loading.keyed_set import KeyedSet
from jumar.data.loading.sampler import sample_random
from jumar.data.pixels.decode import decode_image
from jumar.data.pixels.erasing import ErasingSettings, RandomErasing
from jumar.data.pixels.mixing import CutMix
from jumar.data.pixels.preprocessing import (
    Arrays,
    ImagePreprocessing,
    alexnet_preprocessing,
    plain_preprocessing,
    resnext_preprocessing,
)
from jumar.data.pixels.rand_augment import AutoAugmentSettings, RandAugment
from jumar.data.samples import Batch, ImageSource, Record, SampleKey
from jumar.ground.errors import UserError
from jumar.settings import checked, describe, from_json, override, to_json
from tests.data.pictures import pets, picture, write_files
from tests.data.scenes import MemorySource, jpeg

SIZE = 24


def labelled(
    source: ImageSource,
    preprocessing: ImagePreprocessing | None = None,
    *,
    training: bool = True,
    num_classes: int = 10,
    label_offset: int = 0,
    seed: int = 3,
) -> KeyedSet[LabelledPictures]:
    return image_set(
        LabelledPictures(
            source=source,
            preprocessing=preprocessing or resnext_preprocessing(),
            image_size=SIZE,
            num_classes=num_classes,
            label_offset=label_offset,
            seed=seed,
            training=training,
        )
    )


def keys(*indices: int, epoch: int = 0) -> list[SampleKey]:
    return [SampleKey(epoch, index) for index in indices]


def equal(one: Batch, other: Batch) -> bool:
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


@pytest.fixture(scope="module")
def source() -> MemorySource:
    return MemorySource([jpeg(seed=seed) for seed in range(8)], labels=list(range(8)))


def test_batch_is_bytes_in_channels_last_memory_with_labels_and_colour_changes(
    source: MemorySource,
) -> None:
    batch = labelled(source).fetch(keys(1, 5, 2)).batch
    assert batch["image"].shape == (3, 3, SIZE, SIZE)
    assert batch["image"].dtype == torch.uint8
    assert batch["image"].is_contiguous(memory_format=torch.channels_last)
    assert batch["label"].tolist() == [1, 5, 2]
    assert batch["contrast"].dtype == torch.float32
    assert batch["contrast"].shape == (3,)


@pytest.mark.parametrize("training", [True, False])
def test_sample_does_not_depend_on_the_batch_it_is_in(source: MemorySource, training: bool) -> None:
    samples = labelled(source, training=training)
    together = samples.fetch(keys(4, 0, 7, epoch=2)).batch
    for row, index in enumerate((4, 0, 7)):
        alone = samples.fetch(keys(index, epoch=2)).batch
        assert equal(alone, {name: tensor[row : row + 1] for name, tensor in together.items()})


def test_augmentation_changes_with_epoch_and_seed_and_evaluation_does_not(
    source: MemorySource,
) -> None:
    first, other = labelled(source), labelled(source, seed=4)
    batch = first.fetch(keys(0, 1)).batch
    assert not equal(batch, first.fetch(keys(0, 1, epoch=1)).batch)
    assert not equal(batch, other.fetch(keys(0, 1)).batch)
    scored = [
        labelled(source, training=False, seed=seed).fetch(keys(0, 1, epoch=seed)).batch
        for seed in (0, 1)
    ]
    assert equal(*scored)


def test_in_training_the_next_readable_sample_replaces_a_broken_one() -> None:
    whole = [jpeg(seed=seed) for seed in range(5)]
    source = MemorySource([whole[0], None, whole[2][:-200], whole[3], None], [0, 1, 2, 3, 4])
    samples = labelled(source)
    fetched = samples.fetch(keys(0, 1, 2, 4))
    assert fetched.batch["label"].tolist() == [0, 3, 3, 0]
    assert equal(fetched.batch, samples.fetch(keys(0, 3, 3, 0)).batch)
    assert [fault.origin for fault in fetched.faults] == [
        f"memory, entry {index}" for index in (1, 2, 2, 4)
    ]
    assert "checksum" in fetched.faults[0].reason
    assert fetched.faults[1].reason


def test_in_evaluation_a_broken_sample_is_skipped() -> None:
    source = MemorySource([jpeg(), None, jpeg(seed=1)], [0, 1, 2])
    samples = labelled(source, training=False)
    fetched = samples.fetch(keys(0, 1, 2))
    assert fetched.batch["label"].tolist() == [0, 2]
    assert len(fetched.batch["image"]) == 2
    assert [fault.origin for fault in fetched.faults] == ["memory, entry 1"]
    assert samples.fetch(keys(1)).batch == {}


def test_fully_unreadable_set_is_an_error() -> None:
    with pytest.raises(UserError, match="none of the 2 samples"):
        labelled(MemorySource([None, None])).fetch(keys(0))


def test_out_of_range_label_is_a_fault_that_names_the_valid_range() -> None:
    source = MemorySource([jpeg()] * 3, labels=[0, 1000, 1001])
    fetched = labelled(source, training=False, num_classes=1000, label_offset=-1).fetch(
        keys(0, 1, 2)
    )
    assert fetched.batch["label"].tolist() == [999]
    assert [fault.origin for fault in fetched.faults] == ["memory, entry 0", "memory, entry 2"]
    assert "label 0 is not within 1 to 1000" in fetched.faults[0].reason
    assert "label 1001 is not within 1 to 1000" in fetched.faults[1].reason


@dataclass(frozen=True, kw_only=True)
class EdgePreprocessing(ImagePreprocessing):
    """One's own: training adds a plane of edges, evaluation does not crop, the device halves."""

    def train_image(self, record: Record, image_size: int, random: np.random.Generator) -> Arrays:
        pixels = super().train_image(record, image_size, random)["image"].astype(np.int16)
        edges = np.abs(np.diff(pixels, axis=1, append=pixels[:, -1:])).astype(np.float32)
        return {"image": pixels.astype(np.uint8), "edges": edges}

    def eval_image(self, record: Record, image_size: int) -> Arrays:
        return {"image": decode_image(record.encoded, fast=False)}

    def on_device(self, batch: Mapping[str, Tensor], training: bool) -> Tensor:
        return super().on_device(batch, training) / 2


def test_custom_preprocessing_is_a_subclass(source: MemorySource) -> None:
    own = EdgePreprocessing()
    batch = labelled(source, own).fetch(keys(0, 1)).batch
    assert batch["edges"].shape == (2, SIZE, SIZE, 3)
    assert own.on_device(batch, True).shape == (2, 3, SIZE, SIZE)
    scored = labelled(source, own, training=False).fetch(keys(0)).batch
    assert scored["image"].shape == (1, 3, 40, 50)


def test_samples_of_different_shapes_are_an_error_that_names_them() -> None:
    source = MemorySource([jpeg(20, 30), jpeg(30, 20)])
    with pytest.raises(UserError, match=r"'image' as uint8 \[30, 20, 3\]"):
        labelled(source, EdgePreprocessing(), training=False).fetch(keys(0, 1))


def test_data_settings_are_described_and_survive_json() -> None:
    data = ImageData(image_size=64, preprocessing=alexnet_preprocessing())
    assert from_json(ImageData(), to_json(data), where="test") == data
    rows = {row.path: row for row in describe(data)}
    assert rows["batch_size"].unit == "samples per rank"
    assert all(row.meaning for row in rows.values())
    assert override(data, ["preprocessing.flip=false"]).preprocessing.flip is False


def test_digits_open_as_training_and_evaluation_sets() -> None:
    data = ImageData(path="digits", image_size=SIZE, preprocessing=plain_preprocessing())
    train, evaluation = open_image_sets(data, num_classes=10, seed=0)
    assert len(train) + len(evaluation) == 1797
    assert train.fetch(keys(0, 1)).batch["image"].shape == (2, 3, SIZE, SIZE)
    assert equal(train.fetch(keys(5)).batch, train.fetch(keys(5, epoch=1)).batch)
    assert evaluation is not None
    assert not evaluation.training


def test_evaluation_is_optional(tmp_path: Path) -> None:
    write_files(tmp_path, pets())
    data = ImageData(path=str(tmp_path), eval_path="none", image_size=SIZE)
    train, evaluation = open_image_sets(data, num_classes=0, seed=0)
    assert (len(train), evaluation) == (4, None)


def test_label_offset_is_for_shards_with_a_background_class(shared: Path) -> None:
    shards = str(shared / "data" / "parity" / "formats" / "imagenet")
    data = ImageData(path=shards, eval_path="none", image_size=SIZE, label_offset=-1)
    train, _ = open_image_sets(data, num_classes=1000, seed=0)
    fetched = train.fetch(keys(0, 2))
    assert fetched.batch["label"].tolist() == [0, 999]
    digits, _ = open_image_sets(dataclasses.replace(data, path="digits"), num_classes=10, seed=0)
    assert digits.kind.label_offset == 0


def test_shards_without_names_need_the_number_of_classes(shared: Path) -> None:
    data = ImageData(path=str(shared / "data" / "parity" / "formats" / "imagenet"))
    with pytest.raises(UserError, match="number of classes"):
        open_image_sets(dataclasses.replace(data, eval_path="none"), num_classes=0, seed=0)


def test_more_classes_than_outputs_are_an_error_with_both_numbers(tmp_path: Path) -> None:
    write_files(
        tmp_path,
        {f"{part}/{name}/{part}.jpg": picture() for part in ("train", "val") for name in "abc"},
    )
    data = ImageData(path=str(tmp_path), image_size=SIZE)
    with pytest.raises(UserError, match=r"3 classes .* 2 outputs") as caught:
        open_image_sets(data, num_classes=2, seed=0)
    assert "model.num_classes=3" in caught.value.todo
    for asked, outputs in ((3, 3), (5, 5), (0, 3)):
        train, _ = open_image_sets(data, num_classes=asked, seed=0)
        assert train.kind.num_classes == outputs


def test_offset_counts_when_classes_are_compared() -> None:
    source = MemorySource([jpeg()], classes=["background", "cat", "dog"])
    check_classes(source, 2, -1, where="test")
    with pytest.raises(UserError):
        check_classes(source, 2, 0, where="test")


def test_settings_have_defaults_and_bounds_and_say_whether_a_resumed_run_may_change_them() -> None:
    rows = {row.path: (row.value, row.allowed) for row in describe(ImageData())}
    expected = {
        "path": ("digits", ""),
        "eval_path": ("", ""),
        "image_size": (224, "1 or more"),
        "batch_size": (128, "1 or more"),
        "label_offset": (0, "-1 to 0"),
        "sampling": ("natural", "natural, balanced"),
        "auto_augment": ("none", "none, randaugment"),
        "erasing": ("none", "none, random"),
        "mixing": ("none", "none, mixup, cutmix, mixup-or-cutmix"),
    }
    assert {name: rows[name] for name in expected} == expected
    own = {"path", "eval_path", "image_size", "batch_size", "label_offset", "preprocessing"}
    changeable = {
        field.name for field in dataclasses.fields(ImageData) if field.metadata["changeable"]
    }
    assert changeable & (own | expected.keys()) == {"eval_path"}


def test_mixing_needs_an_even_batch_size() -> None:
    for size in (2, 4, 6):
        assert checked(ImageData(mixing=CutMix(), batch_size=size)).mixes
    assert not checked(ImageData(batch_size=5)).mixes
    with pytest.raises(UserError) as caught:
        checked(ImageData(mixing=CutMix(), batch_size=5))
    assert (caught.value.what, caught.value.where, caught.value.todo) == (
        "images are mixed in pairs, and 5 is odd",
        "data.batch_size",
        "Choose an even number, on every rank.",
    )


def test_image_options_are_off_by_default(source: MemorySource) -> None:
    plain = LabelledPictures(
        source=source,
        preprocessing=plain_preprocessing(),
        image_size=SIZE,
        num_classes=8,
        training=True,
    )
    batch = image_set(plain).fetch(keys(0, 7)).batch
    assert set(batch) == {"image", "label"}
    assert batch["label"].tolist() == [0, 7]
    assert (plain.seed, plain.label_offset, plain.changes_pixels) == (0, 0, False)
    assert plain.fingerprint == ""
    numbered = image_set(dataclasses.replace(plain, numbered=True)).fetch(keys(5, 2)).batch
    assert numbered["index"].tolist() == [5, 2]
    assert numbered["index"].dtype == torch.int64
    # Two sets are the same one or two, whatever they hold; comparing arrays would be no answer.
    assert dataclasses.replace(plain) != plain


@pytest.mark.parametrize("which", ["auto_augment", "erasing", "both"])
def test_sample_generator_drives_augmentation_then_erasing(
    source: MemorySource, which: str
) -> None:
    preprocessing = dataclasses.replace(plain_preprocessing(), flip=True)
    changes: dict[str, AutoAugmentSettings | ErasingSettings] = {
        "auto_augment": RandAugment(operations=3, magnitude=15.0),
        "erasing": RandomErasing(probability=1.0, fill="mean"),
    }
    pictures = LabelledPictures(
        source=source,
        preprocessing=preprocessing,
        image_size=SIZE,
        num_classes=8,
        training=True,
        seed=9,
        **{name: value for name, value in changes.items() if which in (name, "both")},  # type: ignore[arg-type]
    )
    assert pictures.changes_pixels
    result = image_set(pictures).fetch([SampleKey(3, 6)]).batch["image"][0].permute(1, 2, 0)
    random = sample_random(9, SampleKey(3, 6))
    expected = preprocessing.train_image(source.read(6), SIZE, random)["image"]
    if which != "erasing":
        expected = RandAugment(operations=3, magnitude=15.0).changed(expected, random)  # type: ignore[arg-type]
    if which != "auto_augment":
        expected = RandomErasing(probability=1.0, fill="mean").erased(  # type: ignore[arg-type]
            expected, random, (127.5, 127.5, 127.5)
        )
    assert np.array_equal(result.numpy(), expected)


def test_outputs_are_named_by_the_classes_shifted_by_the_offset() -> None:
    def outputs(classes: list[str], num_classes: int, label_offset: int) -> list[str]:
        source = MemorySource([jpeg()], classes=classes)
        samples = labelled(source, num_classes=num_classes, label_offset=label_offset)
        return samples.kind.outputs()

    assert outputs(["background", "cat", "dog"], 3, -1) == ["cat", "dog", "class 2"]
    assert outputs(["cat", "dog"], 2, 0) == ["cat", "dog"]
    assert outputs([], 2, 0) == []


def test_set_reads_ahead_and_has_the_fingerprint_of_its_source() -> None:
    class Store(MemorySource):
        fingerprint = "of the store"
        wanted: tuple[int, ...] = ()

        def read_ahead(self, items: list[int]) -> None:
            self.wanted += tuple(items)

    store = Store([jpeg()] * 4, labels=[0, 1, 2, 3])
    samples = labelled(store)
    samples.kind.read_ahead([2, 1])
    assert store.wanted == (2, 1)
    assert (samples.fingerprint, len(samples.kind)) == ("of the store", 4)


@pytest.mark.parametrize(
    ("names", "offset"),
    [("background\ncat\ndog\n", -1), ("cat\nbackground\n", 0), (None, -1)],
    ids=["background", "no background", "unnamed"],
)
def test_offset_is_for_shards_whose_first_class_is_the_background(
    tmp_path: Path, names: str | None, offset: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JUMAR_CACHE", str(tmp_path / "cache"))
    write_tfrecords(
        MemorySource([jpeg(), jpeg()], [1, 2]), tmp_path / "to", shards=1, split_prefix="train"
    )
    write_tfrecords(
        MemorySource([jpeg()], [2]), tmp_path / "to", shards=1, split_prefix="validation"
    )
    if names is not None:
        (tmp_path / "to" / "labels.txt").write_text(names)
    source = open_source(str(tmp_path / "to"), "train")
    assert offset_for(source, -1) == offset
    assert offset_for(source, 0) == 0
    data = ImageData(path=str(tmp_path / "to"), image_size=SIZE, label_offset=-1)
    count = len(source.classes) + offset if names else 3
    train, evaluation = open_image_sets(data, num_classes=0 if names else 3, seed=0)
    assert evaluation is not None
    assert (train.kind.num_classes, evaluation.kind.num_classes) == (count, count)
    assert (train.kind.label_offset, evaluation.kind.label_offset) == (offset, offset)
    assert (train.kind.training, evaluation.kind.training) == (True, False)


def test_wrong_class_counts_have_the_full_message(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JUMAR_CACHE", str(tmp_path / "cache"))
    source = MemorySource([jpeg()], classes=["background", "cat", "dog"])
    assert offset_for(source, -1) == 0
    with pytest.raises(UserError) as caught:
        check_classes(source, 1, -1, where="here")
    assert (caught.value.what, caught.value.where, caught.value.todo) == (
        "the data has 3 classes (label offset -1), the model has 1 output",
        "here",
        "Set model.num_classes=2, or 0 to use the number of classes in the data.",
    )
    write_tfrecords(MemorySource([jpeg()]), tmp_path / "to", shards=1, split_prefix="train")
    with pytest.raises(UserError) as caught:
        open_image_sets(ImageData(path=str(tmp_path / "to")), num_classes=0, seed=0)
    assert (caught.value.what, caught.value.where) == (
        "the shards do not state the number of classes",
        str(tmp_path / "to"),
    )


def test_balancing_and_held_out_samples_are_reported(tmp_path: Path) -> None:
    files = {f"a/{n}.jpg": jpeg(seed=n) for n in range(4)}
    files |= {f"b/{n}.jpg": jpeg(seed=n) for n in range(8)}
    path = str(write_files(tmp_path, files))
    messages: list[str] = []
    data = ImageData(path=path, image_size=SIZE, val_fraction=0.25, sampling="balanced")
    train, held_out = open_image_sets(data, num_classes=0, seed=0, notice=messages.append)
    assert held_out is not None
    assert (len(train), len(held_out)) == (9, 3)
    assert messages == [
        f"evaluation: 3 of the 12 training samples (0.25, of each class, split seed "
        f"{data.split_seed}, hash {held_out.fingerprint})",
        "balanced sampling: 2 classes of 3 to 6 samples, each used 4 times an epoch",
    ]
    messages.clear()
    digits = ImageData(image_size=SIZE, val_fraction=0.25)
    open_image_sets(digits, num_classes=0, seed=0, notice=messages.append)
    assert messages[1:] == ["digits: its own evaluation part is not used"]
    assert len(open_image_sets(ImageData(eval_path="digits"), num_classes=10, seed=0)[0]) == 1501
