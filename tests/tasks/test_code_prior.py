"""The task of a prior over codes: nats of the codes of unseen images, and images drawn from it."""

import math
from collections.abc import Sequence

import pytest
import torch
from torch.nn import functional

from jumar.data.pixels.picture_grid import picture_grid
from jumar.data.samples import Fetched, SampleKey
from jumar.models.code_prior import CodePrior
from jumar.models.code_sampling import sample_codes
from jumar.models.pixelcnn import PixelCNN
from jumar.models.vqvae import VQVAE
from jumar.recipes.vqvae import unit_preprocessing
from jumar.tasks.code_prior import CodePriorTask

SIDE, CODES = 12, 5


def model(classes: int = 0, variant: str = "cifar10") -> CodePrior:
    torch.manual_seed(0)
    made = CodePrior(
        VQVAE(variant=variant, codes=CODES, width=4),
        PixelCNN(codes=CODES, width=4, layers=2, maps=4, classes=classes),
    )
    with torch.no_grad():
        for parameter in made.parameters():
            parameter.copy_(0.5 * torch.randn_like(parameter))
    return made.eval()


class Pictures:
    """Images of noise."""

    def __len__(self) -> int:
        return 4

    def fetch(self, keys: Sequence[SampleKey]) -> Fetched:
        random = torch.Generator().manual_seed(1)
        images = torch.randint(0, 256, (4, 3, SIDE, SIDE), generator=random, dtype=torch.uint8)
        chosen = [key.index for key in keys]
        return Fetched(batch={"image": images[chosen], "label": torch.tensor(chosen) % 3})


def task_of(made: CodePrior, size: int = SIDE) -> CodePriorTask:
    data = Pictures()
    return CodePriorTask(
        made, unit_preprocessing(), train_data=data, eval_data=data, image_size=size
    )


def batch(*numbers: int) -> dict[str, torch.Tensor]:
    return dict(Pictures().fetch([SampleKey(0, number) for number in numbers]).batch)


def nats(made: CodePrior, given: dict[str, torch.Tensor]) -> list[float]:
    """Written out: the sum over positions of minus the logarithm of the code's probability."""
    with torch.no_grad():
        codes = made.vqvae.nearest(made.vqvae.encode(given["image"] / 255))
        vectors = made.vqvae.codebook[codes].permute(0, 3, 1, 2)
        shares = made.prior(vectors, given["label"]).double().softmax(dim=1)
    return [
        -sum(
            math.log(shares[row, codes[row, y, x], y, x])
            for y in range(codes.shape[1])
            for x in range(codes.shape[2])
        )
        for row in range(len(codes))
    ]


@pytest.mark.parametrize("classes", [0, 3])
def test_score_is_the_nats_per_image_and_the_bits_per_code(classes: int) -> None:
    made = model(classes)
    task = task_of(made)
    expected = nats(made, batch(0, 1, 2, 3))
    parts = [task.evaluate_batch(batch(0)), task.evaluate_batch(batch(1, 2, 3))]
    assert [part["count"].item() for part in parts] == [1, 3]
    sums = {name: sum(part[name] for part in parts) for name in parts[0]}
    assert sums["nll"].item() == pytest.approx(sum(expected), rel=1e-4)
    # 12 px are 3 x 3 codes.
    mean = sum(expected) / 4
    assert task.summarize(sums) == pytest.approx(
        {"nll": mean, "bits_per_code": mean / 9 / math.log(2)}, rel=1e-4
    )
    (objective,) = task.objectives
    assert objective(batch(1, 2))["loss"].item() == pytest.approx(sum(expected[1:3]), rel=1e-4)


def test_only_the_prior_is_trained_and_averaged() -> None:
    made = model()
    task = task_of(made)
    assert (task.model, task.averaged) == (made, made.prior)
    assert task.objectives[0].trained is made.prior
    task.objectives[0](batch(0, 1))["loss"].backward()
    assert all(p.grad is None and not p.requires_grad for p in made.vqvae.parameters())
    assert all(p.grad is not None for p in made.prior.parameters())


@pytest.mark.parametrize("classes", [0, 3])
def test_thirty_two_images_are_drawn_in_rows_of_eight_cycling_through_classes(
    classes: int,
) -> None:
    made = model(classes)
    (shown,) = task_of(made, 8).illustrate()
    labels = torch.arange(32) % 3 if classes else None
    codes = sample_codes(
        made.prior, made.vqvae.codebook, rows=32, height=2, width=2, seed=0, labels=labels
    )
    with torch.no_grad():
        images = made.vqvae.decode(made.vqvae.vectors(codes))
    levels = (images * 255).round().to(torch.uint8)
    # 8 px are enlarged to 64.
    expected = picture_grid(functional.interpolate(levels, scale_factor=8), columns=8)
    assert shown.image.shape == (4 * 66 - 2, 8 * 66 - 2, 3)
    assert (shown.image.int() - expected.int()).abs().max() <= 1
    assert shown.name == "samples"
    assert shown.caption == "32 images drawn from the prior, seed 0"


def test_grey_networks_use_the_mean_of_the_channels() -> None:
    made = model(variant="mnist")
    given = batch(0, 1)
    given["image"] = functional.interpolate(given["image"], scale_factor=2)
    grey = given["image"].float().mean(dim=1, keepdim=True)
    assert task_of(made, 24).evaluate_batch(given)["nll"].item() == pytest.approx(
        sum(nats(made, {**given, "image": grey})), rel=1e-4
    )
