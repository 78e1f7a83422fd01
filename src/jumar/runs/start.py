"""What every command on a run begins with: device, kernels, precision, the first line."""

from collections.abc import Sequence

from jumar.devices.contract import Device
from jumar.devices.process import seed_everything, set_threads
from jumar.ground.text import counted
from jumar.precision.policy import PrecisionPolicy
from jumar.recipes.recipe import Recipe
from jumar.training.distribution import Ranks
from jumar.training.progress import Console
from jumar.training.run_directory import RunDirectory


def prepare(recipe: Recipe, device: Device) -> None:
    """Threads, seeds and kernels, before anything is computed."""
    set_threads(recipe.threads.intra_op or None, recipe.threads.inter_op or None)
    seed_everything(recipe.seed)
    device.set_deterministic(recipe.training.deterministic)


def policy_in_force(recipe: Recipe, device: Device) -> PrecisionPolicy:
    """The precision policy, in force."""
    policy = PrecisionPolicy(recipe.precision, device_type=device.torch.type)
    device.set_full_float32(policy.full_float32)
    policy.install()
    return policy


def say_first_line(
    console: Console,
    run: RunDirectory,
    *,
    plan_batch: int,
    device: Device,
    ranks: Ranks,
    policy: PrecisionPolicy,
) -> None:
    """Line one of a run: device, precision as computed, batch, ranks."""
    described = policy.description
    note = f" ({described.note})" if described.note else ""
    passed_over = f"; {device.note}" if device.note else ""
    count = counted(ranks.world, "rank")
    console.line(
        f"device: {device.kind} ({device.name}{passed_over}) · "
        f"precision: {described.mode} computed in {described.computed}{note} · "
        f"batch: {plan_batch * ranks.world} = {count} x {plan_batch} · run: {run}"
    )


def say_unreadable(console: Console, samples: Sequence[str]) -> None:
    """Count and name the samples that were left out."""
    if samples:
        count = counted(len(samples), "unreadable sample")
        console.line(f"skipped {count}:")
    for sample in samples:
        console.line(f"  {sample}")
