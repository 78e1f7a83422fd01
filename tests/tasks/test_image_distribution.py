import io
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from scipy import ndimage
from torch import Tensor

from jumar.tasks.image_distribution import (
    laplacian_descriptors,
    neighbourhoods_per_image,
    sliced_wasserstein,
)

COUNT = 128


def random_pictures(count: int, size: int = 32, seed: int = 0) -> Tensor:
    """Smooth images: noise that was enlarged, so that every level holds something."""
    generator = torch.Generator().manual_seed(seed)
    coarse = torch.rand(count, 3, size // 8, size // 8, generator=generator) * 2 - 1
    smooth = torch.nn.functional.interpolate(coarse, size=(size, size), mode="bilinear")
    return (smooth + 0.1 * torch.randn(smooth.shape, generator=generator)).clamp(-1, 1)


def distances(real: Tensor, fake: Tensor, per_image: int = 32) -> dict[str, float]:
    sets = [laplacian_descriptors(x, first_index=0, per_image=per_image) for x in (real, fake)]
    return sliced_wasserstein(sets[0], sets[1])


@pytest.fixture(scope="module")
def photographs(shared: Path) -> Callable[[str], Tensor]:
    """Cats or dogs, 128 px, in -1..1."""
    archive = zipfile.ZipFile(shared / "data" / "cats-dogs-128" / "train.zip")

    def pictures(kind: str) -> Tensor:
        names = sorted(n for n in archive.namelist() if f"{kind}/" in n and n.endswith(".jpg"))
        arrays = [np.asarray(Image.open(io.BytesIO(archive.read(n)))) for n in names[:COUNT]]
        return torch.from_numpy(np.stack(arrays)).permute(0, 3, 1, 2) / 127.5 - 1

    return pictures


def test_pyramid_levels_are_named_by_size_down_to_16() -> None:
    rows = laplacian_descriptors(random_pictures(3, 128), first_index=0)
    assert {name: tuple(row.shape) for name, row in rows.items()} == {
        "128": (384, 147),
        "64": (384, 147),
        "32": (384, 147),
        "16": (384, 147),
    }
    assert list(distances(random_pictures(2, 128), random_pictures(2, 128, 1))) == [
        "swd_128",
        "swd_64",
        "swd_32",
        "swd_16",
        "swd",
    ]


def test_equal_sets_have_zero_distance_and_the_distance_is_symmetric() -> None:
    first, second = random_pictures(20), random_pictures(20, seed=1)
    assert set(distances(first, first).values()) == {0.0}
    there, back = distances(first, second), distances(second, first)
    assert there == back
    assert there["swd"] == pytest.approx((there["swd_32"] + there["swd_16"]) / 2)


def test_descriptors_do_not_depend_on_how_the_set_is_split() -> None:
    images = random_pictures(7)
    whole = laplacian_descriptors(images, first_index=5)
    parts = [
        laplacian_descriptors(part, first_index=5 + start)
        for start, part in ((0, images[:3]), (3, images[3:4]), (4, images[4:]))
    ]
    for name, rows in whole.items():
        assert torch.equal(rows, torch.cat([part[name] for part in parts]))


def test_patches_are_anywhere_in_the_image_and_differ_per_image() -> None:
    # The coarsest level of a ramp is nearly the ramp itself: its values say where they lie.
    ramp = torch.linspace(-1, 1, 16).expand(1, 3, 16, 16)
    rows = laplacian_descriptors(ramp.expand(64, -1, -1, -1), first_index=0, per_image=8)["16"]
    assert rows.shape == (512, 147)
    columns = rows.reshape(512, 3, 7, 7)[:, 0, 0, 0]
    assert sorted({round(float(value), 4) for value in columns}) == pytest.approx(
        [round(float(value), 4) for value in ramp[0, 0, 0, :10]]
    )
    assert not torch.equal(columns[:8], columns[8:16])


def test_constant_image_is_zero_in_the_fine_levels() -> None:
    """Mirrored borders and filters that sum to 1: also at the edges."""
    rows = laplacian_descriptors(torch.full((2, 3, 64, 48), 0.5), first_index=0)
    assert list(rows) == ["48", "24"]
    assert rows["48"].abs().max() < 1e-6
    assert rows["24"].sub(0.5).abs().max() < 1e-6


def test_sides_that_do_not_halve_evenly_have_a_pyramid() -> None:
    assert list(laplacian_descriptors(random_pictures(1)[:, :, :31, :], first_index=0)) == [
        "31",
        "16",
    ]


def test_noise_affects_the_fine_level_and_colours_the_coarse_one(
    photographs: Callable[[str], Tensor],
) -> None:
    cats = photographs("cat")[:32]
    generator = torch.Generator().manual_seed(0)
    noise = torch.randn(cats.shape, generator=generator)
    little, much = (distances(cats, (cats + s * noise).clamp(-1, 1)) for s in (0.05, 0.2))
    assert little["swd_128"] > 5 * little["swd_16"]
    assert much["swd_128"] > 1.5 * little["swd_128"]
    assert much["swd"] > little["swd"]

    blurred = torch.nn.functional.avg_pool2d(cats, 3, stride=1, padding=1, count_include_pad=False)
    blur = distances(cats, blurred)
    assert blur["swd_128"] > 3 * blur["swd_16"]


def test_distance_of_cats_and_dogs_matches_the_original(
    photographs: Callable[[str], Tensor],
) -> None:
    """The authors' code on the same files: means of 8 seeds and their spread (lowest, highest)."""
    original = {
        "swd_128": (39.74, 38.05, 42.56),
        "swd_64": (23.55, 21.10, 25.43),
        "swd_32": (21.71, 19.23, 23.43),
        "swd_16": (50.12, 46.20, 51.69),
        "swd": (33.78, 32.73, 34.79),
    }
    measured = distances(photographs("cat"), photographs("dog"), per_image=128)
    for name, (mean, lowest, highest) in original.items():
        # Places and directions are random on both sides, so the spread counts twice.
        assert measured[name] == pytest.approx(mean, abs=highest - lowest), name


def test_autocast_does_not_change_the_distance() -> None:
    images = random_pictures(4)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        inside = laplacian_descriptors(images, first_index=0)
    outside = laplacian_descriptors(images, first_index=0)
    assert all(torch.equal(inside[name], outside[name]) for name in outside)


def test_collapsed_generator_has_a_finite_and_large_distance() -> None:
    real = random_pictures(20)
    collapsed = distances(real, torch.zeros_like(real))
    assert all(np.isfinite(list(collapsed.values())))
    assert collapsed["swd"] > 5 * distances(real, random_pictures(20, seed=1))["swd"]


@pytest.mark.parametrize(
    ("images", "each"), [(1, 128), (1024, 128), (2048, 64), (10_000, 13), (10**6, 1)]
)
def test_large_sets_use_fewer_patches_per_image(images: int, each: int) -> None:
    assert neighbourhoods_per_image(images) == each


def test_incomparable_sets_are_refused() -> None:
    rows = laplacian_descriptors(random_pictures(4), first_index=0)
    fewer = {name: row[1:] for name, row in rows.items()}
    with pytest.raises(ValueError, match="as many"):
        sliced_wasserstein(rows, fewer)
    with pytest.raises(ValueError, match="levels differ"):
        sliced_wasserstein(rows, {"32": rows["32"]})
    with pytest.raises(ValueError, match="16 px"):
        laplacian_descriptors(torch.zeros(1, 3, 15, 99), first_index=0)


def scipy_pyramid(image: np.ndarray) -> list[np.ndarray]:
    """The levels of one image [3, height, width] with scipy's filter, in float64."""
    taps = np.array([1, 4, 6, 4, 1]) / 16

    def blurred(values: np.ndarray) -> np.ndarray:
        for axis in (1, 2):
            values = ndimage.convolve1d(values, taps, axis=axis, mode="mirror")
        return values

    levels = [image]
    while min(levels[-1].shape[1:]) >= 31:
        fine = levels[-1]
        coarse = blurred(fine)[:, ::2, ::2]
        spread = np.zeros_like(fine)
        spread[:, ::2, ::2] = 4 * coarse
        levels[-1] = fine - blurred(spread)
        levels.append(coarse)
    return levels


def test_patches_come_from_the_pyramid_with_scipys_filter() -> None:
    images = random_pictures(2, 64)[:, :, :, :62]
    rows = laplacian_descriptors(images, first_index=3, per_image=20)
    assert list(rows) == ["62", "31", "16"]
    for number, image in enumerate(images.double().numpy()):
        for level, result in zip(scipy_pyramid(image), rows.values(), strict=True):
            windows = np.lib.stride_tricks.sliding_window_view(level, (7, 7), axis=(1, 2))
            every = windows.transpose(1, 2, 0, 3, 4).reshape(-1, 147)
            own = result[20 * number : 20 * number + 20].double().numpy()
            apart = np.abs(own[:, None] - every[None]).max(axis=2)
            assert apart.min(axis=1).max() < 1e-5
            # Places are drawn on both axes, not one for all levels or images.
            assert len(set(apart.argmin(axis=1).tolist())) > 15


def test_distance_is_the_mean_over_512_directions_of_sorted_projections() -> None:
    random = np.random.default_rng(0)
    real, fake = (
        {name: random.normal(shift, scale, (60, 147)).astype(np.float32) for name in ("32", "16")}
        for shift, scale in ((0.0, 1.0), (0.5, 2.0))
    )
    real["16"][:, 49:98] += 3  # each channel is normalised by itself

    def normalised(rows: np.ndarray) -> np.ndarray:
        channels = rows.astype(np.float64).reshape(len(rows), 3, 49)
        mean, deviation = channels.mean(axis=(0, 2)), channels.std(axis=(0, 2))
        return ((channels - mean[:, None]) / deviation[:, None]).reshape(len(rows), 147)

    expected: dict[str, float] = {}
    for seed, name in enumerate(real):
        draws = torch.Generator().manual_seed(seed)
        directions = torch.cat(
            [torch.randn(128, 147, generator=draws, dtype=torch.float64) for _ in range(4)]
        ).numpy()
        directions /= np.linalg.norm(directions, axis=1, keepdims=True)
        one, other = (np.sort(directions @ normalised(each[name]).T) for each in (real, fake))
        expected[f"swd_{name}"] = 1000 * np.abs(one - other).mean()
    expected["swd"] = (expected["swd_32"] + expected["swd_16"]) / 2
    sets = [{name: torch.from_numpy(rows) for name, rows in each.items()} for each in (real, fake)]
    assert sliced_wasserstein(*sets) == pytest.approx(expected, rel=1e-4)


def test_errors_name_the_mismatched_shapes() -> None:
    for shape in ((1, 3, 16, 15), (1, 1, 16, 16), (3, 16, 16)):
        with pytest.raises(ValueError, match="images must be") as error:
            laplacian_descriptors(torch.zeros(shape), first_index=0)
        assert str(error.value) == (
            f"images must be [N, 3, H, W] with sides of at least 16 px, not {list(shape)}"
        )
    assert list(laplacian_descriptors(torch.zeros(1, 3, 16, 16), first_index=0)) == ["16"]
    rows = {"16": torch.zeros(4, 147)}
    with pytest.raises(ValueError, match="level 16") as error:
        sliced_wasserstein(rows, {"16": torch.zeros(3, 147)})
    assert str(error.value) == (
        "level 16: [4, 147] and [3, 147] values; compare as many generated images as real ones"
    )
    for fake in ({}, rows):
        with pytest.raises(ValueError, match="the levels differ"):
            sliced_wasserstein({}, fake)
    assert neighbourhoods_per_image(0) == 128
    assert [neighbourhoods_per_image(n) for n in (1025, 131_072, 131_073)] == [127, 1, 1]
