import copy
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from jumar.data.images.picture_set import PictureData
from jumar.data.samples import Fetched, SampleKey
from jumar.models.keyed_random import set_random_position
from jumar.tasks.adversarial_losses import AdversarialLoss
from jumar.tasks.generation import EVALUATION_SEED, GenerationTask, Networks
from jumar.tasks.sampling import numbered_latents

SIDE, LATENT = 32, 4


class Painter(nn.Module):
    """A small generator with batch norm, whose numbers a test can follow."""

    def __init__(self) -> None:
        super().__init__()
        self.dense = nn.Linear(LATENT, 3 * 8 * 8)
        self.norm = nn.BatchNorm2d(3)
        self.seen: list[Tensor] = []

    def forward(self, latent: Tensor) -> Tensor:
        self.seen.append(latent.clone())
        x = self.norm(self.dense(latent).view(-1, 3, 8, 8))
        return torch.tanh(nn.functional.interpolate(x, scale_factor=4))


class Critic(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3, stride=2)
        self.norm = nn.BatchNorm2d(4)
        self.out = nn.Linear(4, 1)

    def forward(self, images: Tensor) -> Tensor:
        return self.out(self.norm(self.conv(images)).sum((2, 3)) / 100)


class Pictures:
    """Eleven images of noise, numbered."""

    def __len__(self) -> int:
        return 11

    def fetch(self, keys: Sequence[SampleKey]) -> Fetched:
        images = [
            torch.randint(
                0, 256, (3, SIDE, SIDE), generator=torch.Generator().manual_seed(k.index)
            ).to(torch.uint8)
            for k in keys
        ]
        numbers = torch.tensor([key.index for key in keys])
        return Fetched(batch={"image": torch.stack(images), "index": numbers})


def task_for(generator: nn.Module | None = None, **rules: Any) -> GenerationTask:
    torch.manual_seed(1)
    model = nn.ModuleDict({"g": generator or Painter(), "d": Critic()})
    kind = str(rules.pop("kind", "hinge"))
    every_tower = bool(rules.pop("every_tower", False))
    return GenerationTask(
        Networks(
            model=model,
            generator=model["g"],
            discriminator=model["d"],
            latent=LATENT,
            regularized=lambda: [model["g"].dense.weight],
        ),
        PictureData().preprocessing(),
        AdversarialLoss.kinds[kind](**rules),
        every_tower=every_tower,
        image_size=SIDE,
        train_data=Pictures(),
        eval_data=Pictures(),
    )


def batch(*numbers: int) -> dict[str, Tensor]:
    return dict(Pictures().fetch([SampleKey(0, number) for number in numbers]).batch)


def scores(task: GenerationTask, *batches: Sequence[int]) -> dict[str, float]:
    task.model.eval()
    with torch.inference_mode():
        result = [task.evaluate_batch(batch(*numbers)) for numbers in batches]
    task.model.train()
    return task.summarize({key: torch.cat([f[key] for f in result]) for key in task.gathered})


@pytest.mark.parametrize("kind", AdversarialLoss.kinds)
def test_each_objective_trains_its_own_network_only(kind: str) -> None:
    task = task_for(kind=kind, orthogonal=1e-4)
    for objective, own, other in zip(task.objectives, "dg", "gd", strict=True):
        set_random_position(objective, 7, 0)
        terms = objective(batch(0, 1, 2))
        terms["loss"].backward()
        trained = list(task.model[own].parameters())
        assert [id(p) for p in objective.trained.parameters()] == [id(p) for p in trained]
        assert all(p.grad is not None and torch.isfinite(p.grad).all() for p in trained)
        assert all(p.grad is None for p in task.model[other].parameters())
        task.model.zero_grad()
        if own == "d":
            penalised = kind in ("wgan-gp", "wgan-lp", "dragan")
            assert ("penalty" in terms) == penalised
        else:
            assert terms["orthogonal"] > 0


def test_generator_is_due_at_the_first_of_n_critic_steps() -> None:
    for n_critic, expected in ((2, [0, 2, 4]), (1, [0, 1, 2, 3, 4]), (3, [0, 3])):
        _, generator = task_for(n_critic=n_critic).objectives
        assert [step for step in range(5) if generator.is_due(step)] == expected


def test_network_statistics_are_updated_in_both_turns() -> None:
    task = task_for()
    for objective in task.objectives:
        before = {name: value.clone() for name, value in task.model.named_buffers()}
        set_random_position(objective, 7, 0)
        objective(batch(0, 1, 2))
        after = dict(task.model.named_buffers())
        assert not torch.equal(before["g.norm.running_mean"], after["g.norm.running_mean"])
        assert not torch.equal(before["d.norm.running_mean"], after["d.norm.running_mean"])


def test_discriminator_sees_real_images_in_the_generators_turn_on_every_tower() -> None:
    moved: list[int] = []
    for every_tower in (False, True):
        task = task_for(every_tower=every_tower)
        set_random_position(task.objectives[1], 7, 0)
        task.objectives[1](batch(0, 1, 2))
        moved.append(int(task.model["d"].norm.num_batches_tracked))
    assert moved == [1, 2]


def test_augmentation_affects_both_networks_inputs_but_not_latent_vectors() -> None:
    judged: list[list[Tensor]] = []
    seen: list[list[Tensor]] = []
    for changes in ((), ("color", "translation", "cutout")):
        task = task_for(augmentation=changes)
        pictures: list[Tensor] = []
        task.model["d"].register_forward_pre_hook(
            lambda _, inputs, pictures=pictures: pictures.append(inputs[0].detach())
        )
        for objective in task.objectives:
            set_random_position(objective, 7, 0)
            objective(batch(0, 1, 2))["loss"].backward()
        assert all(p.grad is not None for p in task.model.parameters())
        judged.append(pictures)
        seen.append(list(task.model["g"].seen))
    assert all((plain - changed).abs().max() > 0.5 for plain, changed in zip(*judged, strict=True))
    assert all(torch.equal(plain, changed) for plain, changed in zip(*seen, strict=True))


def test_latent_vectors_differ_between_steps_and_turns_but_not_between_splits() -> None:
    task = task_for()
    painter = task.model["g"]
    for objective in task.objectives:
        for key in (7, 8):
            set_random_position(objective, key, 0)
            objective(batch(0, 1, 2, 3))
    whole = list(painter.seen)
    assert all(v.abs().max() <= 2.0001 for v in whole)
    assert not any(torch.isclose(whole[i], whole[j]).any() for i in range(4) for j in range(i))
    painter.seen.clear()
    for first in (0, 2):
        set_random_position(task.objectives[0], 7, first)
        task.objectives[0](batch(first, first + 1))
    assert torch.equal(torch.cat(painter.seen), whole[0])


def test_scores_do_not_depend_on_the_split_and_name_every_level() -> None:
    task = task_for()
    whole = scores(task, range(11))
    assert list(whole) == ["swd", "swd_32", "swd_16"]
    assert scores(task, range(4), range(4, 8), range(8, 11)) == pytest.approx(whole, rel=1e-4)
    assert whole["swd"] == pytest.approx((whole["swd_32"] + whole["swd_16"]) / 2)


def test_generator_of_the_real_images_has_zero_distance() -> None:
    real = torch.stack([batch(n)["image"][0] for n in range(11)]).float() / 127.5 - 1
    vectors = numbered_latents(0, 11, LATENT, seed=EVALUATION_SEED, truncation=2.0)

    class Copier(nn.Module):
        def forward(self, latents: Tensor) -> Tensor:
            return torch.stack([real[int((vectors == v).all(1).nonzero())] for v in latents])

    assert scores(task_for(Copier()), range(11))["swd"] == pytest.approx(0, abs=1e-2)
    assert scores(task_for(), range(11))["swd"] > 10


def test_illustrations_are_the_same_at_every_call() -> None:
    task = task_for()
    task.model.eval()
    with torch.inference_mode():
        first, second = task.illustrate(), task.illustrate()
    assert [picture.name for picture in first] == ["samples", "interpolation"]
    for one, other in zip(first, second, strict=True):
        assert torch.equal(one.image, other.image)
        assert one.image.dtype == torch.uint8
        assert one.image.shape[2] == 3


def seen_by_critic(task: GenerationTask) -> list[Tensor]:
    """What the discriminator is shown from now on."""
    shown: list[Tensor] = []
    task.model["d"].register_forward_pre_hook(lambda _, inputs: shown.append(inputs[0].detach()))
    return shown


def logits_of(critic: nn.Module, images: Tensor) -> np.ndarray:
    """Those that the discriminator gave to a batch, from a copy of it."""
    with torch.no_grad():
        return copy.deepcopy(critic).train()(images)[:, 0].double().numpy()


def test_discriminator_loss_uses_logits_of_real_and_generated_images() -> None:
    task = task_for(kind="lsgan")
    shown = seen_by_critic(task)
    set_random_position(task.objectives[0], 7, 0)
    terms = task.objectives[0](batch(4, 5, 6))
    assert len(shown) == 2
    pictures = np.stack([batch(n)["image"][0].numpy() for n in (4, 5, 6)])
    np.testing.assert_allclose(shown[0].numpy(), pictures / 127.5 - 1, atol=1e-6)
    assert task.model["g"].seen[0].shape == (3, LATENT)
    real = ((logits_of(task.model["d"], shown[0]) - 1) ** 2).sum()
    fake = (logits_of(task.model["d"], shown[1]) ** 2).sum()
    assert list(terms) == ["loss", "real", "fake"]
    assert terms["real"].item() == pytest.approx(real, rel=1e-4)
    assert terms["fake"].item() == pytest.approx(fake, rel=1e-4)
    assert terms["loss"].item() == pytest.approx(real + fake, rel=1e-4)


def test_discriminators_loss_contains_its_penalty_once() -> None:
    task = task_for(kind="wgan-gp", penalty=3.0)
    shown = seen_by_critic(task)
    set_random_position(task.objectives[0], 7, 0)
    terms = task.objectives[0](batch(4, 5, 6))
    assert list(terms) == ["loss", "real", "fake", "penalty"]
    assert terms["penalty"].item() > 0
    total = sum(terms[name].item() for name in ("real", "fake", "penalty"))
    assert terms["loss"].item() == pytest.approx(total, rel=1e-5)
    real, fake, between = shown
    # Each image has its own share of the way, the same at all of its pixels.
    shares = (between - real) / (fake - real)
    middle = shares.flatten(1).median(dim=1).values
    near = (fake - real).abs() > 0.1
    far_off = (shares - middle[:, None, None, None]).abs()[near]
    assert far_off.max() < 1e-3
    assert ((middle > 0) & (middle < 1)).all()
    assert len(middle.unique()) == 3


def test_generator_loss_covers_its_images_and_its_share_of_the_weight_penalty() -> None:
    task = task_for(kind="hinge", orthogonal=0.5)
    shown = seen_by_critic(task)
    objective = task.objectives[1]
    set_random_position(objective, 7, 0)
    terms = objective(batch(0, 1, 2))
    (fake,) = shown
    score = -logits_of(task.model["d"], fake).sum()
    weight = task.model["g"].dense.weight.detach().double().numpy()
    gram = weight @ weight.T if len(weight) <= weight.shape[1] else weight.T @ weight
    extra = 0 if len(weight) <= weight.shape[1] else len(weight) - weight.shape[1]
    penalty = 3 * 0.5 * 0.5 * (((gram - np.eye(len(gram))) ** 2).sum() + extra)
    assert list(terms) == ["loss", "orthogonal"]
    assert terms["orthogonal"].item() == pytest.approx(penalty, rel=1e-4)
    assert terms["loss"].item() == pytest.approx(score + penalty, rel=1e-4)
    without = task_for(kind="hinge").objectives[1]
    set_random_position(without, 7, 0)
    assert list(without(batch(0, 1, 2))) == ["loss"]


def test_latent_vectors_are_truncated_at_the_losses_setting() -> None:
    task = task_for(truncation=0.25)
    for objective in task.objectives:
        set_random_position(objective, 7, 0)
        objective(batch(*range(11)))
    scores(task, range(11))
    task.model.eval()
    with torch.inference_mode():
        task.illustrate()
    largest = [seen.abs().max().item() for seen in task.model["g"].seen]
    assert len(largest) >= 4
    assert all(0.2 < each <= 0.2501 for each in largest)


def test_illustrations_are_six_rows_of_samples_and_interpolations_of_the_first_eight() -> None:
    task = task_for()
    task.model.eval()
    vectors = numbered_latents(0, 36, LATENT, seed=20182, truncation=2.0)
    shares = torch.linspace(0, 1, 8)
    lines = torch.stack(
        [vectors[n] + share * (vectors[4 + n] - vectors[n]) for n in range(4) for share in shares]
    )
    with torch.inference_mode():
        samples, interpolation = task.illustrate()
        pictures = [
            ((task.model["g"](each) + 1) * 127.5).round().permute(0, 2, 3, 1).int()
            for each in (vectors, lines)
        ]
    for shown, expected, columns in zip((samples, interpolation), pictures, (6, 8), strict=True):
        rows = len(expected) // columns
        step = SIDE + 2
        assert shown.image.shape == (rows * step - 2, columns * step - 2, 3)
        for number, picture in enumerate(expected):
            top, left = number // columns * step, number % columns * step
            result = shown.image[top : top + SIDE, left : left + SIDE].int()
            assert (result - picture).abs().max() <= 1
    assert samples.caption == "36 images, from the same latent vectors every time"
    assert interpolation.caption == (
        "4 interpolations between two latent vectors, from left to right"
    )


def test_frechet_distance_compares_features_of_real_and_generated_images() -> None:
    class Features(nn.Module):
        """The means of the quarters of an image of 299 px."""

        def forward(self, images: Tensor) -> Tensor:
            assert images.shape[1:] == (3, 299, 299)
            return nn.functional.adaptive_avg_pool2d(images, 2).flatten(1)[:, :4]

    plain = task_for()
    networks = plain._networks
    task = GenerationTask(
        networks,
        PictureData().preprocessing(),
        AdversarialLoss.kinds["hinge"](),
        image_size=SIDE,
        train_data=Pictures(),
        eval_data=Pictures(),
        inception=Features(),  # type: ignore[arg-type]
    )
    assert task.gathered == [
        f"{kind}_{name}" for kind in ("real", "fake") for name in ("32", "16", "features")
    ]
    result = scores(task, range(4), range(4, 11))
    assert list(result) == ["swd", "swd_32", "swd_16", "fid"]
    vectors = numbered_latents(0, 11, LATENT, seed=20181, truncation=2.0)
    with torch.inference_mode():
        made = ((networks.generator.eval()(vectors) + 1) * 127.5).round() / 127.5 - 1
    real = torch.stack([batch(n)["image"][0] for n in range(11)]) / 127.5 - 1
    sets = [
        Features()(nn.functional.interpolate(images, size=(299, 299), mode="bilinear")).double()
        for images in (real, made)
    ]
    means_apart = (sets[0].mean(0) - sets[1].mean(0)).square().sum().item()
    covariances = [torch.cov(each.T).numpy() for each in sets]
    eigenvalues = np.linalg.eigvals(covariances[0] @ covariances[1]).real.clip(min=0)
    expected = means_apart + sum(map(np.trace, covariances)) - 2 * np.sqrt(eigenvalues).sum()
    assert result["fid"] == pytest.approx(expected, rel=1e-3)


def test_task_works_without_images_to_score() -> None:
    networks = task_for()._networks
    task = GenerationTask(
        networks,
        PictureData().preprocessing(),
        AdversarialLoss.kinds["hinge"](),
        image_size=SIDE,
        train_data=Pictures(),
        eval_data=None,
    )
    assert (task.averaged, task.model) == (networks.generator, networks.model)
    assert [each.name for each in task.objectives] == ["discriminator", "generator"]
    set_random_position(task.objectives[1], 7, 0)
    task.objectives[1](batch(0, 1))
    assert int(task.model["d"].norm.num_batches_tracked) == 1
