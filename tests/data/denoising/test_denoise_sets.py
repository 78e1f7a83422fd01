"""Settings to sets."""

from dataclasses import replace
from pathlib import Path

import pytest

from jumar.data.denoising.denoise_sets import DenoisingData, level_names, open_patches
from jumar.data.denoising.noise import NoiseSettings
from jumar.data.samples import CorruptRecord
from jumar.ground.errors import UserError
from jumar.settings import from_json, override, to_json
from tests.data.photographs import photographs, scene


def test_parts_become_patches_and_whole_images(tmp_path: Path) -> None:
    photographs(tmp_path / "train", scene(), scene(seed=2))
    photographs(tmp_path / "val", scene(seed=3))
    data = DenoisingData(path=str(tmp_path), patches_per_image=5, eval_levels=(15.0, 25.0, 50.0))
    patches, noisy = open_patches(data, seed=1)
    assert noisy is not None
    assert (len(patches), len(noisy)) == (10, 3)
    assert open_patches(replace(data, eval_path="none"), seed=1)[1] is None


def test_training_images_are_refused_for_evaluation(tmp_path: Path) -> None:
    photographs(tmp_path, scene())
    with pytest.raises(UserError, match="would use the training images"):
        open_patches(DenoisingData(path=str(tmp_path)), seed=1)


def test_levels_are_named_by_the_kind_of_noise() -> None:
    data = DenoisingData(eval_levels=(15.0, 2.5))
    assert level_names(data) == ["sigma 15", "sigma 2.5"]
    assert level_names(replace(data, noise=NoiseSettings(kind="mixed")))[0] == "sigma 15"
    assert level_names(replace(data, noise=NoiseSettings(kind="poisson")))[0] == "photons 15"
    assert level_names(replace(data, noise=NoiseSettings(kind="camera")))[0] == "gain 15"


def test_settings_survive_json_and_are_validated() -> None:
    data = override(DenoisingData(), ["noise.sigma=25", "eval_levels=15,25,50"])
    assert data.noise.sigma == (25.0,)
    assert from_json(DenoisingData(), to_json(data), where="test") == data
    for wrong in ("noise.sigma=30,10", "noise.kind=fog", "eval_levels=", "scales=2"):
        with pytest.raises(UserError):
            override(DenoisingData(), [wrong])


def test_settings_reach_both_sets(tmp_path: Path) -> None:
    photographs(tmp_path / "train", scene(), scene(seed=2))
    photographs(tmp_path / "val", scene(seed=3))
    data = DenoisingData(
        path=str(tmp_path),
        channels="grey",
        patch_size=7,
        scales=(1.0, 0.5),
        turns=False,
        eval_levels=(15.0, 5.0),
        eval_seeding="sequence",
        noise=NoiseSettings(storage="float"),
    )
    train, noisy = open_patches(data, seed=9)
    assert noisy is not None
    patches = train.kind
    assert (patches.patch_size, patches.turns, patches.seed) == (7, False, 9)
    assert (patches.pictures.channels, patches.pictures.scales) == ("grey", (1.0, 0.5))
    scored = noisy.kind
    assert (scored.levels, scored.kind, scored.seeding) == ((15.0, 5.0), "gaussian", "sequence")
    assert (scored.storage, scored.pictures.channels) == ("float", "grey")
    assert scored.pictures.scales == (1.0,)
    assert len(train) == 2 * 64


def test_decoded_images_are_cached_up_to_the_configured_mebibytes(tmp_path: Path) -> None:
    photographs(tmp_path / "train", scene(600, 600), scene(600, 600))
    data = DenoisingData(path=str(tmp_path / "train"), eval_path="none", cache_mib=1)
    pictures = open_patches(data, seed=1)[0].kind.pictures
    # An image takes 1.08 million bytes: more than a million, and a mebibyte is 1,048,576.
    pictures.read(0)
    (tmp_path / "train" / "0.png").unlink()
    with pytest.raises(CorruptRecord):
        pictures.read(0)
    two = open_patches(replace(data, cache_mib=2), seed=1)[0].kind.pictures
    two.read(0)
    (tmp_path / "train" / "1.png").unlink()
    two.read(0)
