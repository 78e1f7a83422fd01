"""Decoding and evaluation preprocessing of 13 photographs, against the original scripts' graphs."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from jumar.data.images.sources import open_source
from jumar.data.pixels.decode import decode_image
from jumar.data.pixels.preprocessing import (
    ImagePreprocessing,
    alexnet_preprocessing,
    resnext_preprocessing,
)
from jumar.data.samples import Record
from tests.parity.fixture import ParityCase

RECIPES = {"alexnet_eval": alexnet_preprocessing(), "resnext_eval": resnext_preprocessing()}


@pytest.fixture(scope="module")
def case(parity: Path) -> ParityCase:
    return ParityCase(parity / "imagenet_records.npz")


@pytest.fixture(scope="module")
def records(parity: Path, case: ParityCase) -> Sequence[Record]:
    source = open_source(str(parity / "formats" / "imagenet"), "train")
    assert len(source) == len(case.config["records"])
    return [source.read(index) for index in range(len(source))]


def on_device(
    preprocessing: ImagePreprocessing, pixels: NDArray[np.generic]
) -> NDArray[np.float32]:
    """The device half on one [height, width, 3] image, as [height, width, 3] again."""
    batch = {"image": torch.from_numpy(pixels)[None].permute(0, 3, 1, 2)}
    return preprocessing.on_device(batch, training=False)[0].permute(1, 2, 0).numpy()


@pytest.mark.parametrize(
    ("result", "fast"), [("decode_accurate", False), ("decode_fast_nofancy", True)]
)
def test_every_image_decodes_to_tensorflows_pixels(
    case: ParityCase, records: Sequence[Record], result: str, fast: bool
) -> None:
    for number, record in enumerate(records):
        key = f"{number:02d}/{result}"
        pixels = decode_image(record.encoded, fast=fast)
        assert list(pixels.shape) == case.meta["results"][key]["shape"]
        assert np.array_equal(pixels.reshape(-1)[case.arrays[f"i/{key}"]], case.arrays[f"r/{key}"])


def test_image_stored_uncropped_decodes_to_the_same_bytes(
    case: ParityCase, records: Sequence[Record]
) -> None:
    pixels = decode_image(records[1].encoded, fast=True)
    assert np.array_equal(pixels, case.arrays["full/01_decode_fast_nofancy"])


@pytest.mark.parametrize("result", RECIPES)
def test_evaluation_view_equals_the_original_before_it_is_rounded(
    case: ParityCase, records: Sequence[Record], result: str
) -> None:
    preprocessing = RECIPES[result]
    for number, record in enumerate(records):
        ours = on_device(preprocessing, preprocessing.eval_levels(record, 224))
        key = f"{number:02d}/{result}"
        case.check(key, ours)
        norm = float(np.linalg.norm(ours.astype(np.float64)))
        assert norm == pytest.approx(case.meta["results"][key]["stats"][2], rel=1e-6)


@pytest.mark.parametrize("result", RECIPES)
def test_shipping_bytes_changes_the_evaluation_view_by_half_a_level_at_most(
    case: ParityCase, records: Sequence[Record], result: str
) -> None:
    preprocessing = RECIPES[result]
    half = 0.5 / np.array(preprocessing.std, dtype=np.float32)
    for number, record in enumerate(records):
        key = f"{number:02d}/{result}"
        ours = on_device(preprocessing, preprocessing.eval_image(record, 224)["image"])
        where = case.arrays[f"i/{key}"]
        error = np.abs(ours.reshape(-1)[where] - case.arrays[f"r/{key}"])
        assert (error <= half[where % 3] + 1e-4).all()


def test_stored_boxes_and_labels_are_read(case: ParityCase, records: Sequence[Record]) -> None:
    for record, stored in zip(records, case.config["records"], strict=True):
        assert record.label == stored["label"]
        assert np.allclose(
            np.array(record.boxes).reshape(-1, 4),
            np.array(stored["boxes_ymin_xmin_ymax_xmax"]).reshape(-1, 4),
        )
