"""`results.json`: a run's results in machine-readable form."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, Protocol

from jumar.devices.contract import Device
from jumar.precision.policy import PrecisionPolicy
from jumar.tasks.task import Headline
from jumar.training.checkpoint import Checkpoint
from jumar.training.evaluation import Scores
from jumar.training.parallel.ranks import Ranks
from jumar.training.run_directory import RunDirectory, write_json
from jumar.training.settings import Plan
from jumar.training.throughput import EXCLUDES, StepClock

State = Literal["finished", "interrupted", "failed"]


class Failure(Protocol):
    """Why a run failed: the step, the objective, and the reason."""

    step: int
    objective: str
    reason: str


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """How a run ended."""

    state: State
    step: int
    exit_code: int
    metrics: Mapping[str, float]
    failure: Failure | None = None
    stopped_early: str = ""
    """Why the run ended before its duration was reached; empty if it was reached."""


def write_results(
    run: RunDirectory,
    outcome: Outcome,
    *,
    plan: Plan,
    device: Device,
    ranks: Ranks,
    policy: PrecisionPolicy,
    clock: StepClock,
    headline: Headline,
    best: Checkpoint | None,
    versions: Mapping[str, Any],
    skipped_steps: int,
    unreadable: Sequence[str],
    train_loss: float | None,
    scores: Scores | None,
    memory_peak_bytes: int | None,
    elapsed_s: float,
) -> None:
    """Write `results.json`."""
    description = policy.description
    pace = clock.overall
    failure = outcome.failure
    write_json(
        run.results,
        {
            "recipe": plan.recipe,
            "state": outcome.state,
            "failure": None
            if failure is None
            else {"step": failure.step, "objective": failure.objective, "reason": failure.reason},
            "stopped_early": outcome.stopped_early or None,
            "device": {"kind": device.kind, "name": device.name},
            "ranks": ranks.world,
            "batch_size": plan.batch_size * ranks.world,
            "precision": {
                "mode": description.mode,
                "computed": description.computed,
                "substituted": description.substituted,
                "note": description.note,
            },
            "versions": dict(versions),
            "seed": plan.seed,
            "steps": outcome.step,
            "skipped_steps": skipped_steps,
            "unreadable_samples": list(unreadable),
            "throughput": None
            if pace is None
            else {
                "samples_per_second": pace.samples_per_second,
                "step_ms_mean": pace.step_ms,
                "step_ms_median": clock.median_step_ms,
                "data_ms_mean": pace.data_ms,
                "counted_steps": clock.counted_steps,
                "excludes": EXCLUDES,
            },
            "memory_peak_bytes": memory_peak_bytes,
            "elapsed_s": round(elapsed_s, 3),
            "train_loss": train_loss,
            "eval_samples": None if scores is None else scores.samples,
            "score_tables": [asdict(table) for table in scores.tables] if scores else [],
            "metrics": dict(outcome.metrics),
            "headline": {
                "name": headline.name,
                "unit": headline.unit,
                "higher_is_better": headline.higher_is_better,
            },
            "best": None
            if best is None
            else {"step": best.step, "metric": headline.name, "value": best.metrics[headline.name]},
        },
    )
