"""What the settings are if nobody sets them, and their limits."""

import re

import pytest

from jumar.data.denoising import denoise_sets, frame_triplets, noise
from jumar.ground.errors import UserError
from tests.data.setting_limits import limits_of


def test_denoising_settings_have_their_defaults_and_limits() -> None:
    assert limits_of(denoise_sets.DenoisingData()) == {
        "path": ("digits", None, None, False),
        "eval_path": ("", None, None, True),
        "channels": ("colour", None, None, False),
        "patch_size": (50, 1, None, False),
        "patches_per_image": (64, 1, None, False),
        "scales": ((1.0,), 0.01, 1, False),
        "turns": (True, None, None, False),
        "eval_batch_size": (1, 1, None, True),
        "eval_levels": ((25.0,), 0, None, False),
        "eval_seeding": ("index", None, None, False),
        "cache_mib": (1024, 0, None, False),
        "noise": (noise.NoiseSettings(), None, None, False),
    }
    assert limits_of(frame_triplets.ClipData()) == {
        "margin": (0, 0, None, False),
        "holdout_frames": (12, 0, None, False),
    }
    assert limits_of(noise.NoiseSettings()) == {
        "kind": ("gaussian", None, None, False),
        "sigma": ((0.0, 50.0), 0, None, False),
        "photons": ((10.0, 1000.0), 1, 1e6, False),
        "analog_gain": ((1.0, 64.0), 0, None, False),
        "digital_gain": ((1.0, 4.0), 0, None, False),
        "storage": ("uint8", None, None, False),
    }


@pytest.mark.parametrize("name", ["sigma", "photons", "analog_gain", "digital_gain"])
@pytest.mark.parametrize(
    ("values", "given"),
    [((), "none"), ((3.0, 2.0), "3.0, 2.0"), ((1.0, 2.0, 3.0), "1.0, 2.0, 3.0")],
)
def test_noise_range_is_one_number_or_two_in_order(
    name: str, values: tuple[float, ...], given: str
) -> None:
    with pytest.raises(UserError, match=re.escape(f"'data.noise.{name}'")) as caught:
        noise.NoiseSettings(**{name: values}).check()  # pyright: ignore[reportArgumentType]
    assert str(caught.value) == (
        f"'data.noise.{name}' needs one number, or a lower and an upper one, not {given}\n"
        f"  For instance: data.noise.{name}=15 or data.noise.{name}=0,50"
    )
    for good in ((2.0,), (2.0, 2.0), (2.0, 3.0)):
        noise.NoiseSettings(**{name: good}).check()  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize("name", ["scales", "eval_levels"])
def test_empty_lists_are_refused_by_name(name: str) -> None:
    with pytest.raises(UserError) as caught:
        denoise_sets.DenoisingData(**{name: ()}).check()  # pyright: ignore[reportArgumentType]
    assert str(caught.value) == f"data.{name}: needs at least one number"
