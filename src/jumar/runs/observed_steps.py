"""Training steps of a recipe or a run that only serve to observe them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from jumar.ground.errors import UserError
from jumar.ground.paths import is_folder
from jumar.ground.text import counted
from jumar.observer import Observer
from jumar.recipes.recipe import Recipe
from jumar.recipes.registry import create_recipe, import_modules
from jumar.recipes.resolved import with_data_in_place
from jumar.recipes.stored import stored_recipe
from jumar.runs.context import ChosenRun, RunContext
from jumar.settings import field_of, override
from jumar.tasks.task import Task
from jumar.training.checkpoint import Checkpoint
from jumar.training.checkpoint_retention import newest_checkpoint, say_damaged
from jumar.training.optimizers import OptimizerSettings
from jumar.training.parallel.ranks import Ranks
from jumar.training.progress import Console
from jumar.training.run_directory import RunDirectory, recorded_recipe
from jumar.training.settings import Plan
from jumar.training.signals import StopRequest
from jumar.training.trainer import Trainer
from jumar.training.transfer import transfer_weights

NOWHERE = RunDirectory(Path("a folder that nothing is written to"))


@dataclass(frozen=True, kw_only=True)
class SourceRequest:
    """The recipe or run that a command works on, and its device.

    Attributes:
        what: A recipe's name, or a run directory.
        assignments: Changed fields.
        imports: Modules to import first.
    """

    what: str
    assignments: Sequence[str] = ()
    imports: Sequence[str] = ()
    device: str = "auto"


@dataclass(frozen=True, kw_only=True)
class ChosenStart(ChosenRun):
    """A training run to observe, and its start; for a recipe, `run` is a placeholder.

    Attributes:
        checkpoint: The checkpoint to start from; None for the initial weights.
        sharing: The ranks that share the run's global batch; None if each rank has a batch of the
            recipe's size.
    """

    checkpoint: Checkpoint | None
    sharing: Ranks | None = None

    @cached_property
    def plan(self) -> Plan:
        """See `ChosenRun.plan`."""
        if self.sharing is None:
            return self.recipe.plan(self.name)
        return self.shared_plan(self.sharing, self.checkpoint)

    @property
    def first(self) -> int:
        """The first step to train, which is the number of steps already trained."""
        return 0 if self.checkpoint is None else self.checkpoint.step

    @property
    def label(self) -> str:
        """A short name: the name of the run's folder or of the recipe."""
        return self.run.path.absolute().name if self.is_stored else self.name


def find_source(
    request: SourceRequest,
    ranks: Ranks,
    *,
    until: int | None = None,
    todo: str = "",
    as_trained: bool = False,
) -> ChosenStart:
    """Return the recipe or run that a command names.

    Args:
        request: The recipe or run.
        ranks: The ranks; the first one prints notices.
        until: The last step from which a run may resume; None for its newest checkpoint.
        todo: Advice for the error if it is a folder but not a run.
        as_trained: Whether to replay a run's steps on the samples it was trained on, even with
            another number of ranks: its batches are split among the current ones, unless
            `batch_size` is changed.

    Raises:
        UserError: There is no such recipe or run.
    """
    path, assignments = Path(request.what), request.assignments
    run = RunDirectory(path)
    if run.exists:
        name, modules, stored = stored_recipe(run, request.imports)
        notice = Console(silent=not ranks.is_first).line
        recipe = with_data_in_place(override(stored, assignments), run, notice, assignments)
        checkpoint = newest_checkpoint(run.checkpoints, say_damaged, until=until)
        kept_fields = _kept_by_checkpoints(recipe, assignments)
        if checkpoint is not None and kept_fields:
            notice(
                f"note: the checkpoint's values of {', '.join(kept_fields)} are used, not those of "
                "--set"
            )
        return ChosenStart(
            run=run,
            recipe=recipe,
            name=name,
            imports=modules,
            is_stored=True,
            checkpoint=checkpoint,
            global_batch=recorded_recipe(run.read_recipe(), where=str(run.recipe)).global_batch,
            sharing=ranks if as_trained and not _sets_batch(assignments) else None,
        )
    if is_folder(path):
        raise UserError(f"'{path}' is not a run directory: it has no recipe.json", todo=todo)
    import_modules(request.imports)
    return ChosenStart(
        run=NOWHERE,
        recipe=create_recipe(request.what, assignments),
        name=request.what,
        imports=list(request.imports),
        checkpoint=None,
    )


def _sets_batch(assignments: Sequence[str]) -> bool:
    """Return whether a field `batch_size` is assigned."""
    return any(
        field_of(assignment).rpartition(".")[2] == "batch_size" for assignment in assignments
    )


def _kept_by_checkpoints(recipe: Recipe, assignments: Sequence[str]) -> list[str]:
    """Return the assigned optimizer fields that a checkpoint overrides with its own values."""
    return [
        field
        for field in map(field_of, assignments)
        for section, _, name in [field.partition(".")]
        if isinstance(getattr(recipe, section, None), OptimizerSettings)
        and name not in ("learning_rate", "fused", "")
    ]


def observing_trainer(
    context: RunContext[ChosenRun],
    task: Task,
    plan: Plan,
    observers: Sequence[Observer],
    console: Console | None = None,
) -> Trainer:
    """Return a trainer whose results are discarded.

    Args:
        context: The context it runs in.
        task: The task.
        plan: The plan.
        observers: Observers of the steps.
        console: The console it prints to; None for the context's.
    """
    return Trainer(
        task,
        # Explaining an overflow repeats passes, which would be observed too.
        replace(plan, training=replace(plan.training, explain_overflow=False)),
        device=context.device,
        ranks=context.ranks,
        run=context.run,
        console=console or context.console,
        stop=StopRequest(),
        policy=context.policy,
        versions={},
        observers=observers,
    )


def starting_task(context: RunContext[ChosenRun], checkpoint: Checkpoint | None) -> Task:
    """Build the task; without a checkpoint, with the weights that the training starts from.

    Raises:
        UserError: See `Recipe.build_task`, or the weights to start from cannot be used.
    """
    task = context.build_task(context.chosen.recipe)
    transfer = context.chosen.plan.transfer
    if checkpoint is None and transfer.start_from:
        transfer_weights(task.model, transfer)
    return task


def check_step(trainer: Trainer, step: int, where: str) -> None:
    """Check that a run has a step.

    Raises:
        UserError: The run has fewer steps.
    """
    total = trainer.total_steps
    if total is not None and step >= total:
        raise UserError(
            f"step {step} is beyond the end: the run has {counted(total, 'step')}",
            where=where,
            todo=f"Steps are counted from 0; the last is {total - 1}.",
        )
