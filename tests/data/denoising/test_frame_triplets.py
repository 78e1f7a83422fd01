"""Triplets of frames: which belong together, one noise level each, the middle one clean."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from jumar.data.denoising.frame_triplets import (
    ClipData,
    Triplet,
    all_triplets,
    inner_triplets,
    open_triplets,
)
from jumar.data.denoising.noise import NoiseSettings
from jumar.data.samples import SampleKey
from jumar.ground.errors import UserError
from tests.data.photographs import png
from tests.data.pictures import write_files, write_zip

DATA = ClipData(
    patch_size=8,
    patches_per_image=4,
    margin=2,
    holdout_frames=2,
    eval_levels=(10.0,),
    noise=NoiseSettings(sigma=(0.0,)),
)


def flat(level: int, height: int = 16, width: int = 20) -> bytes:
    """A frame of one level, so that it is known again in a patch."""
    return png(np.full((height, width, 3), level, np.uint8))


def clips(**changed: bytes) -> dict[str, bytes]:
    """Two clips of six frames with the levels 1 to 6 and 101 to 106, frames 8 to 13."""
    frames = {
        f"{clip}/frame{number + 7}.png": flat(100 * (clip == "b") + number)
        for clip in "ab"
        for number in range(1, 7)
    }
    return {**frames, **{name.replace("__", "/") + ".png": data for name, data in changed.items()}}


@pytest.mark.parametrize("zipped", [False, True])
def test_the_last_frames_of_each_clip_are_for_evaluation(tmp_path: Path, zipped: bool) -> None:
    write = write_zip if zipped else write_files
    data = replace(DATA, path=str(write(tmp_path / ("clips.zip" if zipped else "clips"), clips())))
    train, evaluation = open_triplets(data, seed=1)
    assert evaluation is not None
    keys = [SampleKey(0, index) for index in range(len(train))]
    batch = train.fetch(keys).batch
    assert batch["clean"].shape == (16, 3, 8, 8)
    assert batch["noisy"].shape == (16, 9, 12, 12)
    levels = torch.cat([batch["noisy"][:, ::3, 0, 0], batch["clean"][:, :1, 0, 0]], dim=1)
    seen = {tuple(row) for row in levels.tolist()}
    expected = [(1, 2, 3, 2), (2, 3, 4, 3), (101, 102, 103, 102), (102, 103, 104, 103)]
    assert sorted(seen) == expected
    whole = [evaluation.fetch([SampleKey(0, i)]).batch for i in range(len(evaluation))]
    assert [batch["clean"][0, 0, 0, 0].item() for batch in whole] == [5, 6, 105, 106]
    assert {tuple(batch["noisy"].shape) for batch in whole} == {(1, 9, 16, 20)}


def test_a_frame_has_the_same_noise_in_all_of_its_triplets(tmp_path: Path) -> None:
    data = replace(DATA, path=str(write_files(tmp_path, clips())))
    _, evaluation = open_triplets(data, seed=1)
    assert evaluation is not None
    first, last = (evaluation.fetch([SampleKey(0, index)]).batch["noisy"] for index in (0, 1))
    assert torch.equal(first[:, 0:3], first[:, 3:6])  # its own predecessor
    assert torch.equal(first[:, 3:6], last[:, 0:3])
    assert torch.equal(first[:, 6:9], last[:, 3:6])


def test_the_frames_of_a_triplet_have_one_level_and_different_noise(tmp_path: Path) -> None:
    noise = NoiseSettings(sigma=(5.0, 40.0), storage="float")
    big = {f"{number}.png": flat(128, 64, 64) for number in range(5)}
    data = replace(DATA, path=str(write_files(tmp_path, big)), patch_size=60, noise=noise)
    train, _ = open_triplets(replace(data, eval_path="none"), seed=1)
    noisy = train.fetch([SampleKey(0, index) for index in range(6)]).batch["noisy"] * 255 - 128
    deviations = noisy.unflatten(1, (3, 3)).std(dim=(2, 3, 4))
    assert torch.allclose(deviations, deviations[:, :1].expand(-1, 3), rtol=0.05)
    assert deviations[:, 0].max() > 1.5 * deviations[:, 0].min()
    assert not torch.equal(noisy[:, :3], noisy[:, 3:6])


def test_parts_are_taken_as_they_are(tmp_path: Path) -> None:
    parts = {f"{part}/{name}": data for part in ("train", "val") for name, data in clips().items()}
    train, evaluation = open_triplets(replace(DATA, path=str(write_files(tmp_path, parts))), seed=1)
    assert evaluation is not None
    assert (len(train.kind.triplets), len(evaluation.kind.triplets)) == (8, 12)


def test_ends_repeat_in_evaluation_and_are_left_out_in_training() -> None:
    assert inner_triplets(range(5, 9)) == [Triplet(5, 6, 7), Triplet(6, 7, 8)]
    assert all_triplets(range(5, 7)) == [Triplet(5, 5, 6), Triplet(5, 6, 6)]
    assert all_triplets(range(3, 4)) == [Triplet(3, 3, 3)]


def test_frames_of_two_sizes_are_a_fault_and_another_triplet_takes_the_place(
    tmp_path: Path,
) -> None:
    files = clips(a__frame10=flat(3, 10, 10))
    train, _ = open_triplets(replace(DATA, path=str(write_files(tmp_path, files))), seed=1)
    fetched = train.fetch([SampleKey(0, 0)])
    assert len(fetched.batch["clean"]) == 1
    assert "differ in size" in fetched.faults[0].reason
    assert "a/frame10.png" in fetched.faults[0].reason


def test_too_few_frames_are_told(tmp_path: Path) -> None:
    few = {f"{number}.png": flat(number) for number in range(4)}
    with pytest.raises(UserError, match="no three belong to one clip"):
        open_triplets(replace(DATA, path=str(write_files(tmp_path, few))), seed=1)
