"""Training patches: cut from the images, turned in eight ways, the same for equal keys."""

import pickle
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.lib.stride_tricks import sliding_window_view

from jumar.data.denoising.noise import NoiseSettings
from jumar.data.denoising.patch_set import Patches, mirrored, patch_set, random_window, turned
from jumar.data.loading.collate import Stacked
from jumar.data.loading.keyed_set import KeyedSet
from jumar.data.samples import SampleKey
from jumar.ground.errors import UserError
from tests.data.photographs import photographs, scene

SIDE = 16


def patches_of(
    folder: Path, *scenes: np.ndarray, per_picture: int = 8, **changed: object
) -> KeyedSet[Patches]:
    chosen = {"patch_size": SIDE, "noise": NoiseSettings(), "seed": 3, **changed}
    channels, scales = chosen.pop("channels", "colour"), chosen.pop("scales", (1.0,))
    pictures = photographs(folder, *(scenes or (scene(),)), channels=channels, scales=scales)
    return patch_set(Patches(pictures=pictures, **chosen), per_picture=per_picture)


def keys(count: int, epoch: int = 0) -> list[SampleKey]:
    return [SampleKey(epoch, index) for index in range(count)]


@pytest.mark.parametrize("channels", ["colour", "grey"])
@pytest.mark.parametrize("storage", ["uint8", "float"])
def test_batch_is_bytes_and_its_noisy_version(tmp_path: Path, channels: str, storage: str) -> None:
    noise = NoiseSettings(sigma=(25.0,), storage=storage)
    patches = patches_of(tmp_path, channels=channels, noise=noise)
    batch = patches.fetch(keys(8)).batch
    shape = (8, 3 if channels == "colour" else 1, SIDE, SIDE)
    assert batch["clean"].shape == batch["noisy"].shape == shape
    assert batch["clean"].dtype == torch.uint8
    assert batch["noisy"].dtype == (torch.uint8 if storage == "uint8" else torch.float32)
    assert batch["clean"].is_contiguous(memory_format=torch.channels_last)
    unit = batch["noisy"] / 255 if storage == "uint8" else batch["noisy"]
    assert (unit - batch["clean"] / 255).std().item() * 255 == pytest.approx(25, rel=0.15)


def test_clean_patches_are_crops_in_one_of_eight_orientations(tmp_path: Path) -> None:
    patches = patches_of(tmp_path, scene(20, 24), per_picture=60)
    windows = sliding_window_view(scene(20, 24), (SIDE, SIDE), axis=(0, 1))
    cuts = {
        np.ascontiguousarray(cut.transpose(1, 2, 0)).tobytes() for row in windows for cut in row
    }
    ways: set[int] = set()
    for clean in patches.fetch(keys(60)).batch["clean"].permute(0, 2, 3, 1).numpy():
        fitting = [turn for turn in range(8) if _turned_back(clean, turn).tobytes() in cuts]
        assert fitting
        ways.update(fitting)
    assert ways == set(range(8))


def _turned_back(pixels: np.ndarray, turn: int) -> np.ndarray:
    return np.rot90(pixels[::-1] if turn % 2 else pixels, -(turn // 2))


def test_eight_orientations_differ() -> None:
    pixels = np.arange(16, dtype=np.uint8).reshape(4, 4, 1)
    assert len({turned(pixels, turn).tobytes() for turn in range(8)}) == 8


def test_equal_keys_give_equal_patches_in_any_batch_and_epochs_differ(
    tmp_path: Path,
) -> None:
    patches = patches_of(tmp_path, scales=(1.0, 0.8))
    whole = patches.fetch(keys(8)).batch
    alone = patches.fetch([SampleKey(0, 5)]).batch
    pickled = pickle.loads(pickle.dumps(patches)).fetch(keys(8)).batch
    later = patches.fetch(keys(8, epoch=1)).batch
    for name in ("clean", "noisy"):
        assert torch.equal(whole[name][5:6], alone[name])
        assert torch.equal(whole[name], pickled[name])
        assert not torch.equal(whole[name], later[name])


def test_scales_are_drawn_in_proportion_to_their_area(tmp_path: Path) -> None:
    dark, light = np.zeros((40, 40, 3), np.uint8), np.full((40, 40, 3), 200, np.uint8)
    patches = patches_of(tmp_path, dark, light, scales=(1.0, 0.5), per_picture=200)
    drawn = [0, 0]
    read = patches.kind.pictures.read

    def counted(index: int, scale: int = 0) -> np.ndarray:
        drawn[scale] += 1
        return read(index, scale)

    patches.kind.pictures.read = counted
    clean = patches.fetch(keys(400)).batch["clean"]
    assert drawn[0] / 400 == pytest.approx(0.8, abs=0.06)
    assert (clean == 200).float().mean().item() == pytest.approx(0.5)


def test_image_smaller_than_a_patch_is_padded_by_mirroring(tmp_path: Path) -> None:
    small = scene(5, 40)
    cut = random_window(small, SIDE, np.random.default_rng(1))
    assert cut.shape == (SIDE, SIDE, 3)
    assert np.array_equal(cut[5], cut[4])
    assert {row.tobytes() for row in cut} == {row.tobytes() for row in cut[5:10]}
    assert patches_of(tmp_path, small).fetch(keys(2)).batch["clean"].shape[-2:] == (SIDE, SIDE)


def test_unreadable_image_is_a_fault_and_the_next_one_replaces_it(tmp_path: Path) -> None:
    patches = patches_of(tmp_path, scene(), scene(seed=2))
    (tmp_path / "0.png").write_bytes(b"")
    fetched = patches.fetch(keys(4))
    assert len(fetched.batch["clean"]) == 4
    assert {fault.reason for fault in fetched.faults} == {"the file is empty"}
    (tmp_path / "1.png").write_bytes(b"")
    patches = patches_of(tmp_path / "none", *[np.zeros((4, 4), np.uint8)])
    (tmp_path / "none" / "0.png").write_bytes(b"")
    with pytest.raises(UserError, match="none of the 1 images"):
        patches.fetch(keys(1))


def test_orientation_is_half_its_number_in_left_quarter_turns_and_odd_ones_are_flipped() -> None:
    a, b, c, d = 1, 2, 3, 4
    pixels = np.array([[[a], [b]], [[c], [d]]], np.uint8)
    assert [turned(pixels, turn)[..., 0].tolist() for turn in range(8)] == [
        [[a, b], [c, d]],
        [[c, d], [a, b]],
        [[b, d], [a, c]],
        [[a, c], [b, d]],
        [[d, c], [b, a]],
        [[b, a], [d, c]],
        [[c, a], [d, b]],
        [[d, b], [c, a]],
    ]


def test_windows_start_at_every_position_that_fits() -> None:
    pixels = np.arange(7 * 9, dtype=np.uint8).reshape(7, 9, 1)
    random = np.random.default_rng(0)
    begun = {int(random_window(pixels, 5, random)[0, 0, 0]) for _ in range(400)}
    assert begun == {9 * row + column for row in range(3) for column in range(5)}
    assert random_window(pixels[:5, :5], 5, random)[..., 0].tolist() == pixels[:5, :5, 0].tolist()


def test_small_images_are_mirrored_on_both_sides_with_the_excess_at_the_end() -> None:
    pixels = np.array([[1, 2, 3], [4, 5, 6]], np.uint8)[..., None]
    assert mirrored(pixels, 2) is pixels
    assert mirrored(pixels, 3)[..., 0].tolist() == [[1, 2, 3], [4, 5, 6], [4, 5, 6]]
    assert mirrored(pixels, 4)[..., 0].tolist() == [
        [1, 2, 3, 3],
        [1, 2, 3, 3],
        [4, 5, 6, 6],
        [4, 5, 6, 6],
    ]
    high = mirrored(np.array([[1, 2, 3]] * 9, np.uint8)[..., None], 6)
    assert (high.shape, high[0, :, 0].tolist()) == ((9, 6, 1), [1, 1, 2, 3, 3, 2])


def test_patches_are_rotated_only_on_request(tmp_path: Path) -> None:
    pixels = scene(SIDE, SIDE)
    noise = NoiseSettings(sigma=(0.0,))
    straight = patches_of(tmp_path, pixels, turns=False, noise=noise).fetch(keys(8)).batch
    for clean, noisy in zip(straight["clean"], straight["noisy"], strict=True):
        assert np.array_equal(clean.permute(1, 2, 0).numpy(), pixels)
        assert torch.equal(clean, noisy)


def test_every_scale_is_drawn_including_the_last(tmp_path: Path) -> None:
    """Areas of 1, 0.25 and 0.0625: shares of 16, 4 and 1 in 21."""
    patches = patches_of(tmp_path, scene(64, 64), scales=(0.25, 1.0, 0.5), per_picture=500).kind
    sizes = Counter(patches.open(0, SampleKey(epoch, 0))[0].shape[0] for epoch in range(700))
    assert sorted(sizes) == [16, 32, 64]
    for side, share in ((64, 16 / 21), (32, 4 / 21), (16, 1 / 21)):
        assert sizes[side] / 700 == pytest.approx(share, abs=0.05)


def test_sample_depends_on_the_seed(tmp_path: Path) -> None:
    batches = [patches_of(tmp_path, seed=seed).fetch(keys(4)).batch for seed in (0, 1)]
    assert not torch.equal(batches[0]["clean"], batches[1]["clean"])
    pictures = photographs(tmp_path, scene())
    bare = Patches(pictures=pictures, noise=NoiseSettings(), patch_size=SIDE)
    plain = patch_set(bare, per_picture=8).fetch(keys(4)).batch
    assert torch.equal(plain["clean"], batches[0]["clean"])


def test_oversized_batch_error_names_the_responsible_settings(tmp_path: Path) -> None:
    """A sample takes 3 bytes and 3 float32 for each pixel, in grey one of each."""
    for channels, bytes_ in (("colour", 5 * 3 * SIDE**2), ("grey", 5 * SIDE**2)):
        collate = patches_of(tmp_path / channels, channels=channels).collate
        assert isinstance(collate, Stacked)
        assert (collate.fields, collate.what) == ("data.batch_size, data.patch_size", "patches")
        assert collate.sample_bytes == bytes_


def test_patch_fingerprint_is_that_of_the_images(tmp_path: Path) -> None:
    one = patches_of(tmp_path / "one", scene())
    two = patches_of(tmp_path / "two", scene(), scene(seed=2))
    for patches in (one, two):
        assert patches.fingerprint == patches.kind.pictures.pictures.fingerprint
        assert patches.fingerprint
    assert one.fingerprint != two.fingerprint
