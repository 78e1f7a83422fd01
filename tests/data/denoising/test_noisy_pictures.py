"""Evaluation noise: its source, and that nothing changes it."""

import hashlib
from pathlib import Path

import numpy as np
import pytest
import torch

from jumar.data.denoising.noisy_pictures import NoisyPictures, name_seed, whole_pictures_set
from jumar.data.loading.keyed_set import KeyedSet
from jumar.data.samples import SampleKey
from jumar.ground.errors import UserError
from tests.data.photographs import photographs, scene


def noisy(folder: Path, *, seeding: str = "index", **changed: object) -> KeyedSet[NoisyPictures]:
    pictures = photographs(folder, scene(12, 16), scene(12, 16, 2), scene(16, 12, 3))
    chosen = {"kind": "gaussian", "levels": [15.0, 25.0], "storage": "float", **changed}
    return whole_pictures_set(NoisyPictures(pictures, seeding=seeding, **chosen))


def fetched(samples: KeyedSet[NoisyPictures], index: int) -> dict[str, torch.Tensor]:
    return dict(samples.fetch([SampleKey(0, index)]).batch)


def test_every_image_is_scored_at_every_level(tmp_path: Path) -> None:
    samples = noisy(tmp_path)
    assert len(samples) == 6
    for index in range(6):
        batch = fetched(samples, index)
        clean = scene(*((16, 12) if index % 3 == 2 else (12, 16)), index % 3 + 1)
        assert np.array_equal(batch["clean"][0].permute(1, 2, 0).numpy(), clean)
        assert batch["level"].tolist() == [index // 3]
        noise = batch["noisy"] - batch["clean"] / 255
        assert noise.std().item() * 255 == pytest.approx((15, 25)[index // 3], rel=0.2)


def test_nlrn_noise_is_seeded_only_by_the_hash_of_the_name(tmp_path: Path) -> None:
    # The recipe of the original's evaluation, with NumPy and hashlib.
    seed = np.frombuffer(hashlib.sha256(b"1.png").digest(), dtype="uint32")
    image = scene(12, 16, 2).astype(np.float32) / 255.0
    reference = image + np.random.RandomState(seed).normal(0, 25 / 255.0, image.shape)
    batch = fetched(noisy(tmp_path, seeding="file_hash"), 4)
    result = batch["noisy"][0].permute(1, 2, 0).numpy()
    assert np.abs(result - reference).max() < 1e-6
    assert np.array_equal(name_seed("folder/1.png"), seed)


def test_one_random_sequence_covers_all_images_in_any_order_of_access(tmp_path: Path) -> None:
    samples = noisy(tmp_path, seeding="sequence")
    random = np.random.RandomState(0)
    reference = [random.normal(0, 15, (12, 16, 3)) for _ in range(2)]
    reference.append(random.normal(0, 15, (16, 12, 3)))
    for index in (2, 0, 1, 2):
        batch = fetched(samples, index)
        noise = (batch["noisy"] * 255 - batch["clean"])[0].permute(1, 2, 0).numpy()
        assert np.abs(noise - reference[index]).max() < 1e-4


def test_bytes_are_clipped_and_truncated(tmp_path: Path) -> None:
    batch = fetched(noisy(tmp_path, seeding="sequence", storage="uint8"), 0)
    values = np.random.RandomState(0).normal(0, 15, (12, 16, 3)) + scene(12, 16)
    reference = np.clip(values, 0, 255).astype(np.uint8)
    result = batch["noisy"][0].permute(1, 2, 0).numpy()
    assert np.mean(result == reference) > 0.999


@pytest.mark.parametrize("kind", ["gaussian", "poisson", "camera"])
def test_noise_by_index_is_reproducible(tmp_path: Path, kind: str) -> None:
    first, second = (fetched(noisy(tmp_path, kind=kind), 4)["noisy"] for _ in range(2))
    assert torch.equal(first, second)


def test_equal_sizes_form_a_batch_and_different_ones_are_reported(tmp_path: Path) -> None:
    samples = noisy(tmp_path)
    batch = samples.fetch([SampleKey(0, 0), SampleKey(0, 4)]).batch
    assert batch["level"].tolist() == [0, 1]
    assert torch.equal(batch["noisy"][1:], fetched(samples, 4)["noisy"])
    with pytest.raises(UserError, match="16 x 12"):
        samples.fetch([SampleKey(0, 1), SampleKey(0, 2)])


def test_unreadable_image_is_skipped_and_named(tmp_path: Path) -> None:
    samples = noisy(tmp_path)
    (tmp_path / "1.png").write_bytes(b"no image")
    result = samples.fetch([SampleKey(0, 0), SampleKey(0, 1)])
    assert len(result.batch["clean"]) == 1
    assert result.faults[0].origin.endswith("1.png")
    assert samples.fetch([SampleKey(0, 1)]).batch == {}


def test_level_without_photons_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="photons"):
        noisy(tmp_path, kind="poisson", levels=[10.0, 0.0])


def test_seeding_by_name_is_limited_to_gaussian_noise(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="gaussian, not camera"):
        noisy(tmp_path, kind="camera", seeding="file_hash")


def test_noise_by_index_follows_from_the_positions_of_image_and_level(tmp_path: Path) -> None:
    """The generator's entropy is 3, which no other use of a seed has, and the two positions."""
    samples = noisy(tmp_path)
    for item, (index, place, level) in {1: (1, 0, 15), 4: (1, 1, 25), 5: (2, 1, 25)}.items():
        clean = scene(*((16, 12) if index == 2 else (12, 16)), index + 1)
        random = np.random.default_rng((3, index, place))
        drawn = random.standard_normal(clean.shape, dtype=np.float32) * level
        result = fetched(samples, item)["noisy"][0].permute(1, 2, 0).numpy()
        np.testing.assert_allclose(result * 255, clean + drawn, atol=1e-3)


def test_camera_noise_is_scored_at_a_digital_gain_of_two(tmp_path: Path) -> None:
    samples = noisy(tmp_path, kind="camera", levels=[16.0])
    clean = scene(12, 16)
    result = fetched(samples, 0)["noisy"][0].permute(1, 2, 0).numpy() * 255 - clean
    drawn = np.random.default_rng((3, 0, 0)).standard_normal(clean.shape, dtype=np.float32)
    variance = 16 * 2 * (clean / 255) / 7480 + (2 * (16 * 1.25e-4 + 1.11e-4)) ** 2
    np.testing.assert_allclose(result, drawn * 255 * np.sqrt(variance), atol=1e-3)


def test_sequence_draws_nothing_for_an_unreadable_image(tmp_path: Path) -> None:
    samples = noisy(tmp_path, seeding="sequence")
    (tmp_path / "1.png").write_bytes(b"no image")
    random = np.random.RandomState(0)
    random.normal(0, 15, (12, 16, 3))
    expected = scene(16, 12, 3) + random.normal(0, 15, (16, 12, 3))
    result = fetched(samples, 2)["noisy"][0].permute(1, 2, 0).numpy() * 255
    np.testing.assert_allclose(result, expected, atol=1e-3)


def test_later_of_two_images_may_be_requested_twice(tmp_path: Path) -> None:
    samples = noisy(tmp_path, seeding="sequence")
    first, again, before = (fetched(samples, index)["noisy"] for index in (1, 1, 0))
    assert torch.equal(first, again)
    assert not torch.equal(first, before)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"levels": []}, "data.eval_levels: needs at least one noise level"),
        (
            {"kind": "poisson", "levels": [5.0, 0.99]},
            "data.eval_levels: 0.99 photons per white pixel are too few for an image\n"
            "  Specify levels of 1 photon or more.",
        ),
        (
            {"kind": "poisson", "seeding": "sequence"},
            "data.eval_seeding: noise seeded by 'sequence' must be gaussian, not poisson\n"
            "  Set data.eval_seeding=index.",
        ),
    ],
)
def test_mismatched_levels_and_seedings_have_the_full_message(
    tmp_path: Path, changes: dict[str, object], message: str
) -> None:
    with pytest.raises(UserError) as caught:
        noisy(tmp_path, **changes)  # pyright: ignore[reportArgumentType]
    assert str(caught.value) == message


def test_level_of_one_photon_is_valid_and_zero_only_for_other_kinds(tmp_path: Path) -> None:
    assert len(noisy(tmp_path, kind="poisson", levels=[1.0])) == 3
    clean = fetched(noisy(tmp_path, levels=[0.0]), 0)
    assert torch.allclose(clean["noisy"] * 255, clean["clean"].float(), atol=1e-4)


def test_different_sizes_in_a_batch_have_the_full_message(tmp_path: Path) -> None:
    with pytest.raises(UserError) as caught:
        noisy(tmp_path).fetch([SampleKey(0, 0), SampleKey(0, 2)])
    assert str(caught.value) == (
        "data.eval_batch_size: images of different sizes do not fit into one batch: 12 x 16, "
        "16 x 12\n  Set data.eval_batch_size=1."
    )
