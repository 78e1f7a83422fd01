"""Scoring a model: each sample counted once, over an uneven last batch and over several ranks."""

import contextlib
import time
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import cast

import torch
from torch import nn

from jumar.data.loading.faults import FaultTally
from jumar.data.loading.loader import eval_batches
from jumar.data.samples import Batch
from jumar.devices.contract import Device
from jumar.ground.errors import UserError
from jumar.precision.policy import PrecisionPolicy
from jumar.tasks.task import Illustration, ScoreTable, Task
from jumar.training.checkpoint import Checkpoint
from jumar.training.parallel.ranks import Ranks
from jumar.training.progress import Console
from jumar.training.signals import StopRequest


class Interrupted(Exception):
    """The evaluation was left because somebody asked the run to stop."""


@dataclass(frozen=True, kw_only=True)
class Scores:
    """What an evaluation found."""

    metrics: Mapping[str, float]
    samples: int
    seconds: float
    tables: Sequence[ScoreTable] = field(default=())
    illustrations: Sequence[Illustration] = field(default=())


def evaluate(
    task: Task,
    policy: PrecisionPolicy,
    *,
    device: Device,
    ranks: Ranks,
    batch_size: int,
    workers: int,
    tally: FaultTally,
    console: Console,
    stop: StopRequest | None = None,
    illustrate: bool = False,
) -> Scores:
    """Score the model as it is, on `task.eval_data`.

    Args:
        task: What is scored; its objectives' modules are put into evaluation mode and back.
        policy: The precision in which the forward pass runs.
        device: Where.
        ranks: Each scores its own share of the samples; the sums are added up.
        batch_size: Samples per rank and batch.
        workers: Loader processes.
        tally: Counts unreadable samples, which are left out.
        console: Shows a bar.
        stop: Checked at every batch where there is one rank.
        illustrate: Whether the first rank lets the task draw pictures afterwards.

    Raises:
        Interrupted: A stop was asked for.
        UserError: There is nothing to score on, or nothing of it can be read.
    """
    data = task.eval_data
    if data is None or len(data) == 0:
        raise UserError("there is no data to evaluate on", where="data.eval_path")
    start = time.perf_counter()
    sums: dict[str, torch.Tensor] = {}
    rows: dict[str, list[torch.Tensor]] = {}
    modules: list[nn.Module] = [task.model, *task.objectives]
    # All modes are noted before any is changed: an objective holds the model as a part.
    training = [module.training for module in modules]
    for module in modules:
        module.eval()
    batches = eval_batches(
        data, batch=batch_size, rank=ranks.rank, world=ranks.world, workers=workers, tally=tally
    )
    total = -(-len(data) // (batch_size * ranks.world))
    try:
        with (
            torch.inference_mode(),
            console.bar("evaluation", total) as bar,
            contextlib.closing(cast("Generator[Batch]", batches)),
        ):
            for done, batch in enumerate(device.copy_ahead(batches), start=1):
                if stop and ranks.world == 1:
                    raise Interrupted
                with policy.forward():
                    found = task.evaluate_batch(batch)
                for name in task.gathered:
                    rows.setdefault(name, []).append(found.pop(name).cpu())
                _add(sums, found, device)
                bar.show(done)
            with policy.forward():
                pictures = task.illustrate() if illustrate and ranks.is_first else ()
    finally:
        for module, mode in zip(modules, training, strict=True):
            module.train(mode)
    totals = ranks.sums({name: value.cpu().double() for name, value in sums.items()})
    totals |= ranks.rows({name: torch.cat(parts) for name, parts in rows.items()})
    if not totals:
        raise UserError(
            f"none of the {len(data)} samples to evaluate on can be read", where="data.eval_path"
        )
    return Scores(
        metrics=task.summarize(totals),
        samples=round(totals["count"].item()),
        seconds=time.perf_counter() - start,
        tables=task.score_tables(totals),
        illustrations=pictures,
    )


def score_table(rows: Sequence[tuple[Checkpoint, Mapping[str, float]]]) -> str:
    """The table of the original logs: step, epoch, metrics, and when the checkpoint was made."""
    names = list(rows[0][1]) if rows else []
    lines = [
        f"{'step':>8}  {'epoch':>7}  "
        + "  ".join(f"{name:>8}" for name in names)
        + "  checkpoint_time(UTC)"
    ]
    for checkpoint, metrics in rows:
        scores = "  ".join(f"{metrics[name]:8.3f}" for name in names)
        lines.append(f"{checkpoint.step:8d}  {checkpoint.epoch:7.1f}  {scores}  {checkpoint.time}")
    return "\n".join(lines)


def table_text(table: ScoreTable) -> str:
    """A score table as aligned text; the first column to the left, the others to the right."""
    rows = [list(table.header), *(list(row) for row in table.rows)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [
        "  ".join(
            text.rjust(width) if place else text.ljust(width)
            for place, (text, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    ]
    return "\n".join([f"{table.title}:", *(f"  {line.rstrip()}" for line in lines)])


def _add(sums: dict[str, torch.Tensor], found: Mapping[str, torch.Tensor], device: Device) -> None:
    """Add a batch's sums, in float64 where the device has it: a float32 sum over a million
    samples loses the last digits of the loss.
    """
    for name, value in found.items():
        wide = value.double() if device.has_float64 else value.float()
        sums[name] = sums[name] + wide if name in sums else wide
