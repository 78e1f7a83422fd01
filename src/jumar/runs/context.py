"""The context of a command that works on a run: ranks, device, console and precision."""

from collections.abc import Callable, Generator, Sequence
from contextlib import closing, contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Generic, TypeVar

from jumar.devices.contract import Device
from jumar.devices.process import seed_everything, set_threads
from jumar.devices.registry import open_device
from jumar.ground.errors import UserError
from jumar.ground.text import counted
from jumar.precision.policy import PrecisionPolicy
from jumar.recipes.recipe import Recipe
from jumar.recipes.resolved import field_with
from jumar.settings import to_json
from jumar.tasks.task import Task
from jumar.training.checkpoint import Checkpoint
from jumar.training.parallel.announced import announced_ranks, is_elastic
from jumar.training.parallel.exact import adding_exactly
from jumar.training.parallel.ranks import Ranks
from jumar.training.parallel.spare import sharing
from jumar.training.profiling.ranges import named_layers
from jumar.training.progress import Console
from jumar.training.run_directory import RunDirectory
from jumar.training.settings import Plan

LOCK_PATIENCE_S = 60.0
"""Time that a first rank restarted by torchrun waits for its predecessor to end."""


@dataclass(frozen=True, kw_only=True)
class ChosenRun:
    """The recipe that a command works on, and the directory of its run.

    Attributes:
        imports: Modules that the recipe needs.
        global_batch: Samples per step over all ranks when the run began; 0 if unknown.
        is_stored: Whether the recipe was read from a run, so that its paths come from the run.
    """

    run: RunDirectory
    recipe: Recipe
    name: str
    imports: Sequence[str]
    global_batch: int = 0
    is_stored: bool = False

    @cached_property
    def plan(self) -> Plan:
        """The part of the recipe that the trainer needs."""
        return self.recipe.plan(self.name)

    def shared_plan(self, ranks: Ranks, checkpoint: Checkpoint | None) -> Plan:
        """Return the plan with one rank's share of the run's global batch as its batch size.

        The number of ranks may differ from the one that the run began with.

        Args:
            ranks: The ranks that share it.
            checkpoint: The checkpoint that the run resumes from.

        Raises:
            UserError: This number of ranks cannot share it.
        """
        plan = self.recipe.plan(self.name)
        global_batch = checkpoint.batch.get("global_batch_size") if checkpoint else None
        global_batch = global_batch or self.global_batch
        if not global_batch:
            return plan
        if global_batch % ranks.world:
            count = sharing(ranks.world, global_batch)
            raise UserError(
                f"the run has batches of {global_batch} samples, which {ranks.world} ranks cannot "
                "share",
                where=str(self.run),
                todo=f"Use a number of ranks that divides {global_batch}, such as {count}. "
                "A run whose number of ranks changes needs a batch that each of them divides: with "
                "torchrun --nnodes 1:4 and one rank each, a multiple of 12.",
            )
        return replace(plan, batch_size=global_batch // ranks.world)

    def recorded(self) -> dict[str, Any]:
        """Return the content of `recipe.json`."""
        return {
            "recipe": self.name,
            "imports": list(self.imports),
            "settings": to_json(self.recipe),
        }


C = TypeVar("C", bound=ChosenRun, covariant=True)


@dataclass(frozen=True, kw_only=True)
class RunContext(Generic[C]):
    """A chosen run on a device, with its precision policy installed."""

    chosen: C
    run: RunDirectory
    device: Device
    ranks: Ranks
    console: Console
    policy: PrecisionPolicy

    def build_task(self, recipe: Recipe) -> Task:
        """Build the task of the run's recipe; if its data is missing, the error names the run.

        Args:
            recipe: The run's recipe, with everything known about it filled in.

        Raises:
            UserError: See `Recipe.build_task`.
        """
        try:
            task = recipe.build_task(self.console.line)
        except UserError as error:
            field = field_with(recipe, error.where)
            if not self.chosen.is_stored or not field:
                raise
            source = f"The path comes from the run; if it has moved: --set {field}=..."
            todo = f"{error.todo}\n  {source}" if error.todo else source
            raise UserError(error.what, where=error.where, todo=todo) from error
        self.policy.keep_layers(named_layers(task.model, task.objectives))
        return task

    def print_first_line(self, batch: int) -> None:
        """Print a run's first line: device, precision as computed, batch size, ranks."""
        device, precision = self.device, self.policy.description
        precision_note = f" ({precision.note})" if precision.note else ""
        device_note = f"; {device.note}" if device.note else ""
        world = self.ranks.world
        self.console.line(
            f"device: {device.kind} ({device.name}{device_note}) · "
            f"precision: {precision.mode} computed in {precision.computed}{precision_note} · "
            f"batch: {batch * world} = {counted(world, 'rank')} x {batch} · run: {self.run}"
        )


@contextmanager
def open_context(
    choose: Callable[[Ranks], C],
    *,
    device: str,
    writes: bool,
    restart_hint: Callable[[RunDirectory, Ranks], str] = lambda _run, _ranks: (
        "Start the same command again."
    ),
) -> Generator[RunContext[C]]:
    """Open the context of a command on every rank, and close it at the end.

    Args:
        choose: Returns the run; called before a device is opened. Only the first rank's directory
            is used.
        device: The value of `--device`.
        writes: Whether the command writes into the run directory, which is then locked.
        restart_hint: Returns the advice to print after the loss of a rank.

    Raises:
        UserError: The device is not available, another process is writing into the run, or another
            rank was lost.
    """
    ranks = announced_ranks()
    chosen = choose(ranks)
    opened_device = open_device(device)
    console = Console(silent=not ranks.is_first)
    if chosen.recipe.training.sums == "exact":
        ranks = adding_exactly(ranks)
    run = chosen.run
    try:
        ranks.connect(opened_device)
        run = RunDirectory(Path(ranks.shared_text(str(run.path))))
        ranks.watch(lambda: restart_hint(run, ranks))
        with _entered_context(chosen, run, opened_device, ranks, console, writes=writes) as context:
            yield context
    except Exception as error:
        lost = ranks.loss_in(error)
        if not lost:
            raise
        raise UserError(lost, todo=restart_hint(run, ranks)) from error
    ranks.disconnect()


@contextmanager
def _entered_context(
    chosen: C, run: RunDirectory, device: Device, ranks: Ranks, console: Console, *, writes: bool
) -> Generator[RunContext[C]]:
    patience_s = LOCK_PATIENCE_S if is_elastic() else 0.0
    with (
        run.locked(patience_s=patience_s) if writes and ranks.is_first else nullcontext(),
        closing(console),
        closing(apply_settings(chosen.recipe, device)) as policy,
    ):
        yield RunContext(
            chosen=chosen, run=run, device=device, ranks=ranks, console=console, policy=policy
        )


def apply_settings(recipe: Recipe, device: Device) -> PrecisionPolicy:
    """Apply a recipe's threads, seed, kernels and precision; the caller closes the policy."""
    # torchrun starts ranks with one thread each; one rank alone would take all cores, and the order
    # in which CPU kernels sum depends on the number of threads.
    default = 1 if recipe.training.sums == "exact" and device.on_host else None
    set_threads(recipe.threads.intra_op or default, recipe.threads.inter_op or None)
    seed_everything(recipe.seed)
    device.set_deterministic(recipe.training.deterministic)
    policy = PrecisionPolicy(recipe.precision, device_type=device.torch.type)
    device.set_full_float32(policy.full_float32)
    policy.install()
    return policy


def print_unreadable(console: Console, samples: Sequence[str]) -> None:
    """Print the number of skipped samples and a line for each."""
    if samples:
        console.line(f"skipped {counted(len(samples), 'unreadable sample')}:")
    for sample in samples:
        console.line(f"  {sample}")
