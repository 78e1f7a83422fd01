"""The bottlenecks of a step, from a short measurement of the initial settings."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

Bottleneck = Literal["input", "host", "compute"]

MIN_DATA_SHARE: Final = 0.03
"""The input is a bottleneck if at least this fraction of a step is spent waiting for data."""
MIN_LOADER_SHARE: Final = 0.03
"""The input is a bottleneck if loaders on the same cores use at least this fraction of CPU time."""
MAX_QUEUED_SHARE: Final = 0.05
"""The host is a bottleneck if the device works for less than this fraction of a step after the host
has issued everything."""


@dataclass(frozen=True, kw_only=True)
class Facts:
    """A measurement of the initial settings.

    Attributes:
        device: The kind of device, such as `cpu`.
        device_name: Its model.
        on_host: Whether the network runs on the host's cores.
        cores: Usable cores of the host.
        threads: Threads within an operation.
        workers: Loader processes.
        step_s: Seconds per step.
        data_share: Fraction of a step spent waiting for data.
        loader_share: Fraction of all CPU time used by loader processes.
        queued_share: Fraction of the block's time between the host issuing the last step and the
            device finishing it.
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
    """A bottleneck with its evidence."""

    kind: Bottleneck
    reason: str


def limits(facts: Facts) -> Sequence[Limit]:
    """Return the bottlenecks of a step, at least one, most specific first."""
    bottlenecks: list[Limit] = []
    if facts.data_share >= MIN_DATA_SHARE:
        bottlenecks.append(
            Limit(kind="input", reason=f"{facts.data_share:.0%} of a step is waiting for data")
        )
    elif facts.on_host and facts.loader_share >= MIN_LOADER_SHARE:
        reason = (
            f"loader processes use {facts.loader_share:.0%} of the CPU time, "
            "on the cores that compute"
        )
        bottlenecks.append(Limit(kind="input", reason=reason))
    computing = 1 - facts.data_share
    if not facts.on_host and facts.queued_share < MAX_QUEUED_SHARE:
        reason = f"{facts.device} is idle as soon as the host has issued a step"
        bottlenecks.append(Limit(kind="host", reason=reason))
    elif computing >= 0.5 or not bottlenecks:
        bottlenecks.append(
            Limit(kind="compute", reason=f"{computing:.0%} of a step is computation")
        )
    return bottlenecks
