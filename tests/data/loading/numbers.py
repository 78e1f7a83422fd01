"""A sample set whose samples say which they are, and streams of it."""

import gc
import multiprocessing
import os
import signal
import time
from collections.abc import Iterator, Sequence

import torch

from jumar.data.loading.faults import FaultTally
from jumar.data.loading.loader import train_batches
from jumar.data.samples import Batch, Fault, Fetched, SampleKey, SampleSet
from jumar.ground.errors import UserError


class Numbers:
    """A sample set whose samples say which they are; what some do is decided by their index."""

    def __init__(
        self,
        size: int = 40,
        *,
        broken: Sequence[int] = (),
        refused: int = -1,
        deadly: int = -1,
        slow_s: float = 0.0,
    ) -> None:
        self.size = size
        self.broken = set(broken)
        self.refused = refused
        self.deadly = deadly
        self.slow_s = slow_s

    def __len__(self) -> int:
        return self.size

    def fetch(self, keys: Sequence[SampleKey]) -> Fetched:
        time.sleep(self.slow_s)
        indices = [key.index for key in keys]
        if self.refused in indices:
            raise UserError("refused", where="here", todo="Do something else.")
        if self.deadly in indices:
            os.kill(os.getpid(), signal.SIGKILL)
        kept = [key for key in keys if key.index not in self.broken]
        batch = {"index": torch.tensor([key.index for key in kept]), "key": torch.tensor(kept)}
        faults = [
            Fault(origin=f"number {index}", reason="broken")
            for index in indices
            if index in self.broken
        ]
        return Fetched(batch=batch if kept else {}, faults=faults)


def train(
    samples: SampleSet,
    *,
    first: int = 0,
    last: int = 10,
    batch: int = 4,
    rank: int = 0,
    world: int = 1,
    workers: int = 0,
    prefetch: int = 2,
    tally: FaultTally | None = None,
) -> Iterator[Batch]:
    return train_batches(
        samples,
        seed=1,
        first_step=first,
        last_step=last,
        batch_per_rank=batch,
        rank=rank,
        world=world,
        workers=workers,
        prefetch=prefetch,
        tally=tally or FaultTally(),
    )


def no_worker_is_left() -> bool:
    gc.collect()
    return not multiprocessing.active_children()
