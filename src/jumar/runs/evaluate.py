"""Score the checkpoints of a run: `jumar evaluate`."""

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from jumar.data.loading.faults import FaultTally
from jumar.data.loading.loader import resolve_workers
from jumar.ground.errors import UserError
from jumar.ground.text import counted
from jumar.recipes.resolved import with_data_in_place
from jumar.recipes.stored import stored_recipe
from jumar.runs.context import ChosenRun, RunContext, open_context, print_unreadable
from jumar.settings import override
from jumar.tasks.task import Task
from jumar.training.checkpoint import Checkpoint, record_metrics
from jumar.training.checkpoint_retention import (
    find_checkpoint,
    intact_checkpoints,
    refuse_missing,
)
from jumar.training.evaluation import Interrupted, Scores, evaluate, score_table, table_text
from jumar.training.parallel.ranks import Ranks
from jumar.training.progress import Console
from jumar.training.run_directory import RunDirectory
from jumar.training.signals import StopRequest, listening
from jumar.training.state import TrainState

_Rows = list[tuple[Checkpoint, Mapping[str, float]]]


@dataclass(frozen=True, kw_only=True)
class EvaluateRequest:
    """The options of `jumar evaluate`.

    Attributes:
        which: `all` kept checkpoints, `last`, `best`, or a step.
        assignments: Changed fields; the scores are then not comparable and are not saved in the
            run.
        skip_corrupt: Number of unreadable samples to tolerate; None for the training's limit.
    """

    run_dir: Path
    which: str = "all"
    assignments: Sequence[str] = ()
    skip_corrupt: int | None = None
    imports: Sequence[str] = ()
    device: str = "auto"


def evaluate_run(request: EvaluateRequest) -> int:
    """Score the kept checkpoints of a run, or one of them, and print the table.

    On a signal, the current checkpoint is abandoned; the scores of the earlier ones are printed and
    saved.

    Returns:
        0, or the exit code of the signal.

    Raises:
        UserError: There is no such run or checkpoint, or no data to score on.
    """
    with open_context(
        lambda ranks: _chosen(request, ranks), device=request.device, writes=False
    ) as context:
        run, console, plan = context.run, context.console, context.chosen.plan
        context.print_first_line(plan.eval_batch_size)
        task = context.build_task(context.chosen.recipe)
        headline = (task.headline.name, task.headline.higher_is_better)
        checkpoints = (
            intact_checkpoints(run.checkpoints, console.line)
            if request.which == "all"
            else [find_checkpoint(run.checkpoints, request.which, headline, console.line)]
        )
        with _listening_on_one_rank(context.ranks) as stop:
            rows = _score(checkpoints, task, context, stop)
        stopped = len(rows) < len(checkpoints)
        if stopped:
            console.line(f"stopped after {len(rows)} of {len(checkpoints)} checkpoints")
        if rows:
            console.line(score_table(rows))
        if context.ranks.is_first and not request.assignments:
            _save_scores(rows, console)
    return stop.exit_code if stopped else 0


def _chosen(request: EvaluateRequest, ranks: Ranks) -> ChosenRun:
    run = RunDirectory(request.run_dir)
    name, imports, recipe = stored_recipe(run, request.imports)
    refuse_missing(run.checkpoints, request.which)
    notice = Console(silent=not ranks.is_first).line
    recipe = with_data_in_place(
        override(recipe, request.assignments), run, notice, request.assignments
    )
    if request.skip_corrupt is not None:
        recipe = override(recipe, [f"data.skip_corrupt={request.skip_corrupt}"])
    return ChosenRun(run=run, recipe=recipe, name=name, imports=imports, is_stored=True)


def _save_scores(rows: _Rows, console: Console) -> None:
    try:
        for checkpoint, metrics in rows:
            record_metrics(checkpoint, metrics)
    except UserError as error:
        # The run may be read-only, for instance another user's.
        console.line(f"scores not saved in the run: {error.where} {error.what}")


@contextmanager
def _listening_on_one_rank(ranks: Ranks) -> Generator[StopRequest]:
    """Listen for signals if there is one rank; several would stop at different batches and hang."""
    if ranks.world > 1:
        yield StopRequest()
        return
    with listening() as stop:
        yield stop


def _score(
    checkpoints: Sequence[Checkpoint], task: Task, context: RunContext[ChosenRun], stop: StopRequest
) -> _Rows:
    plan, device, ranks, console = (
        context.chosen.plan,
        context.device,
        context.ranks,
        context.console,
    )
    state = TrainState(task, plan, device, Ranks(), context.policy)
    rows: _Rows = []
    scores: Scores | None = None
    tally = FaultTally(plan.skip_corrupt)
    workers = resolve_workers(plan.workers, local_world=ranks.local_world, on_cpu=device.on_host)
    for checkpoint in checkpoints:
        state.restore_weights(checkpoint)
        try:
            with state.scored_weights():
                scores = evaluate(
                    task,
                    context.policy,
                    device=device,
                    ranks=ranks,
                    batch_size=plan.eval_batch_size,
                    workers=workers,
                    tally=tally,
                    console=console,
                    stop=stop,
                )
        except Interrupted:
            break
        rows.append((checkpoint, scores.metrics))
    print_unreadable(console, ranks.texts([str(fault) for fault in tally.faults]))
    if scores is not None:
        console.line(f"evaluation data: {counted(scores.samples, 'sample')}")
        for table in scores.tables:
            console.line(table_text(table))
    return rows
