"""The bottleneck of a step, from a short measurement of the baseline."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

Bottleneck = Literal["input", "host", "compute"]

WAITS: Final = 0.03
"""The input is a bottleneck if at least this fraction of a step is spent waiting for data."""
COMPETES: Final = 0.03
"""Fraction of CPU time from which loader processes slow down a model on the same cores."""
QUEUED: Final = 0.05
"""The device waits for the host if it works for less than this fraction of a step after the host
has issued everything."""


@dataclass(frozen=True, kw_only=True)
class Facts:
    """A measurement of the baseline.

    Attributes:
        device: The kind of device, such as `cpu`.
        device_name: Its model.
        on_host: Whether the model computes on the host's cores.
        cores: Usable cores of the host.
        threads: Threads within an operation.
        workers: Loader processes.
        step_s: Seconds per step.
        data_share: Fraction of a step spent waiting for data.
        loader_share: Fraction of all CPU time used by loader processes.
        queued_share: Fraction of the time in which the device still works after the host has issued
            all steps.
        memory_bytes: Peak memory, with an evaluation and a checkpoint.
        memory_free_bytes: Memory of the device that is free for another process.
    """

    device: str
    device_name: str
    on_host: bool
    cores: int
    threads: int
    workers: int
    step_s: float
    data_share: float
    loader_share: float
    queued_share: float
    memory_bytes: int
    memory_free_bytes: int


@dataclass(frozen=True, kw_only=True)
class Limit:
    """One bottleneck, with its evidence."""

    kind: Bottleneck
    reason: str


def limits(facts: Facts) -> Sequence[Limit]:
    """The bottlenecks of a step, most specific first; never empty."""
    bottlenecks: list[Limit] = []
    if facts.data_share >= WAITS:
        bottlenecks.append(
            Limit(kind="input", reason=f"{facts.data_share:.0%} of a step waits for data")
        )
    elif facts.on_host and facts.loader_share >= COMPETES:
        reason = (
            f"loader processes take {facts.loader_share:.0%} of the CPU time, "
            "on the cores that compute"
        )
        bottlenecks.append(Limit(kind="input", reason=reason))
    computing = 1 - facts.data_share
    if not facts.on_host and facts.queued_share < QUEUED:
        reason = f"{facts.device} has nothing left to do when the host has issued a step"
        bottlenecks.append(Limit(kind="host", reason=reason))
    elif computing >= 0.5 or not bottlenecks:
        bottlenecks.append(Limit(kind="compute", reason=f"{computing:.0%} of a step computes"))
    return bottlenecks
