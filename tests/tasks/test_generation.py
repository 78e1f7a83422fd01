from collections.abc import Sequence
from typing import Any

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
    """Eleven pictures of noise, numbered."""

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
        found = [task.evaluate_batch(batch(*numbers)) for numbers in batches]
    task.model.train()
    return task.summarize({key: torch.cat([f[key] for f in found]) for key in task.gathered})


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


def test_the_generator_is_due_at_the_first_of_n_critic_steps() -> None:
    for n_critic, expected in ((2, [0, 2, 4]), (1, [0, 1, 2, 3, 4]), (3, [0, 3])):
        _, generator = task_for(n_critic=n_critic).objectives
        assert [step for step in range(5) if generator.is_due(step)] == expected


def test_the_networks_statistics_move_in_both_turns() -> None:
    task = task_for()
    for objective in task.objectives:
        before = {name: value.clone() for name, value in task.model.named_buffers()}
        set_random_position(objective, 7, 0)
        objective(batch(0, 1, 2))
        after = dict(task.model.named_buffers())
        assert not torch.equal(before["g.norm.running_mean"], after["g.norm.running_mean"])
        assert not torch.equal(before["d.norm.running_mean"], after["d.norm.running_mean"])


def test_every_tower_also_shows_the_discriminator_real_pictures_in_the_generators_turn() -> None:
    moved: list[int] = []
    for every_tower in (False, True):
        task = task_for(every_tower=every_tower)
        set_random_position(task.objectives[1], 7, 0)
        task.objectives[1](batch(0, 1, 2))
        moved.append(int(task.model["d"].norm.num_batches_tracked))
    assert moved == [1, 2]


def test_augmentation_changes_what_both_networks_learn_from_but_not_the_latent_vectors() -> None:
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


def test_scores_do_not_depend_on_how_the_set_is_split_and_name_every_level() -> None:
    task = task_for()
    whole = scores(task, range(11))
    assert list(whole) == ["swd", "swd_32", "swd_16"]
    assert scores(task, range(4), range(4, 8), range(8, 11)) == pytest.approx(whole, rel=1e-4)
    assert whole["swd"] == pytest.approx((whole["swd_32"] + whole["swd_16"]) / 2)


def test_a_generator_of_the_real_pictures_has_no_distance() -> None:
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
