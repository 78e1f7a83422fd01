"""Speed of each rank and of each link between ranks: `jumar doctor --ranks`.

In training, all ranks wait for the slowest one, so their step times are equal. Here each rank
computes without waiting for others, and only one link is used at a time.
"""

import json
import platform
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from statistics import median, median_low
from typing import Any

import torch
import torch.distributed as dist

from jumar.devices.contract import Device
from jumar.devices.registry import open_device
from jumar.ground.errors import UserError
from jumar.ground.text import print_plain
from jumar.training.parallel.announced import announced_ranks

SLOW_RATIO = 2.0
"""A rank or link is slow above this multiple of the others' median."""

_SIDE = 512
_NUM_VALUES = 1 << 20
_REPEATS = 5
_MIN_DIFFERENCE_S = 5e-3
"""Smaller differences are ignored, since the scheduler can cause them."""


@dataclass(frozen=True, kw_only=True)
class RankSpeed:
    """The measurements of a rank.

    Attributes:
        compute_s: Seconds for a few matrix products, while all ranks compute.
        link_s: Seconds for sending 4 MiB from this rank to the next one and back.
    """

    rank: int
    host: str
    device: str
    compute_s: float
    link_s: float


def check_ranks(device: str, *, as_json: bool = False) -> int:
    """Measure all ranks, print a line for each and name the slow ones.

    Args:
        device: The value of `--device`.
        as_json: Whether to print JSON.

    Returns:
        The exit code: 1 if a sum over the ranks is incorrect, otherwise 0.

    Raises:
        UserError: There is only one rank, or one was lost.
    """
    ranks = announced_ranks()
    if ranks.world == 1:
        raise UserError(
            "there is only one rank",
            where="--ranks",
            todo="Start several: torchrun --nproc-per-node 8 -m jumar doctor --ranks",
        )
    opened_device = open_device(device)
    try:
        ranks.connect(opened_device)
        ranks.watch(lambda: "Check the log and the network cable of that machine.")
        measured = _measured(opened_device, ranks.rank, ranks.world)
        total = ranks.mean(torch.ones((), device=opened_device.torch) * (ranks.rank + 1.0)).item()
        ranks.disconnect()
    except Exception as error:
        if lost := ranks.loss_in(error):
            raise UserError(lost, todo="Check the log of that rank.") from error
        raise
    is_sum_correct = abs(total - (ranks.world + 1) / 2) < 1e-3
    if ranks.is_first:
        _show(measured, is_sum_correct=is_sum_correct, as_json=as_json)
    return 0 if is_sum_correct else 1


def verdicts(measured: Sequence[RankSpeed]) -> list[str]:
    """Return a sentence for each slow rank and each slow link, the slowest first."""
    computing = [
        (f"rank {speed.rank} on {speed.host} computes", speed.compute_s) for speed in measured
    ]
    following = [*measured[1:], *measured[:1]]
    sending = [
        (
            f"the link from rank {sender.rank} ({sender.host}) to rank {receiver.rank} "
            f"({receiver.host}) takes",
            sender.link_s,
        )
        for sender, receiver in zip(measured, following, strict=True)
    ]
    outliers = [*_outliers(computing), *_outliers(sending)]
    return [sentence for _, sentence in sorted(outliers, reverse=True)]


def _outliers(measurements: Sequence[tuple[str, float]]) -> list[tuple[float, str]]:
    outliers: list[tuple[float, str]] = []
    for index, (name, seconds) in enumerate(measurements):
        # median_low, since one of two others may be slow too: in a ring of three, two links share
        # a rank.
        others = median_low(
            other_seconds
            for other_index, (_, other_seconds) in enumerate(measurements)
            if other_index != index
        )
        if seconds > SLOW_RATIO * others and seconds - others > _MIN_DIFFERENCE_S:
            ratio = seconds / others
            outliers.append((ratio, f"{name} {ratio:.1f} times as long as the others (median)"))
    return outliers


def _measured(device: Device, rank: int, world: int) -> list[RankSpeed]:
    square = torch.ones((_SIDE, _SIDE), device=device.torch)
    values = torch.ones(_NUM_VALUES, device=device.torch)
    _computed(square, device)
    dist.barrier()
    compute_s = median(_computed(square, device) for _ in range(_REPEATS))
    links = [_round_trip(values, sender, rank, world, device) for sender in range(world)]
    own_speed = RankSpeed(
        rank=rank,
        host=platform.node(),
        device=device.name,
        compute_s=compute_s,
        link_s=links[rank],
    )
    speeds: list[Any] = [None] * world
    dist.all_gather_object(speeds, own_speed)
    return speeds


def _computed(square: torch.Tensor, device: Device) -> float:
    start = time.perf_counter()
    for _ in range(_REPEATS):
        torch.mm(square, square)
    device.synchronize()
    return time.perf_counter() - start


def _round_trip(values: torch.Tensor, sender: int, rank: int, world: int, device: Device) -> float:
    """Return the seconds of a round trip from a rank to the next; 0 on all ranks but the sender."""
    receiver = (sender + 1) % world
    dist.barrier()
    durations: list[float] = []
    for _ in range(4):  # the first opens the connection
        start = time.perf_counter()
        if rank == sender:
            dist.send(values, receiver)
            dist.recv(values, receiver)
        elif rank == receiver:
            dist.recv(values, sender)
            dist.send(values, sender)
        device.synchronize()
        durations.append(time.perf_counter() - start)
    return min(durations) if rank == sender else 0.0


def _show(measured: Sequence[RankSpeed], *, is_sum_correct: bool, as_json: bool) -> None:
    slow = verdicts(measured)
    if as_json:
        content = {
            "ranks": [asdict(speed) for speed in measured],
            "slow": slow,
            "sum_is_right": is_sum_correct,
        }
        print(json.dumps(content, indent=2))
        return
    for speed in measured:
        receiver = (speed.rank + 1) % len(measured)
        print_plain(
            f"rank {speed.rank}  {speed.host}  {speed.device}  "
            f"computes in {1e3 * speed.compute_s:.1f} ms  "
            f"4 MiB to rank {receiver} and back in {1e3 * speed.link_s:.1f} ms"
        )
    for sentence in slow:
        print_plain(f"slow: {sentence}")
    if not slow:
        print_plain(f"no rank and no link takes {SLOW_RATIO:.0f} times as long as the others")
    if not is_sum_correct:
        print_plain("error: the sum over all ranks is incorrect")
