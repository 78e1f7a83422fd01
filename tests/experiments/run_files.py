"""Run directories as the trainer leaves them, for the tests of those who read them."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

SETTINGS: dict[str, Any] = {
    "seed": 0,
    "precision": {"mode": "must_keep_origin_dtype", "loss_scale": 1.0},
    "optimizer": {"learning_rate": 0.06, "momentum": 0.9, "milestones": [30, 60]},
    "threads": {"intra_op": 2, "inter_op": 1},
}
"""A resolved recipe, small but with every kind of value."""


def resolved(assignments: Sequence[str], base: dict[str, Any] | None = None) -> dict[str, Any]:
    """The settings with assignments, as a recipe would resolve them."""
    settings = json.loads(json.dumps(base or SETTINGS))
    for assignment in assignments:
        path, _, value = assignment.partition("=")
        section: dict[str, Any] = settings
        *outer, last = path.split(".")
        for name in outer:
            section = section[name]
        section[last] = type(section[last])(value)
    return settings


def results(**changes: Any) -> dict[str, Any]:
    """`results.json` of a finished run, with `changes` over it."""
    data: dict[str, Any] = {
        "recipe": "alexnet",
        "state": "finished",
        "failure": None,
        "device": {"kind": "cpu", "name": "AMD EPYC"},
        "ranks": 1,
        "batch_size": 64,
        "precision": {
            "mode": "must_keep_origin_dtype",
            "computed": "float32",
            "substituted": False,
            "note": "",
        },
        "versions": {"jumar": "0.1.0", "torch": "2.13.0", "python": "3.11.7"},
        "steps": 200,
        "skipped_steps": 0,
        "throughput": {
            "samples_per_second": 400.0,
            "step_ms_median": 160.0,
            "excludes": "first 5 steps, evaluation, checkpoints",
        },
        "memory_peak_bytes": 2 * 2**30,
        "metrics": {"top1": 96.0, "top5": 99.5, "loss": 0.25},
        "best": {"step": 180, "metric": "top1", "value": 96.5},
        "headline": {"name": "top1", "unit": "%", "higher_is_better": True},
        "train_loss": 0.31,
        "eval_samples": 400,
        "seed": 0,
    }
    data.update(changes)
    return data


def metric_lines(num_steps: int = 200, *, every: int = 20, rate: float = 1.0) -> list[str]:
    """`metrics.jsonl` of a run that learns; `rate` makes one run differ from another."""
    lines: list[str] = []
    for step in range(every, num_steps + 1, every):
        loss = 2.3 / (1 + rate * step / 40)
        record: dict[str, Any] = {
            "kind": "train",
            "step": step,
            "epoch": step / 50,
            "fps": 400.0 + step % 7,
            "loss": loss,
            "total_loss": loss + 1.0,
            "learning_rate": 0.06 * (1 - step / (num_steps + 1)),
            "data_ms": 0.4,
            "step_ms": 160.0,
            "skipped": 0,
            "elapsed_s": step * 0.16,
        }
        lines.append(json.dumps(record))
        if step % 50 == 0 or step == num_steps:
            evaluation = {
                "kind": "evaluation",
                "step": step,
                "epoch": step / 50,
                "top1": 100 - 90 / (1 + rate * step / 30),
                "top5": 99.0,
                "loss": loss * 0.9,
                "weights": "model",
            }
            lines.append(json.dumps(evaluation))
    return lines


def write_run(
    directory: Path,
    *,
    assignments: Sequence[str] = (),
    lines: Sequence[str] | None = None,
    recipe: str = "alexnet",
    base: dict[str, Any] | None = None,
    **changes: Any,
) -> Path:
    """Write a whole run directory; `changes` go over the results."""
    directory.mkdir(parents=True, exist_ok=True)
    settings = resolved(assignments, base)
    (directory / "recipe.json").write_text(
        json.dumps({"recipe": recipe, "imports": [], "settings": settings})
    )
    recorded = metric_lines() if lines is None else lines
    (directory / "metrics.jsonl").write_text("".join(f"{line}\n" for line in recorded))
    (directory / "results.json").write_text(json.dumps(results(recipe=recipe, **changes)))
    return directory


def precision(mode: str, computed: str = "float32", note: str = "") -> dict[str, Any]:
    """The `precision` section of the results."""
    return {"mode": mode, "computed": computed, "substituted": bool(note), "note": note}
