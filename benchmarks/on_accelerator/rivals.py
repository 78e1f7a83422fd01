"""Steps of several rivals, each in a process of its own, which take turns on one device.

Processes of their own because op lists are installed for a whole process, where they would slow a
peer's autocast, and because each then has its own peak of memory.
"""

import time
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from statistics import median
from typing import Any

import torch

from jumar.devices.contract import Device
from jumar.devices.registry import is_out_of_memory
from on_accelerator.child import Child
from on_accelerator.floor import Floor, floor_of
from on_accelerator.measuring import Context, Missing, Row

Step = Callable[[], object]
_BUILD_LIMIT_S, _TURN_LIMIT_S = 400.0, 120.0
_MIN_ROUNDS = 3
_FLOOR = "floor"


@dataclass(frozen=True, kw_only=True)
class Rival:
    """Somebody's training step.

    Attributes:
        name: For the table.
        build: Makes the step, in its own process and on the open device.
        is_peer: Whether it is somebody else's.
        eager: Whether its ops can be counted.
    """

    name: str
    build: Callable[[Context, Device], Step]
    is_peer: bool = False
    eager: bool = False


@dataclass(kw_only=True)
class _Seat:
    """A rival's process, and what it answered."""

    rival: Rival
    child: Child
    memory_mib: float | None = None
    blocks: list[float] = field(default_factory=list[float])
    lost: str = ""
    is_missing: bool = False
    steps: int = 1

    def ask(self, question: Any, limit_s: float) -> Any:
        """The answer; None if the rival is or gets lost."""
        if self.lost:
            return None
        try:
            self.child.pipe.send(question)
            return self._answer(limit_s)
        except BrokenPipeError:
            self.lost = f"its process {self.child.end()}"
            return None

    def wait_until_built(self, limit_s: float) -> None:
        """Wait for the first steps; notes how long one takes and what memory they took."""
        answer = self._answer(limit_s)
        if answer is not None:
            first_s, self.memory_mib = answer
            self.steps = max(1, min(200, round(0.3 / max(first_s, 1e-6))))

    def _answer(self, limit_s: float) -> Any:
        try:
            answer = self.child.receive(limit_s)
        except TimeoutError:
            self.child.end()
            self.lost = f"no answer for {limit_s:.0f} s"
            return None
        except EOFError:
            self.lost = f"its process {self.child.end()}"
            return None
        if isinstance(answer, (str, Missing)):
            self.lost, self.is_missing = str(answer), isinstance(answer, Missing)
            self.child.end()
            return None
        return answer


def compare(
    context: Context,
    rivals: Sequence[Rival],
    about: Row,
    *,
    samples: int,
    dtype: str = "",
    shares: bool = True,
) -> list[Row]:
    """Let rivals take turns; a row for each.

    Args:
        context: Of the measurement.
        rivals: Whose steps.
        about: What is common to the rows.
        samples: In a step.
        dtype: What matrix products are computed in, for the share of the peak.
        shares: Whether rows have the speed over the best peer's, and shares of peak and roofline.

    Returns:
        Medians over rounds. `of_best_peer` above 1 is faster than the fastest peer;
        `of_roofline` is the share of what the ops as called by jumar take at least.

    Raises:
        Missing: No rival could be built, for want of a package.
        RuntimeError: No rival could be measured.
    """
    seats = [_Seat(rival=rival, child=Child(_served(rival, context), log=None)) for rival in rivals]
    try:
        limit = min(_BUILD_LIMIT_S, max(context.seconds_left, 5.0))
        built_by = time.time() + limit
        for seat in seats:
            seat.wait_until_built(max(built_by - time.time(), 0.1))
        floor = _floor(seats) if shares else None
        _take_turns(context, seats)
    finally:
        for seat in seats:
            with suppress(OSError):
                seat.child.pipe.send(None)
            if not seat.lost:
                seat.child.end()
    if not any(seat.blocks for seat in seats):
        if all(seat.is_missing for seat in seats):
            raise Missing(seats[0].lost)
        raise RuntimeError("; ".join(f"{seat.rival.name}: {seat.lost}" for seat in seats))
    rows = _rows(context, seats, about, samples=samples, floor=floor, dtype=dtype)
    hidden = () if shares else ("of_best_peer", "of_peak", "of_roofline")
    return [{name: row[name] for name in row if name not in hidden} for row in rows]


def _take_turns(context: Context, seats: Sequence[_Seat]) -> None:
    """Rounds in which each makes a block of steps, in an order that turns round."""
    rounds = context.pick(9, 3)
    for number in range(rounds):
        if number >= _MIN_ROUNDS and context.seconds_left <= 0:
            return
        for seat in seats if number % 2 else list(reversed(seats)):
            seconds = seat.ask(context.pick(seat.steps, 1), _TURN_LIMIT_S)
            if seconds is not None:
                seat.blocks.append(seconds)


def _floor(seats: Sequence[_Seat]) -> Floor | None:
    """What the ops of jumar's own eager step take at least."""
    own = next((s for s in seats if s.rival.eager and not s.rival.is_peer and not s.lost), None)
    return None if own is None else own.ask(_FLOOR, _TURN_LIMIT_S)


def _rows(
    context: Context,
    seats: Sequence[_Seat],
    about: Row,
    *,
    samples: int,
    floor: Floor | None,
    dtype: str,
) -> list[Row]:
    medians = {seat.rival.name: median(seat.blocks) for seat in seats if seat.blocks}
    peers = [medians[s.rival.name] for s in seats if s.rival.is_peer and s.blocks]
    peak = context.rates.get(dtype)
    rows: list[Row] = []
    for seat in seats:
        row: dict[str, Any] = {**about, "of": seat.rival.name}
        seconds = medians.get(seat.rival.name)
        if seconds is None:
            rows.append({**row, "not measured": seat.lost})
            continue
        low, high = (1000 * each(seat.blocks) for each in (min, max))
        row |= {
            "samples_s": samples / seconds,
            "ms": 1000 * seconds,
            "ms_range": f"{low:.4g} to {high:.4g}",
            "memory_mib": seat.memory_mib,
            "of_best_peer": min(peers) / seconds if peers else None,
            "of_peak": floor.flops / seconds / peak if floor is not None and peak else None,
            "of_roofline": floor.seconds / seconds if floor and floor.seconds else None,
        }
        rows.append(row)
    return rows


def _served(rival: Rival, context: Context) -> Callable[[Connection], None]:
    """What a rival's process does: build, warm up, and make as many steps as it is asked for."""

    def serve(pipe: Connection) -> None:
        try:
            device = context.open()
            torch.manual_seed(1)
            step = rival.build(context, device)
            first_s, memory_mib = _warmed_up(step, device, context.pick(5, 1))
            _release_memory(device)
        except Missing as missing:
            pipe.send(missing)
            return
        except ModuleNotFoundError as error:
            pipe.send(Missing(f"needs {error.name}, which is not installed"))
            return
        except Exception as error:
            traceback.print_exc()
            pipe.send(_headline(error))
            return
        pipe.send((first_s, memory_mib))
        while (question := pipe.recv()) is not None:
            try:
                if question == _FLOOR:
                    pipe.send(_counted(step, context))
                else:
                    # The first step allocates again what was released after the last block.
                    block(step, device, 1)
                    seconds = block(step, device, question)
                    _release_memory(device)
                    pipe.send(seconds)
            except Exception as error:
                traceback.print_exc()
                pipe.send(_headline(error))
                return

    return serve


def _counted(step: Step, context: Context) -> Floor | None:
    """The least of a step; None if an op cannot be counted, which costs no more than the shares."""
    try:
        return floor_of(step, context.rates)
    except Exception:
        traceback.print_exc()
        return None


def block(step: Step, device: Device, count: int) -> float:
    """Seconds a step, of a block of steps after which the device has finished."""
    device.synchronize()
    start = time.perf_counter()
    for _ in range(count):
        step()
    device.synchronize()
    return (time.perf_counter() - start) / count


def _release_memory(device: Device) -> None:
    """Give back what only the allocator holds: four rivals at once need more than a device has."""
    if not device.on_host:
        torch.get_device_module(device.kind).empty_cache()


def _warmed_up(step: Step, device: Device, count: int) -> tuple[float, float | None]:
    """Seconds of a step after the first ones, and the peak of this process's tensors, in MiB."""
    block(step, device, count)
    seconds = block(step, device, 1)
    return seconds, None if device.on_host else device.memory_peak_bytes() / 2**20


def _headline(error: Exception) -> str:
    what = "out of memory" if is_out_of_memory(error) else type(error).__name__
    lines = str(error).strip().splitlines()
    return f"{what}: {lines[0][:200] if lines else 'no message'}"
