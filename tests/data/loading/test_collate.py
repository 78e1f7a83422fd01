"""From samples to batches: stacked where shapes agree, padded where they differ."""

from collections.abc import Iterator

import numpy as np
import pytest
import torch

from jumar.data.loading.collate import Padded, Stacked, unpadded
from jumar.data.samples import Arrays
from jumar.ground.errors import UserError

STACKED = Stacked(what="pictures", fields="data.batch_size", pictures=("image",))
POLYGONS = [
    np.arange(16, dtype=np.float32).reshape(2, 4, 2),
    np.zeros((0, 4, 2), np.float32),
    np.ones((1, 6, 2), np.float32),
]
PADDED = Padded(
    what="pictures",
    fields="data.batch_size",
    pictures=("image",),
    fill={"polygons": np.nan, "tokens": 0},
)


def pages() -> Iterator[Arrays]:
    """Pictures with polygons and a text each, all in memory that is used again."""
    image = np.empty((3, 5, 3), np.uint8)
    tokens = np.empty(9, np.int64)
    for number, polygons in enumerate(POLYGONS):
        image[:] = number
        tokens[:] = 10 + number
        yield {"image": image, "polygons": polygons, "tokens": tokens[: 2 * number + 1]}


def test_images_become_channels_first_in_channels_last_memory() -> None:
    batch = STACKED(({"image": page["image"]} for page in pages()), 5)
    assert batch["image"].shape == (3, 3, 3, 5)
    assert batch["image"].is_contiguous(memory_format=torch.channels_last)
    assert batch["image"][:, 0, 0, 0].tolist() == [0, 1, 2]


def test_padded_targets_of_any_size_round_trip() -> None:
    batch = PADDED(pages(), 5)
    assert batch["image"][:, 0, 0, 0].tolist() == [0, 1, 2]
    assert batch["polygons"].shape == (3, 2, 6, 2)
    assert batch["polygons_sizes"].tolist() == [[2, 4, 2], [0, 4, 2], [1, 6, 2]]
    for polygons, expected in zip(unpadded(batch, "polygons"), POLYGONS, strict=True):
        assert np.array_equal(polygons.numpy(), expected)
    assert batch["polygons"].isnan().sum() == 3 * 24 - 16 - 12
    assert [tokens.tolist() for tokens in unpadded(batch, "tokens")] == [[10], [11] * 3, [12] * 5]
    assert batch["tokens"].dtype == torch.int64
    assert batch["tokens"][0].tolist() == [10, 0, 0, 0, 0]


def test_padded_batch_is_split_by_slicing_like_any_other() -> None:
    whole = PADDED(pages(), 3)
    part = {name: tensor[1:] for name, tensor in whole.items()}
    assert [len(polygons) for polygons in unpadded(part, "polygons")] == [0, 1]


@pytest.mark.parametrize("collate", [STACKED, PADDED])
def test_zero_samples_give_no_batch(collate: Stacked) -> None:
    assert collate(iter(()), 4) == {}


def test_samples_of_different_shapes_are_named() -> None:
    one, other = {"image": np.zeros((2, 2, 3))}, {"image": np.zeros((2, 3, 3))}
    with pytest.raises(UserError, match=r"'image' as float64 \[2, 3, 3\]"):
        STACKED(iter([one, other]), 2)
    with pytest.raises(UserError, match="image, label for one sample and image for another"):
        STACKED(iter([one, {**one, "label": np.asarray(1)}]), 2)
    flat = {"polygons": np.zeros(3, np.float32), "tokens": np.zeros(1)}
    with pytest.raises(UserError, match="'polygons' with different types or dimensions"):
        PADDED(iter([flat, {**flat, "polygons": np.zeros((1, 2), np.float32)}]), 2)


def test_batch_larger_than_memory_is_refused_before_a_sample_is_made() -> None:
    collate = Stacked(what="patches", fields="data.patch_size", sample_bytes=2**50)

    def samples() -> Iterator[Arrays]:
        raise AssertionError
        yield {}

    with pytest.raises(UserError, match=r"4 patches of 1,048,576.0 GiB do not fit") as caught:
        collate(samples(), 4)
    assert caught.value.where == "data.patch_size"


def test_differing_samples_are_reported_with_both_shapes() -> None:
    one = {"image": np.zeros((2, 2, 3), np.uint8)}

    def refused(other: Arrays, collate: Stacked = STACKED) -> str:
        with pytest.raises(UserError) as error:
            collate(iter([one, other]), 2)
        return str(error.value)

    shape = "Resize or pad, so that all samples of a batch have the same shape and type."
    assert refused({"image": np.zeros((2, 2, 1), np.uint8)}) == (
        "the preprocessing returned 'image' as uint8 [2, 2, 1] for one sample and as uint8 "
        f"[2, 2, 3] for another\n  {shape}"
    )
    assert refused({"image": np.zeros((2, 2, 3), np.int64)}) == (
        "the preprocessing returned 'image' as int64 [2, 2, 3] for one sample and as uint8 "
        f"[2, 2, 3] for another\n  {shape}"
    )
    assert refused({"picture": one["image"]}) == (
        "the preprocessing returned picture for one sample and image for another\n"
        "  All samples of a batch need the same names."
    )
    texts = [{"tokens": np.zeros(2, np.int64)}, {"tokens": np.zeros((1, 2), np.int32)}]
    with pytest.raises(UserError) as error:
        Padded(what="texts", fields="x", fill={"tokens": 0})(iter(texts), 2)
    assert str(error.value) == (
        "the preprocessing returned 'tokens' with different types or dimensions: int32 in 2 "
        "dimensions, int64 in 1 dimensions\n  Only the sizes may differ between samples."
    )


def test_only_arrays_named_and_shaped_as_images_become_channels_first() -> None:
    collate = Stacked(what="pictures", fields="x", pictures=("image", "flat"))
    sample = {
        "image": np.arange(24).reshape(2, 4, 3),
        "other": np.arange(24).reshape(2, 4, 3),
        "flat": np.arange(8).reshape(2, 4),
        "number": np.asarray(np.float32(1.5)),
    }
    batch = collate(iter([sample, sample]), 5)
    assert {name: tuple(tensor.shape) for name, tensor in batch.items()} == {
        "image": (2, 3, 2, 4),
        "other": (2, 2, 4, 3),
        "flat": (2, 2, 4),
        "number": (2,),
    }
    assert batch["image"][1].tolist() == sample["image"].transpose(2, 0, 1).tolist()
    assert batch["number"].tolist() == [1.5, 1.5]
    bare = Stacked(what="pictures", fields="x")
    assert (bare.sample_bytes, bare.pictures) == (0, ())
    assert Padded(what="pictures", fields="x").fill == {}


def test_batch_too_large_for_memory_is_refused_for_its_first_array_or_padding() -> None:
    # An array of 2**50 bytes that takes eight.
    huge = np.broadcast_to(np.zeros(1), (2**47,))
    with pytest.raises(UserError, match=r"1 samples of .* do not fit") as error:
        Stacked(what="samples", fields="data.batch_size")(iter([{"a": huge}]), 1)
    assert error.value.where == "data.batch_size"
    # Padded to the largest of both sides: 2**24 * 2**24 * 8 bytes each.
    flat, high = np.zeros((0, 2**24)), np.zeros((2**24, 0))
    padded = Padded(what="samples", fields="data.batch_size", fill={"a": 0})
    with pytest.raises(UserError, match=r"2 samples of 2,097,152.0 GiB do not fit"):
        padded(iter([{"a": flat}, {"a": high}]), 2)
