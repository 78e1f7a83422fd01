"""Losses and scores of denoising, against formulas written out in NumPy."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from jumar.data.denoising.noise import NoiseSettings
from jumar.data.denoising.noisy_pictures import NoisyPictures, whole_pictures_set
from jumar.data.denoising.patch_set import Patches, patch_set
from jumar.data.pixels.image_quality import ssim
from jumar.data.pixels.picture_grid import side_by_side
from jumar.data.samples import Fetched, SampleKey
from jumar.tasks.denoising import (
    CentralSquaredError,
    DenoisingObjective,
    DenoisingTask,
    HalfSquaredError,
    central_window,
    middle_frame,
    picture_levels,
    unit_scale,
)
from tests.data.photographs import photographs, scene
from tests.tasks.means import means


class Darker(nn.Module):
    """Takes a learned number from every value."""

    def __init__(self, amount: float = 0.0) -> None:
        super().__init__()
        self.amount = nn.Parameter(torch.tensor(amount))

    def forward(self, noisy: Tensor) -> Tensor:
        return noisy - self.amount


def batch(channels: int = 3, side: int = 12, count: int = 4) -> dict[str, Tensor]:
    random = torch.Generator().manual_seed(1)
    clean, noisy = (
        torch.randint(0, 256, (count, channels, side, side), generator=random).to(torch.uint8)
        for _ in range(2)
    )
    return {"clean": clean, "noisy": noisy, "level": torch.arange(count) % 2}


def task(network: nn.Module, **changed: object) -> DenoisingTask:
    return DenoisingTask(
        network,
        train_data=changed.pop("train_data", None),
        eval_data=changed.pop("eval_data", None),
        level_names=("sigma 15", "sigma 25"),
        loss=HalfSquaredError(),
        **changed,
    )


def decibels(one: np.ndarray, other: np.ndarray) -> float:
    return float(10 * np.log10(255**2 / np.mean((one.astype(float) - other.astype(float)) ** 2)))


def central_loss(side: int, given: dict[str, Tensor]) -> float:
    objective = DenoisingObjective(Darker(), loss=CentralSquaredError(center=side))
    return means(objective, given)["loss"].item()


def test_videnn_loss_is_half_the_squared_error_summed_over_a_sample() -> None:
    given = batch()
    loss = means(DenoisingObjective(Darker(), loss=HalfSquaredError()), given)["loss"].item()
    error = (given["clean"].double() - given["noisy"].double()).numpy() / 255
    assert loss == pytest.approx(0.5 * np.sum(error**2) / 4, rel=1e-5)


def test_nlrn_loss_is_the_mean_of_the_central_5_x_5() -> None:
    given = batch(channels=1, side=43)
    given["noisy"] = given["noisy"] / 255
    loss = central_loss(5, given)
    error = given["clean"].double().numpy() / 255 - given["noisy"].double().numpy()
    assert loss == pytest.approx(np.mean(error[:, :, 19:24, 19:24] ** 2), rel=1e-5)
    whole = central_loss(0, given)
    assert whole == pytest.approx(np.mean(error**2), rel=1e-5)


def test_central_window_of_an_even_side_is_placed_as_in_nlrn() -> None:
    values = torch.arange(36).reshape(1, 1, 6, 6)
    # tf.slice at 6 // 2 - 3 // 2 = 2
    assert central_window(values, 3).tolist() == values[..., 2:5, 2:5].tolist()


def test_scores_are_means_over_images_for_each_level_and_for_all() -> None:
    given = batch()
    result = task(Darker())
    sums = [
        result.evaluate_batch({k: v[part] for k, v in given.items()}) for part in ([0], [1, 2, 3])
    ]
    metrics = result.summarize({name: sums[0][name] + sums[1][name] for name in sums[0]})
    singly = [decibels(given["clean"][i].numpy(), given["noisy"][i].numpy()) for i in range(4)]
    assert metrics["psnr"] == pytest.approx(np.mean(singly), abs=1e-4)
    assert metrics["noisy_psnr"] == pytest.approx(np.mean(singly), abs=1e-4)
    assert metrics["psnr_sigma_15"] == pytest.approx(np.mean(singly[::2]), abs=1e-4)
    assert metrics["psnr_sigma_25"] == pytest.approx(np.mean(singly[1::2]), abs=1e-4)
    assert -1 <= metrics["ssim"] <= 1
    table = result.score_tables({name: sums[0][name] + sums[1][name] for name in sums[0]})[0]
    assert [row[0] for row in table.rows] == ["sigma 15", "sigma 25"]
    assert table.rows[0][2] == f"{np.mean(singly[::2]):.2f}"


@pytest.mark.parametrize(
    ("clip", "rounding", "as_levels"),
    [
        (True, "nearest", lambda values: np.rint(np.clip(values, 0, 255))),
        (True, "truncated", lambda values: np.trunc(np.clip(values, 0, 255))),
        (True, "none", lambda values: np.clip(values, 0, 255)),
        (False, "none", lambda values: values),
    ],
)
@pytest.mark.parametrize("levels_darker", [76.755, 2.3])
def test_output_is_clipped_and_rounded_as_configured(
    clip: bool, rounding: str, as_levels, levels_darker: float
) -> None:
    """Where little is taken away, rounding to the nearest level and cutting differ by decibels."""
    given = batch(count=1)
    denoiser = task(Darker(levels_darker / 255), clip=clip, rounding=rounding)
    metrics = denoiser.summarize(denoiser.evaluate_batch(given))
    output = as_levels(given["noisy"][0].numpy() - levels_darker)
    assert metrics["psnr"] == pytest.approx(decibels(output, given["clean"][0].numpy()), abs=2e-3)


def test_image_levels_are_matched_to_the_nearest() -> None:
    values = torch.tensor([-0.1, 0.4, 0.6, 1.5, 253.7, 254.6, 300.0]) / 255
    assert picture_levels(values).tolist() == [0, 0, 1, 2, 254, 255, 255]


def test_images_too_small_for_ssim_are_scored_without_it() -> None:
    result = task(Darker())
    assert "ssim" not in result.summarize(result.evaluate_batch(batch(side=8)))


def test_middle_of_three_frames_is_the_noisy_one() -> None:
    frames = torch.arange(9.0).reshape(1, 9, 1, 1)
    assert middle_frame(frames, 3).flatten().tolist() == [3, 4, 5]
    assert middle_frame(frames[:, :3], 3).flatten().tolist() == [0, 1, 2]
    assert middle_frame(frames[:, :3], 1).flatten().tolist() == [1]


def test_levels_and_unit_scale_are_inverses() -> None:
    levels = torch.arange(256, dtype=torch.uint8)
    assert torch.equal(picture_levels(unit_scale(levels)), levels)
    assert picture_levels(torch.tensor([-1.0, 2.0])).tolist() == [0, 255]


def test_only_the_named_part_is_trained() -> None:
    both = nn.Sequential(Darker(), Darker())
    result = task(both, trained=both[1])
    assert list(result.objectives[0].trained.parameters()) == [both[1].amount]


@pytest.mark.parametrize("storage", ["uint8", "float"])
def test_illustrations_show_clean_noisy_and_denoised_with_psnr(
    tmp_path: Path, storage: str
) -> None:
    pictures = photographs(tmp_path, scene(), scene(seed=2))
    noisy = whole_pictures_set(
        NoisyPictures(pictures, kind="gaussian", levels=[15.0], storage=storage, seeding="index")
    )
    noise = NoiseSettings(storage=storage)
    patches = patch_set(Patches(pictures=pictures, noise=noise, patch_size=8), per_picture=1)
    result = task(Darker(), train_data=patches, eval_data=noisy)
    shown = result.illustrate()
    assert [picture.name for picture in shown] == ["denoised-1", "denoised-2"]
    fetched = noisy.fetch([SampleKey(0, 0)]).batch
    metrics = result.summarize(result.evaluate_batch({**fetched}))
    assert f"noisy, {metrics['noisy_psnr']:.2f} dB" in shown[0].caption
    assert shown[0].image.dtype == torch.uint8
    assert shown[0].image.shape[1] >= 3 * 56
    assert all(
        torch.equal(a.image, b.image) for a, b in zip(shown, result.illustrate(), strict=True)
    )


def given_levels(*sides: int, level: int = 0) -> dict[str, Tensor]:
    """One image of the level, whose noisy copy is 10 or more levels brighter."""
    clean = torch.full((1, 1, *sides), 100, dtype=torch.uint8)
    clean[..., ::2, :] = 150
    return {"clean": clean, "noisy": clean + 10 * (level + 1), "level": torch.tensor([level])}


def summed(found: DenoisingTask, *batches: dict[str, Tensor]) -> dict[str, Tensor]:
    parts = [found.evaluate_batch(each) for each in batches]
    return {name: torch.stack([part[name] for part in parts]).sum(0).double() for name in parts[0]}


def test_table_has_a_row_per_seen_level_and_no_ssim_for_small_images() -> None:
    result = DenoisingTask(
        Darker(5 / 255),
        train_data=None,  # type: ignore[arg-type]
        eval_data=None,
        level_names=("sigma 5", "sigma 15", "none", "sigma 50"),
        loss=HalfSquaredError(),
    )
    big = [given_levels(11, 12, level=0), given_levels(12, 11, level=3)]
    sums = summed(result, *big, given_levels(11, 10, level=1), given_levels(11, 12, level=0))
    (table,) = result.score_tables(sums)
    similar = [
        ssim(unit_scale(each["noisy"]) - 5 / 255, unit_scale(each["clean"]), peak=1.0).item()
        for each in big
    ]
    assert table.title == "by noise level"
    assert list(table.header) == ["noise", "noisy PSNR (dB)", "PSNR (dB)", "SSIM"]

    def of_error(levels: int) -> str:
        return f"{20 * np.log10(255 / levels):.2f}"

    assert table.rows == [
        ["sigma 5", of_error(10), of_error(5), f"{similar[0]:.4f}"],
        ["sigma 15", of_error(20), of_error(15), "-"],
        ["sigma 50", of_error(40), of_error(35), f"{similar[1]:.4f}"],
    ]
    metrics = result.summarize(sums)
    decibel = {levels: 20 * np.log10(255 / levels) for levels in (5, 10, 15, 20, 35, 40)}
    assert metrics == pytest.approx(
        {
            "psnr": (2 * decibel[5] + decibel[15] + decibel[35]) / 4,
            "ssim": (2 * similar[0] + similar[1]) / 3,
            "noisy_psnr": (2 * decibel[10] + decibel[20] + decibel[40]) / 4,
            "psnr_sigma_5": decibel[5],
            "psnr_sigma_15": decibel[15],
            "psnr_sigma_50": decibel[35],
        },
        rel=1e-4,
    )
    assert sums["count"].item() == 4
    assert sums["pictures"].tolist() == [2, 1, 0, 1]
    assert sums["ssim_pictures"].tolist() == [2, 0, 0, 1]


def test_single_level_has_no_table_and_no_separate_score() -> None:
    result = DenoisingTask(
        Darker(),
        train_data=None,  # type: ignore[arg-type]
        eval_data=None,
        level_names=("sigma 25",),
        loss=HalfSquaredError(),
    )
    sums = summed(result, given_levels(12, 12))
    assert result.score_tables(sums) == ()
    assert list(result.summarize(sums)) == ["psnr", "ssim", "noisy_psnr"]
    assert result.illustrate() == ()


def test_whole_images_are_denoised_clipped_and_not_rounded() -> None:
    given = given_levels(12, 12)
    plain = task(Darker())
    other = task(Darker(), denoise=lambda noisy: noisy + 200.3 / 255)
    assert plain.summarize(plain.evaluate_batch(given))["psnr"] == pytest.approx(
        20 * np.log10(255 / 10), abs=1e-3
    )
    # Everything is white: 155 and 105 levels from the clean rows.
    expected = 10 * np.log10(255**2 / ((155**2 + 105**2) / 2))
    assert other.summarize(other.evaluate_batch(given))["psnr"] == pytest.approx(expected, abs=1e-3)
    half = task(Darker(9.6 / 255))
    assert half.summarize(half.evaluate_batch(given))["psnr"] == pytest.approx(
        20 * np.log10(255 / 0.4), abs=1e-2
    )


def test_weight_decay_applies_to_every_parameter_unless_the_network_says_otherwise() -> None:
    network = Darker()
    (plain,) = task(network).objectives
    assert plain.decays("amount", network.amount)
    (asked,) = task(network, decays=lambda name, _: name != "amount").objectives
    assert not asked.decays("amount", network.amount)
    assert asked.decays("other", network.amount)
    assert DenoisingObjective(network, loss=HalfSquaredError()).decays("amount", network.amount)


def test_middle_frame_is_selected_for_five_frames_and_two_channels() -> None:
    frames = torch.arange(15.0).reshape(1, 15, 1, 1)
    assert middle_frame(frames, 3).flatten().tolist() == [6, 7, 8]
    assert middle_frame(frames[:, :10], 2).flatten().tolist() == [4, 5]


def test_central_window_of_a_wide_image_is_centred_on_each_side() -> None:
    values = torch.arange(70).reshape(1, 1, 7, 10)
    # Beginning at 7 // 2 - 4 // 2 = 1 and 10 // 2 - 4 // 2 = 3.
    assert central_window(values, 4).tolist() == values[..., 1:5, 3:7].tolist()


class FourPictures:
    """Four images, of which the second cannot be read."""

    def __len__(self) -> int:
        return 4

    def fetch(self, keys: Sequence[SampleKey]) -> Fetched:
        (key,) = keys
        return Fetched(batch={} if key.index == 1 else given_levels(12, 16, level=key.index % 2))


def test_readable_images_among_the_first_three_are_shown() -> None:
    result = task(Darker(5 / 255), eval_data=FourPictures())
    shown = result.illustrate()
    assert [each.name for each in shown] == ["denoised-1", "denoised-3"]
    text = f"noisy, {20 * np.log10(255 / 10):.2f} dB", f"denoised, {20 * np.log10(255 / 5):.2f} dB"
    assert {each.caption for each in shown} == {f"sigma 15: clean; {'; '.join(text)}"}
    given = given_levels(12, 16)
    strip = [given["clean"][0], given["noisy"][0], given["noisy"][0] - 5]
    expected = side_by_side(strip, ["clean", *text])
    assert all(torch.equal(each.image, expected) for each in shown)
