"""The batches of a run, starting at any step."""

from collections.abc import Generator
from typing import cast

from jumar.data.loading.faults import FaultTally
from jumar.data.loading.loader import train_batches
from jumar.data.samples import Batch
from jumar.tasks.task import Task
from jumar.training.parallel.ranks import Ranks
from jumar.training.settings import Plan


def batches_of(
    task: Task,
    plan: Plan,
    *,
    ranks: Ranks,
    workers: int,
    tally: FaultTally,
    first_step: int,
    last_step: int,
) -> Generator[Batch]:
    """The rank's batches from `first_step` to before `last_step`; close the generator when done."""
    batches = train_batches(
        task.train_data,
        seed=plan.seed,
        first_step=first_step,
        last_step=last_step,
        batch_per_rank=plan.batch_size,
        rank=ranks.rank,
        world=ranks.world,
        workers=workers,
        prefetch=plan.prefetch,
        tally=tally,
    )
    return cast("Generator[Batch]", batches)
