"""Steps of a recipe as jumar's trainer makes them, on a batch that is on the device already."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from jumar.data.samples import SampleKey
from jumar.devices.contract import Device
from jumar.observer import Observers
from jumar.precision.modes import find_mode
from jumar.recipes.recipe import Recipe
from jumar.recipes.registry import create_recipe
from jumar.runs.context import apply_settings
from jumar.settings import override
from jumar.tasks.task import Task
from jumar.training.guard import Guard
from jumar.training.parallel.ranks import Ranks
from jumar.training.settings import Plan
from jumar.training.state import TrainState
from jumar.training.step import Stepper
from on_accelerator.measuring import Context
from on_accelerator.rates import SHORT_FLOAT32
from on_accelerator.rivals import Rival, Step

MODES = (
    "allow_mix_precision_bf16",
    "allow_mix_precision",
    "must_keep_origin_dtype",
    "force_fp16",
    "allow_fp32_to_fp16",
    "force_fp32",
)
_FOREVER = "training.duration=1000000it"
_UNOBSERVED = Observers()
_ALONE = Ranks()


@dataclass(frozen=True, kw_only=True)
class Training:
    """A recipe ready to make steps.

    Attributes:
        batch: On the device.
    """

    recipe: Recipe
    plan: Plan
    task: Task
    state: TrainState
    guard: Guard
    batch: Mapping[str, Tensor]
    ranks: Ranks

    def stepper(self, observers: Observers = _UNOBSERVED) -> Stepper:
        """What makes steps."""
        return Stepper(
            self.state,
            self.plan,
            self.ranks,
            self.guard,
            steps_per_epoch=1000,
            total_steps=1_000_000,
            observers=observers,
        )


def short_name(mode: str) -> str:
    """A mode without its longest words."""
    return {"allow_mix_precision_bf16": "bf16", "must_keep_origin_dtype": "fp32"}.get(mode, mode)


def dtype_of(mode: str) -> str:
    """What matrix products are computed in, as rates are named."""
    found = find_mode(mode)
    if found.form == "cube_fp32_out":
        return SHORT_FLOAT32
    return str(found.low or torch.float32).removeprefix("torch.")


def in_mode(mode: str) -> list[str]:
    """The settings for a mode: with float16 a loss scale, otherwise none."""
    scale = "exponential" if find_mode(mode).fp16 else "none"
    return [f"precision.mode={mode}", f"precision.loss_scale={scale}"]


def open_training(
    name: str, settings: Sequence[str], device: Device, ranks: Ranks = _ALONE
) -> Training:
    """Build a recipe's task, state and a batch, in a process that trains nothing else."""
    recipe = override(create_recipe(name), [_FOREVER, "data.workers=0", *settings])
    policy = apply_settings(recipe, device)
    task = recipe.build_task(lambda _: None)
    plan = recipe.plan(name)
    state = TrainState(task, plan, device, ranks, policy)
    guard = Guard([objective.name for objective in task.objectives], device.torch, ranks)
    size = len(task.train_data)
    keys = [SampleKey(0, index % size) for index in range(plan.batch_size)]
    batch = {
        name: tensor.to(device.torch) for name, tensor in task.train_data.fetch(keys).batch.items()
    }
    task.model.train()
    for objective in task.objectives:
        objective.train()
    return Training(
        recipe=recipe,
        plan=plan,
        task=task,
        state=state,
        guard=guard,
        batch=batch,
        ranks=ranks,
    )


def jumar_rival(
    name: str, settings: Sequence[str], *, compiled: bool = False, label: str = ""
) -> Rival:
    """A recipe's step by jumar, as one of several rivals."""

    def build(context: Context, device: Device) -> Step:
        del context
        compiles = [f"training.compile={'true' if compiled else 'false'}"]
        training = open_training(name, [*settings, *compiles], device)
        stepper = training.stepper()
        return lambda: stepper.step(training.batch)

    default = "jumar, torch.compile" if compiled else "jumar"
    return Rival(name=label or default, build=build, eager=not compiled)
