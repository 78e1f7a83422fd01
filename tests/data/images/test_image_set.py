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
    open_image_sets,
)
from jumar.data.loading.keyed_set import KeyedSet
from jumar.data.pixels.decode import decode_image
from jumar.data.pixels.preprocessing import (
    Arrays,
    ImagePreprocessing,
    alexnet_preprocessing,
    plain_preprocessing,
    resnext_preprocessing,
)
from jumar.data.samples import Batch, ImageSource, Record, SampleKey
from jumar.ground.errors import UserError
from jumar.settings import describe, from_json, override, to_json
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


def test_a_batch_is_bytes_in_channels_last_memory_with_labels_and_colour_changes(
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
def test_a_sample_does_not_depend_on_the_batch_it_is_in(
    source: MemorySource, training: bool
) -> None:
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


def test_in_training_the_next_readable_sample_stands_in_for_a_broken_one() -> None:
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


def test_in_evaluation_a_broken_sample_is_left_out() -> None:
    source = MemorySource([jpeg(), None, jpeg(seed=1)], [0, 1, 2])
    samples = labelled(source, training=False)
    fetched = samples.fetch(keys(0, 1, 2))
    assert fetched.batch["label"].tolist() == [0, 2]
    assert len(fetched.batch["image"]) == 2
    assert [fault.origin for fault in fetched.faults] == ["memory, entry 1"]
    assert samples.fetch(keys(1)).batch == {}


def test_a_set_of_which_nothing_can_be_read_is_an_error() -> None:
    with pytest.raises(UserError, match="none of the 2 samples"):
        labelled(MemorySource([None, None])).fetch(keys(0))


def test_a_label_out_of_range_is_a_fault_that_says_what_is_allowed() -> None:
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


def test_preprocessing_of_ones_own_is_a_subclass(source: MemorySource) -> None:
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


def test_the_settings_of_the_data_are_described_and_survive_json() -> None:
    data = ImageData(image_size=64, preprocessing=alexnet_preprocessing())
    assert from_json(ImageData(), to_json(data), where="test") == data
    rows = {row.path: row for row in describe(data)}
    assert rows["batch_size"].unit == "samples per rank"
    assert all(row.meaning for row in rows.values())
    assert override(data, ["preprocessing.flip=false"]).preprocessing.flip is False


def test_the_digits_open_as_training_and_evaluation_sets() -> None:
    data = ImageData(path="digits", image_size=SIZE, preprocessing=plain_preprocessing())
    train, evaluation = open_image_sets(data, num_classes=10, seed=0)
    assert len(train) + len(evaluation) == 1797
    assert train.fetch(keys(0, 1)).batch["image"].shape == (2, 3, SIZE, SIZE)
    assert equal(train.fetch(keys(5)).batch, train.fetch(keys(5, epoch=1)).batch)
    assert evaluation is not None
    assert not evaluation.training


def test_evaluation_can_be_done_without(tmp_path: Path) -> None:
    write_files(tmp_path, pets())
    data = ImageData(path=str(tmp_path), eval_path="none", image_size=SIZE)
    train, evaluation = open_image_sets(data, num_classes=0, seed=0)
    assert (len(train), evaluation) == (4, None)


def test_the_label_offset_is_for_shards_with_a_background_class(shared: Path) -> None:
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


def test_an_offset_counts_when_classes_are_compared() -> None:
    source = MemorySource([jpeg()], classes=["background", "cat", "dog"])
    check_classes(source, 2, -1, where="test")
    with pytest.raises(UserError):
        check_classes(source, 2, 0, where="test")
