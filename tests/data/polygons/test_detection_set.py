"""Images with words become batches: by key, with targets, and back to outlines."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from jumar.data.loading.faults import FaultTally
from jumar.data.loading.loader import train_batches
from jumar.data.polygons.augmentation import TextAugmentation
from jumar.data.polygons.detection_data import DetectionData
from jumar.data.polygons.detection_set import (
    batch_regions,
    input_size,
    open_detection_sets,
    open_evaluation,
)
from jumar.data.samples import SampleKey
from jumar.ground.errors import UserError
from tests.data.pictures import picture, write_files

KEYS = [SampleKey(0, 0), SampleKey(0, 1), SampleKey(3, 0)]


@pytest.fixture
def settings(tmp_path: Path) -> Callable[..., DetectionData]:
    """Two training images, one of them damaged on demand, and two for evaluation."""
    word = b"20,20,90,22,90,50,20,48,word\n10,52,30,52,30,58,10,58,###\n"
    files = {
        "train/img_1.jpg": picture(size=(100, 60)),
        "train/gt_img_1.txt": word,
        "train/img_2.jpg": picture(size=(120, 70)),
        "train/gt_img_2.txt": word,
        "test/img_1.png": picture(kind="PNG", size=(100, 60)),
        "test/gt_img_1.txt": word,
        "test/img_2.png": picture(kind="PNG", size=(70, 60)),
        "test/gt_img_2.txt": b"",
    }
    write_files(tmp_path, files)

    def made(**changes: object) -> DetectionData:
        base = {"path": str(tmp_path), "image_size": 64, "eval_batch_size": 2}
        return DetectionData(**{**base, **changes})  # pyright: ignore[reportArgumentType]

    return made


def test_training_batches_hold_crops_and_the_targets_of_the_network(
    settings: Callable[..., DetectionData],
) -> None:
    plain = TextAugmentation(background_share=0.0, scales=(1.0,))
    data = settings(augmentation=plain)
    kernels, _ = open_detection_sets(data, targets="kernels", seed=1)
    batch = kernels.fetch(KEYS).batch
    assert {name: tuple(tensor.shape) for name, tensor in batch.items()} == {
        "image": (3, 3, 64, 64),
        "kernels": (3, 6, 16, 16),
        "mask": (3, 16, 16),
    }
    assert batch["kernels"][:, 5].any()
    assert (batch["kernels"][:, 0].sum() < batch["kernels"][:, 5].sum()).item()
    score, _ = open_detection_sets(data, targets="score", seed=1)
    batch = score.fetch(KEYS).batch
    assert tuple(batch["geometry"].shape) == (3, 5, 16, 16)
    assert batch["geometry"].dtype == torch.float32
    assert ((batch["geometry"][:, 0] > 0) <= (batch["score"] > 0)).all()


def test_sample_depends_only_on_its_key_and_the_seed(
    settings: Callable[..., DetectionData],
) -> None:
    first, _ = open_detection_sets(settings(), targets="kernels", seed=1)
    again, _ = open_detection_sets(settings(), targets="kernels", seed=1)
    other, _ = open_detection_sets(settings(), targets="kernels", seed=2)
    whole = first.fetch(KEYS).batch["image"]
    assert torch.equal(whole[2:], again.fetch(KEYS[2:]).batch["image"])
    assert not torch.equal(whole[0], whole[2])
    assert not torch.equal(whole, other.fetch(KEYS).batch["image"])


def test_evaluation_batches_have_outlines_in_pixels_of_the_file(
    settings: Callable[..., DetectionData],
) -> None:
    _, evaluation = open_detection_sets(settings(), targets="kernels", seed=1)
    assert evaluation is not None
    batch = evaluation.fetch(KEYS[:2]).batch
    assert tuple(batch["image"].shape) == (2, 3, 64, 128)
    assert batch["image_sizes"].tolist() == [[64, 128, 3], [64, 96, 3]]
    assert batch["scale"].tolist() == pytest.approx(np.array([[1.28, 64 / 60], [96 / 70, 64 / 60]]))
    assert batch["index"].tolist() == [0, 1]
    regions = batch_regions(batch)
    assert [len(each) for each in regions] == [2, 0]
    np.testing.assert_array_equal(regions[0][0].corners, [[20, 20], [90, 22], [90, 50], [20, 48]])
    assert [region.ignored for region in regions[0]] == [False, True]


def test_uncertain_words_are_masked_in_training_but_scored(
    settings: Callable[..., DetectionData], tmp_path: Path
) -> None:
    for part in ("train", "test"):
        (tmp_path / part / "gt_img_1.txt").write_bytes(b"5,5,95,5,95,55,5,55,?")
    plain = TextAugmentation(background_share=0.0, scales=(1.0,))
    train, evaluation = open_detection_sets(settings(augmentation=plain), targets="kernels", seed=1)
    batch = train.fetch(KEYS[:1]).batch
    assert not batch["kernels"].any()
    assert not batch["mask"].all()
    assert evaluation is not None
    assert not batch_regions(evaluation.fetch(KEYS[:1]).batch)[0][0].ignored


def test_damaged_images_are_counted_and_replaced(
    settings: Callable[..., DetectionData], tmp_path: Path
) -> None:
    (tmp_path / "train" / "img_2.jpg").write_bytes(b"not an image")
    train, _ = open_detection_sets(settings(), targets="kernels", seed=1)
    fetched = train.fetch(KEYS)
    assert len(fetched.batch["image"]) == 3
    assert [fault.origin for fault in fetched.faults] == [f"{tmp_path}/train/img_2.jpg"]


def test_workers_give_the_same_batches(settings: Callable[..., DetectionData]) -> None:
    train, _ = open_detection_sets(settings(), targets="score", seed=1)
    alone, helped = (
        [
            batch["geometry"].clone()
            for batch in train_batches(
                train,
                seed=1,
                first_step=0,
                last_step=3,
                batch_per_rank=2,
                workers=workers,
                tally=FaultTally(),
            )
        ]
        for workers in (0, 1)
    )
    assert len(alone) == 3
    assert all(torch.equal(*pair) for pair in zip(alone, helped, strict=True))


def test_evaluation_may_be_off_but_not_on_the_training_images(
    settings: Callable[..., DetectionData], tmp_path: Path
) -> None:
    _, none = open_detection_sets(settings(eval_path="none"), targets="kernels", seed=1)
    assert none is None
    same = settings(path=str(tmp_path / "train"))
    with pytest.raises(UserError, match="would use the training images"):
        open_detection_sets(same, targets="kernels", seed=1)
    with pytest.raises(UserError, match="no path set"):
        open_detection_sets(settings(path=""), targets="kernels", seed=1)
    with pytest.raises(UserError, match="multiple of 32"):
        settings(image_size=70).check()


def test_sides_are_rounded_up_as_in_the_original_psenet(parity: Path) -> None:
    original = np.load(parity / "psenet.npz")
    for size, target in zip(
        original["in/resize_candidates"], original["r/resize/target_hw"], strict=True
    ):
        data = DetectionData(eval_longest=1200, eval_rounding="up")
        assert input_size(*size.tolist(), data) == tuple(target.tolist())


def test_sides_are_rounded_down_without_easts_extra_step(parity: Path) -> None:
    original = np.load(parity / "east.npz")
    for size, target in zip(
        original["in/resize_candidates"], original["r/resize/target_hw"], strict=True
    ):
        for ours, theirs, side in zip(
            input_size(*size.tolist(), DetectionData(eval_longest=2400, eval_rounding="down")),
            target.tolist(),
            size.tolist(),
            strict=True,
        ):
            shrunk = int(side * min(1.0, 2400 / size.max()))
            assert ours == max(32, theirs if shrunk % 32 == 0 else theirs + 32 * (shrunk >= 64))


def test_images_are_enlarged_for_evaluation_up_to_the_longest_side() -> None:
    data = DetectionData(eval_longest=320, eval_scale=2.0, eval_rounding="down")
    assert input_size(64, 128, data) == (128, 256)
    assert input_size(100, 200, data) == (160, 320)
    assert input_size(64, 128, data, longest=192) == (96, 192)


@pytest.mark.parametrize(
    ("size", "data", "expected"),
    [
        ((32, 33), DetectionData(), (32, 64)),
        ((31, 1), DetectionData(), (32, 32)),
        ((31, 63), DetectionData(eval_rounding="down"), (32, 32)),
        ((64, 95), DetectionData(eval_rounding="down"), (64, 64)),
        ((600, 2400), DetectionData(), (320, 1216)),
        ((1200, 1200), DetectionData(), (1216, 1216)),
        ((100, 50), DetectionData(eval_scale=0.5), (64, 32)),
    ],
)
def test_sides_are_positive_multiples_of_32(
    size: tuple[int, int], data: DetectionData, expected: tuple[int, int]
) -> None:
    assert input_size(*size, data) == expected


def test_mismatched_settings_have_the_full_message(
    settings: Callable[..., DetectionData],
) -> None:
    with pytest.raises(UserError) as caught:
        settings(image_size=70).check()
    assert str(caught.value) == "data.image_size: 70 is not a multiple of 32\n  Use 64 or 96."
    settings(image_size=96).check()
    with pytest.raises(UserError) as caught:
        open_detection_sets(settings(path=""), targets="kernels", seed=1)
    assert str(caught.value) == (
        "data.path: no path set\n  Specify a folder or zip of images and label files."
    )


def test_equal_training_and_evaluation_images_are_reported(
    settings: Callable[..., DetectionData], tmp_path: Path
) -> None:
    with pytest.raises(UserError) as caught:
        open_detection_sets(settings(path=str(tmp_path / "train")), targets="kernels", seed=1)
    assert str(caught.value) == (
        "data.eval_path: evaluation would use the training images\n"
        "  Set it to other images or to none, or put folders train and test into data.path."
    )


def test_labels_next_to_the_images_apply_to_the_part_they_name(
    settings: Callable[..., DetectionData], tmp_path: Path
) -> None:
    """`labels` for both parts of `path`; of another path only `eval_labels`."""
    for part in ("train", "test"):
        for file in sorted((tmp_path / part).glob("*.txt")):
            place = tmp_path.parent / "labels" / part / file.name
            place.parent.mkdir(parents=True, exist_ok=True)
            file.rename(place)
    labels = str(tmp_path.parent / "labels")
    for changes in (
        {"labels": labels},
        {
            "labels": labels,
            "eval_path": str(tmp_path / "test"),
            "eval_labels": f"{labels}/test",
        },
    ):
        data = settings(**changes)
        train, evaluation = open_detection_sets(data, targets="kernels", seed=1)
        assert evaluation is not None
        assert (len(train), len(evaluation), len(open_evaluation(data))) == (2, 2, 2)
    alone = settings(labels=labels, eval_path=str(tmp_path / "test"))
    with pytest.raises(UserError, match="no label files"):
        open_evaluation(alone)


def test_settings_decide_which_words_are_too_small_to_learn(
    settings: Callable[..., DetectionData], tmp_path: Path
) -> None:
    (tmp_path / "train" / "gt_img_1.txt").write_bytes(b"5,5,95,5,95,55,5,55,word")
    whole = TextAugmentation(background_share=0, scales=(1.0,), least_side=1.0, crop_attempts=1)
    masks: list[bool] = []
    for least in (30.0, 35.0):
        data = settings(augmentation=whole, image_size=64, least_word=least)
        train, _ = open_detection_sets(data, targets="score", seed=1)
        batch = train.fetch(KEYS[:1]).batch
        assert batch["score"].any()
        assert batch["image"][0, :, :38].float().mean() > 0
        masks.append(bool(batch["mask"].all()))
    # The image of 100 x 60 pixels is shown at 64: its word is 32 high.
    assert masks == [True, False]


def test_evaluation_pads_images_with_black_and_words_as_ignored(
    settings: Callable[..., DetectionData], tmp_path: Path
) -> None:
    (tmp_path / "test" / "gt_img_2.txt").write_bytes(b"1,1,9,1,9,9,1,9,a")
    _, evaluation = open_detection_sets(settings(), targets="kernels", seed=1)
    assert evaluation is not None
    batch = evaluation.fetch(KEYS[:2]).batch
    assert batch["image"][1, :, :, 96:].max() == 0
    assert batch["image"][1, :, :, :96].float().mean() > 0
    assert batch["ignored"].tolist() == [[False, True], [False, True]]
    assert batch["corner_counts"].tolist() == [[4, 4], [4, 0]]
    assert batch["corners"].shape == (2, 2, 4, 2)
    assert batch["image"].dtype == torch.uint8
    (first, second) = batch_regions(batch)
    assert [each.corners.tolist() for each in second] == [[[1, 1], [9, 1], [9, 9], [1, 9]]]
    assert [len(each.corners) for each in first] == [4, 4]
