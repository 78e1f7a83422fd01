import math
from collections.abc import Sequence

import pytest
import torch

from jumar.data.samples import Fetched, SampleKey
from jumar.models.vqvae import VQVAE, Quantized
from jumar.recipes.vqvae import unit_preprocessing
from jumar.tasks.reconstruction import ReconstructionTask, visible

SIDE = 16


class Pictures:
    """Grey images, each of one level, its number."""

    def __init__(self, size: int) -> None:
        self.size = size

    def __len__(self) -> int:
        return self.size

    def fetch(self, keys: Sequence[SampleKey]) -> Fetched:
        levels = torch.tensor([key.index for key in keys], dtype=torch.uint8)
        image = levels[:, None, None, None].expand(-1, 3, SIDE, SIDE).contiguous()
        return Fetched(batch={"image": image, "label": torch.zeros(len(keys), dtype=torch.int64)})


class Shifted(VQVAE):
    """Reconstructs each image brighter by a constant and takes the codes it was told to."""

    def __init__(self, shift: float, codes: Sequence[int] = (0,), size: int = 4) -> None:
        super().__init__(variant="cifar10", codes=size, width=4)
        self.shift = shift
        self.told = torch.tensor(codes)

    def forward(self, images: torch.Tensor) -> Quantized:
        some = self.told.repeat(len(images), 1)[:, :, None]
        zeros = torch.zeros(len(images), 4, some.shape[1], 1)
        return Quantized(images + self.shift, zeros, zeros, some)


def task_for(network: VQVAE, size: int = 20) -> ReconstructionTask:
    data = Pictures(size)
    return ReconstructionTask(
        network, unit_preprocessing(), train_data=data, eval_data=data, beta=0.25
    )


def score(network: VQVAE, count: int = 6) -> dict[str, float]:
    task = task_for(network)
    batch = Pictures(count).fetch([SampleKey(0, index) for index in range(count)]).batch
    return task.summarize(task.evaluate_batch(batch))


def test_error_and_psnr_use_pixels_from_0_to_1() -> None:
    result = score(Shifted(0.1))
    assert result["mse"] == pytest.approx(0.01, rel=1e-5)
    assert result["psnr"] == pytest.approx(20.0, abs=1e-3)


def test_image_without_error_does_not_make_the_mean_infinite() -> None:
    assert score(Shifted(0.0))["psnr"] == 100.0


@pytest.mark.parametrize(
    ("codes", "perplexity", "used"),
    [((0,), 1.0, 25.0), ((0, 1, 2, 3), 4.0, 100.0), ((0, 0, 1, 1), 2.0, 50.0)],
)
def test_perplexity_is_the_number_of_equally_frequent_codes(
    codes: tuple[int, ...], perplexity: float, used: float
) -> None:
    result = score(Shifted(0.1, codes))
    assert result["perplexity"] == pytest.approx(perplexity)
    assert result["codes_used"] == pytest.approx(used)


def test_sums_over_parts_equal_those_over_the_whole() -> None:
    torch.manual_seed(0)
    task = task_for(VQVAE(variant="cifar10", codes=5, width=4))
    batch = Pictures(10).fetch([SampleKey(0, index) for index in range(10)]).batch
    parts = [
        task.evaluate_batch({name: value[rows] for name, value in batch.items()})
        for rows in (slice(0, 7), slice(7, 10))
    ]
    for name, value in task.evaluate_batch(batch).items():
        torch.testing.assert_close(sum(part[name] for part in parts), value)


def test_loss_is_the_weighted_sum_of_its_terms() -> None:
    torch.manual_seed(0)
    data = Pictures(8)
    task = ReconstructionTask(
        VQVAE(variant="cifar10", codes=5, width=4),
        unit_preprocessing(),
        train_data=data,
        eval_data=None,
        beta=0.5,
        pull=0.25,
    )
    terms = task.objectives[0](data.fetch([SampleKey(0, 3), SampleKey(0, 200)]).batch)
    parts = terms["recon"] + terms["vq"] + 0.5 * terms["commit"] + 0.25 * terms["pull"]
    torch.testing.assert_close(terms["loss"], parts)


@pytest.mark.parametrize("size", [1, 5, 13, 40])
def test_originals_are_shown_above_their_reconstructions(size: int) -> None:
    (shown,) = task_for(Shifted(0.5), size).illustrate()
    times = 4
    rows, columns = 2 * max(1, min(size, 16) // 8), min(size, 8)
    assert shown.image.shape == (
        rows * (SIDE * times + 2) - 2,
        columns * (SIDE * times + 2) - 2,
        3,
    )
    step = SIDE * times + 2
    for column in range(columns):
        original = int(shown.image[5, column * step + 5, 0])
        below = int(shown.image[step + 5, column * step + 5, 0])
        assert below - original == pytest.approx(127.5, abs=1)


def test_no_illustration_without_held_out_images() -> None:
    task = task_for(Shifted(0.1))
    task.eval_data = None
    assert task.illustrate() == ()


def test_small_images_are_enlarged_and_large_ones_are_not() -> None:
    assert visible(torch.rand(2, 3, 24, 24)).shape == (2, 3, 72, 72)
    assert visible(torch.rand(2, 1, 128, 128)).shape == (2, 1, 128, 128)
    assert visible(torch.tensor([[[[-1.0, 0.5, math.pi]]]]))[0, 0, 0, 0] == 0


@pytest.mark.parametrize(
    ("size", "levels"),
    [
        (5, [0, 1, 2, 3, 4]),
        (13, [0, 1, 2, 3, 4, 5, 6, 7]),
        (40, [0, 2, 5, 7, 10, 12, 15, 17, 20, 22, 25, 27, 30, 32, 35, 37]),
    ],
)
def test_shown_originals_are_spread_over_the_set(size: int, levels: list[int]) -> None:
    (shown,) = task_for(Shifted(0.5), size).illustrate()
    step = SIDE * 4 + 2
    result = [
        int(shown.image[2 * (number // 8) * step + 5, number % 8 * step + 5, 0])
        for number in range(len(levels))
    ]
    assert result == levels
    assert shown.name == "reconstructions"
    assert shown.caption == "held-out images, each above its reconstruction"
    assert task_for(Shifted(0.5), 0).illustrate() == ()


def test_sums_are_per_image_means_times_images_without_pull_by_default() -> None:
    torch.manual_seed(0)
    network = VQVAE(variant="cifar10", codes=5, width=4)
    task = task_for(network)
    made = Pictures(8).fetch([SampleKey(0, index) for index in (3, 60, 200)]).batch
    actual = task.objectives[0](made)
    assert list(actual) == ["loss", "recon", "vq", "commit"]
    images = made["image"] / 255
    with torch.no_grad():
        result = network(images)
    recon = (result.reconstruction - images).square().mean().item()
    apart = (result.features - result.chosen).square().sum(dim=1).mean().item()
    expected = {"recon": recon, "vq": apart, "commit": apart, "loss": recon + 1.25 * apart}
    assert {name: value.item() / 3 for name, value in actual.items()} == pytest.approx(expected)


def test_grey_networks_use_the_mean_of_the_channels() -> None:
    data = Pictures(2)
    grey = ReconstructionTask(
        VQVAE(variant="mnist", codes=5, width=4),
        unit_preprocessing(),
        train_data=data,
        eval_data=data,
        beta=0.25,
    )
    image = torch.zeros(1, 3, SIDE, SIDE, dtype=torch.uint8)
    image[0, 0], image[0, 1] = 30, 60
    pictures = grey.objectives[0].pictures({"image": image})
    torch.testing.assert_close(pictures, torch.full((1, 1, SIDE, SIDE), 30 / 255))
    coloured = task_for(Shifted(0.1)).objectives[0].pictures({"image": image})
    torch.testing.assert_close(coloured, image / 255)


def test_small_images_are_repeated_to_about_64_px_and_rounded() -> None:
    values = torch.tensor([[0.0, 0.3], [0.5, 2.0]]).expand(1, 1, 2, 2)
    shown = visible(values)
    assert shown.shape == (1, 1, 64, 64)
    assert shown[0, 0, 31:33, 31:33].tolist() == [[0, 76], [128, 255]]
    # 25 and 26 px: 2.56 and 2.46 times; width decides.
    assert visible(torch.zeros(1, 1, 10, 25)).shape == (1, 1, 30, 75)
    assert visible(torch.zeros(1, 1, 10, 26)).shape == (1, 1, 20, 52)
