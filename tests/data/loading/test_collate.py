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


def test_pictures_become_channels_first_in_channels_last_memory() -> None:
    batch = STACKED(({"image": page["image"]} for page in pages()), 5)
    assert batch["image"].shape == (3, 3, 3, 5)
    assert batch["image"].is_contiguous(memory_format=torch.channels_last)
    assert batch["image"][:, 0, 0, 0].tolist() == [0, 1, 2]


def test_targets_of_any_size_come_back_as_they_were() -> None:
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


def test_a_padded_batch_is_split_by_slicing_like_any_other() -> None:
    whole = PADDED(pages(), 3)
    part = {name: tensor[1:] for name, tensor in whole.items()}
    assert [len(polygons) for polygons in unpadded(part, "polygons")] == [0, 1]


@pytest.mark.parametrize("collate", [STACKED, PADDED])
def test_without_a_sample_there_is_no_batch(collate: Stacked) -> None:
    assert collate(iter(()), 4) == {}


def test_samples_that_do_not_fit_together_are_named() -> None:
    one, other = {"image": np.zeros((2, 2, 3))}, {"image": np.zeros((2, 3, 3))}
    with pytest.raises(UserError, match=r"'image' as float64 \[2, 3, 3\]"):
        STACKED(iter([one, other]), 2)
    with pytest.raises(UserError, match="image, label for one sample and image for another"):
        STACKED(iter([one, {**one, "label": np.asarray(1)}]), 2)
    flat = {"polygons": np.zeros(3, np.float32), "tokens": np.zeros(1)}
    with pytest.raises(UserError, match="'polygons' with different types or dimensions"):
        PADDED(iter([flat, {**flat, "polygons": np.zeros((1, 2), np.float32)}]), 2)


def test_a_batch_larger_than_memory_is_refused_before_a_sample_is_made() -> None:
    collate = Stacked(what="patches", fields="data.patch_size", sample_bytes=2**50)

    def samples() -> Iterator[Arrays]:
        raise AssertionError
        yield {}

    with pytest.raises(UserError, match=r"4 patches of 1,048,576.0 GiB do not fit") as caught:
        collate(samples(), 4)
    assert caught.value.where == "data.patch_size"
