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
    clips_of,
    inner_triplets,
    open_triplets,
    read_frames,
)
from jumar.data.denoising.noise import NoiseSettings
from jumar.data.images.picture_tree import open_all_pictures
from jumar.data.loading.collate import Stacked
from jumar.data.samples import CorruptRecord, SampleKey
from jumar.ground.errors import UserError
from tests.data.photographs import png, scene
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
def test_last_frames_of_each_clip_are_held_out_for_evaluation(tmp_path: Path, zipped: bool) -> None:
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


def test_frame_has_the_same_noise_in_all_of_its_triplets(tmp_path: Path) -> None:
    data = replace(DATA, path=str(write_files(tmp_path, clips())))
    _, evaluation = open_triplets(data, seed=1)
    assert evaluation is not None
    first, last = (evaluation.fetch([SampleKey(0, index)]).batch["noisy"] for index in (0, 1))
    assert torch.equal(first[:, 0:3], first[:, 3:6])  # its own predecessor
    assert torch.equal(first[:, 3:6], last[:, 0:3])
    assert torch.equal(first[:, 6:9], last[:, 3:6])


def test_frames_of_a_triplet_have_one_level_and_different_noise(tmp_path: Path) -> None:
    noise = NoiseSettings(sigma=(5.0, 40.0), storage="float")
    big = {f"{number}.png": flat(128, 64, 64) for number in range(5)}
    data = replace(DATA, path=str(write_files(tmp_path, big)), patch_size=60, noise=noise)
    train, _ = open_triplets(replace(data, eval_path="none"), seed=1)
    noisy = train.fetch([SampleKey(0, index) for index in range(6)]).batch["noisy"] * 255 - 128
    deviations = noisy.unflatten(1, (3, 3)).std(dim=(2, 3, 4))
    assert torch.allclose(deviations, deviations[:, :1].expand(-1, 3), rtol=0.05)
    assert deviations[:, 0].max() > 1.5 * deviations[:, 0].min()
    assert not torch.equal(noisy[:, :3], noisy[:, 3:6])


def test_existing_parts_are_used_unchanged(tmp_path: Path) -> None:
    parts = {f"{part}/{name}": data for part in ("train", "val") for name, data in clips().items()}
    train, evaluation = open_triplets(replace(DATA, path=str(write_files(tmp_path, parts))), seed=1)
    assert evaluation is not None
    assert (len(train.kind.triplets), len(evaluation.kind.triplets)) == (8, 12)


def test_clip_ends_are_repeated_in_evaluation_and_skipped_in_training() -> None:
    assert inner_triplets(range(5, 9)) == [Triplet(5, 6, 7), Triplet(6, 7, 8)]
    assert all_triplets(range(5, 7)) == [Triplet(5, 5, 6), Triplet(5, 6, 6)]
    assert all_triplets(range(3, 4)) == [Triplet(3, 3, 3)]


def test_triplet_with_two_frame_sizes_is_a_fault_and_is_replaced(
    tmp_path: Path,
) -> None:
    files = clips(a__frame10=flat(3, 10, 10))
    train, _ = open_triplets(replace(DATA, path=str(write_files(tmp_path, files))), seed=1)
    fetched = train.fetch([SampleKey(0, 0)])
    assert len(fetched.batch["clean"]) == 1
    assert "differ in size" in fetched.faults[0].reason
    assert "a/frame10.png" in fetched.faults[0].reason


def test_too_few_frames_are_reported(tmp_path: Path) -> None:
    few = {f"{number}.png": flat(number) for number in range(4)}
    with pytest.raises(UserError, match="no three of 4 frames belong to the same clip"):
        open_triplets(replace(DATA, path=str(write_files(tmp_path, few))), seed=1)


def test_each_folder_of_images_is_a_clip(tmp_path: Path) -> None:
    names = ["a/1", "a/2", "a/b/1", "c/1", "c/2", "c/3"]
    write_files(tmp_path, {f"{name}.png": flat(1) for name in names})
    pictures = open_all_pictures(tmp_path)
    folders = [pictures.path(index).rpartition("/")[0] for index in range(6)]
    clips_ = clips_of(pictures)
    assert [index for clip in clips_ for index in clip] == list(range(6))
    assert [{folders[index] for index in clip} for clip in clips_] == [{"a"}, {"a/b"}, {"c"}]
    assert inner_triplets(range(2)) == inner_triplets(range(3, 4)) == []


def test_clean_patch_is_the_centre_of_the_middle_frame(tmp_path: Path) -> None:
    frames = {f"{number}.png": png(scene(24, 30, number)) for number in range(3)}
    noise = NoiseSettings(sigma=(0.0,))
    for margin in (0, 3):
        data = replace(
            DATA, path=str(write_files(tmp_path, frames)), noise=noise, margin=margin, turns=False
        )
        train, none = open_triplets(replace(data, eval_path="none"), seed=4)
        assert none is None
        batch = train.fetch([SampleKey(0, index) for index in range(4)]).batch
        side = 8 + 2 * margin
        assert batch["noisy"].shape == (4, 9, side, side)
        inner = slice(margin, margin + 8)
        assert torch.equal(batch["noisy"][:, 3:6, inner, inner], batch["clean"])
        places: set[tuple[int, int]] = set()
        for noisy in batch["noisy"].permute(0, 2, 3, 1).numpy():
            whole = np.concatenate([scene(24, 30, number) for number in range(3)], axis=2)
            places |= {
                (top, left)
                for top in range(24 - side + 1)
                for left in range(30 - side + 1)
                if np.array_equal(whole[top : top + side, left : left + side], noisy)
            }
        assert len(places) >= 3


def test_patches_are_rotated_as_a_whole_on_request(tmp_path: Path) -> None:
    ramp = np.zeros((8, 8, 3), np.uint8)
    ramp[..., 0] = np.arange(64).reshape(8, 8)
    frames = {f"{number}.png": png(ramp + number) for number in range(3)}
    data = replace(DATA, path=str(write_files(tmp_path, frames)), margin=0, eval_path="none")
    corners: dict[bool, set[int]] = {True: set(), False: set()}
    for turns in (True, False):
        train, _ = open_triplets(replace(data, turns=turns, patches_per_image=40), seed=1)
        batch = train.fetch([SampleKey(0, index) for index in range(40)]).batch
        corners[turns] = set(batch["clean"][:, 0, 0, 0].tolist())
        assert torch.equal(batch["noisy"][:, 0] + 1, batch["noisy"][:, 3])
    assert corners == {True: {1, 8, 57, 64}, False: {1}}


def test_oversized_batch_error_names_the_responsible_settings(tmp_path: Path) -> None:
    """Clean bytes of one frame and noisy float32 of three, with their margin."""
    data = replace(DATA, path=str(write_files(tmp_path, clips())))
    for channels, count in (("colour", 3), ("grey", 1)):
        train, _ = open_triplets(replace(data, channels=channels), seed=1)
        assert isinstance(train.collate, Stacked)
        assert train.collate.sample_bytes == 13 * count * 12**2
        assert train.collate.what == "patches"


def test_every_level_of_every_frame_is_scored(tmp_path: Path) -> None:
    data = replace(DATA, path=str(write_files(tmp_path, clips())), eval_levels=(10.0, 20.0))
    _, evaluation = open_triplets(data, seed=1)
    assert evaluation is not None
    assert len(evaluation) == 8
    whole = [evaluation.fetch([SampleKey(0, index)]).batch for index in range(8)]
    assert [batch["level"].item() for batch in whole] == [0] * 4 + [1] * 4
    assert [batch["clean"][0, 0, 0, 0].item() for batch in whole] == [5, 6, 105, 106] * 2
    # Clipped at 0, noise of twice the strength adds more.
    assert whole[4]["noisy"].float().mean() > whole[0]["noisy"].float().mean() + 1


def test_no_frames_are_held_out_with_a_zero_share_or_another_path(tmp_path: Path) -> None:
    data = replace(DATA, path=str(write_files(tmp_path / "a", clips())))
    train, evaluation = open_triplets(replace(data, holdout_frames=1), seed=1)
    assert evaluation is not None
    assert (len(train.kind.triplets), len(evaluation.kind.triplets)) == (6, 2)
    with pytest.raises(UserError, match="would use the training images"):
        open_triplets(replace(data, holdout_frames=0), seed=1)
    other = {name: flat(7) for name in clips()}
    elsewhere = replace(data, eval_path=str(write_files(tmp_path / "b", other)))
    train, evaluation = open_triplets(elsewhere, seed=1)
    assert evaluation is not None
    assert (len(train.kind.triplets), len(evaluation.kind.triplets)) == (8, 12)


def test_unreadable_first_frame_does_not_hide_equal_sets(tmp_path: Path) -> None:
    files = clips(a__frame8=b"")
    data = replace(DATA, path=str(write_files(tmp_path, files)))
    train, evaluation = open_triplets(data, seed=1)
    assert evaluation is not None
    assert (len(train.kind.triplets), len(evaluation.kind.triplets)) == (4, 4)


def test_clip_errors_have_the_full_message(tmp_path: Path) -> None:
    few = {f"{number}.png": flat(number) for number in range(4)}
    with pytest.raises(UserError) as caught:
        open_triplets(replace(DATA, path=str(write_files(tmp_path / "few", few))), seed=1)
    assert str(caught.value) == (
        f"{tmp_path / 'few'}: no three of 4 frames belong to the same clip\n  Specify a folder of "
        "clips, each with at least three frames in addition to the 2 of data.holdout_frames."
    )
    files = clips(a__frame10=flat(3, 10, 11))
    data = replace(DATA, path=str(write_files(tmp_path / "sizes", files)), eval_path="none")
    frames = open_triplets(data, seed=1)[0].kind.frames
    with pytest.raises(CorruptRecord) as broken:
        read_frames(frames, Triplet(1, 2, 3))
    assert broken.value.fault.reason == (
        "the frames a/frame9.png, a/frame10.png, a/frame11.png differ in size: 20 x 16, 11 x 10, "
        "20 x 16"
    )
    assert broken.value.fault.origin == f"{tmp_path}/sizes/a/frame10.png"


def test_fingerprint_depends_on_which_frames_belong_together(tmp_path: Path) -> None:
    data = replace(DATA, path=str(write_files(tmp_path, clips())), patches_per_image=1)
    prints = {
        open_triplets(replace(data, holdout_frames=count), seed=1)[0].kind.fingerprint
        for count in (1, 2, 2)
    }
    assert len(prints) == 2
    evaluation = open_triplets(data, seed=1)[1]
    assert evaluation is not None
    assert evaluation.kind.fingerprint not in prints
