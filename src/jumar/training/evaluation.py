"""Scoring a model so that each sample counts once, even with an uneven last batch or many ranks."""

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
from jumar.ground.tables import aligned_lines
from jumar.precision.policy import PrecisionPolicy
from jumar.tasks.confusion import only_label
from jumar.tasks.task import Illustration, ScoreTable, Task
from jumar.training.checkpoint import Checkpoint
from jumar.training.parallel.ranks import Ranks
from jumar.training.progress import Console
from jumar.training.signals import StopRequest


class Interrupted(Exception):
    """The evaluation was abandoned because a stop of the run was requested."""


@dataclass(frozen=True, kw_only=True)
class Scores:
    """The result of an evaluation."""

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
    """Score the model's current weights on `task.eval_data`.

    Args:
        task: The task to score; its modules are switched to evaluation mode and back.
        policy: The precision of the forward pass.
        device: The device to run on.
        ranks: The ranks; each scores its share of the samples, and the sums are added up.
        batch_size: Samples per rank and batch.
        workers: Loader processes.
        tally: Counts unreadable samples, which are left out.
        console: Shows a progress bar.
        stop: Checked at every batch if there is only one rank.
        illustrate: Whether the task draws illustrations on the first rank afterwards.

    Raises:
        Interrupted: A stop was requested.
        UserError: There is no evaluation data, or none of it can be read.
    """
    data = task.eval_data
    if data is None or len(data) == 0:
        raise UserError("there is no data to evaluate on", where="data.eval_path")
    start = time.perf_counter()
    sums: dict[str, torch.Tensor] = {}
    rows: dict[str, list[torch.Tensor]] = {}
    modules: list[nn.Module] = [task.model, *task.objectives]
    # Modes differ between modules: batch norms of frozen parts stay in evaluation mode.
    modes = {layer: layer.training for module in modules for layer in module.modules()}
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
                    batch_sums = task.evaluate_batch(batch)
                for name in task.gathered:
                    rows.setdefault(name, []).append(batch_sums.pop(name).cpu())
                _add(sums, batch_sums, device)
                bar.show(done)
            with policy.forward():
                illustrations = task.illustrate() if illustrate and ranks.is_first else ()
    finally:
        for module, mode in modes.items():
            module.training = mode
    totals = ranks.sums({name: value.cpu().double() for name, value in sums.items()})
    totals |= ranks.rows({name: torch.cat(parts) for name, parts in rows.items()})
    if not totals:
        raise UserError(
            f"none of the {len(data)} evaluation samples can be read", where="data.eval_path"
        )
    if remark := only_label(totals["confusion"], task.outputs) if "confusion" in totals else "":
        console.line(remark)
    return Scores(
        metrics=task.summarize(totals),
        samples=round(totals["count"].item()),
        seconds=time.perf_counter() - start,
        tables=task.score_tables(totals),
        illustrations=illustrations,
    )


def score_table(rows: Sequence[tuple[Checkpoint, Mapping[str, float]]]) -> str:
    """The table of the original logs: step, epoch, metrics, and when the checkpoint was written."""
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
    """A score table as aligned text; the first column left-aligned, the others right-aligned."""
    lines = aligned_lines([table.header, *table.rows], numeric=range(1, len(table.header)))
    return "\n".join([f"{table.title}:", *(f"  {line}" for line in lines)])


def _add(sums: dict[str, torch.Tensor], batch: Mapping[str, torch.Tensor], device: Device) -> None:
    """Add a batch's sums, in float64 if the device supports it.

    A float32 sum over a million samples would lose the last digits of the loss.
    """
    for name, value in batch.items():
        wide = value.double() if device.has_float64 else value.float()
        sums[name] = sums[name] + wide if name in sums else wide
