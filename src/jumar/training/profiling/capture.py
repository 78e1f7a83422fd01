"""Recording a few steady training steps with the device's profiler.

`benchmarks/profile_overhead.py` measures the cost of this code when nothing is recorded.
"""

import os
import shutil
import time
from collections.abc import Callable, Hashable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from torch.profiler import record_function

from jumar.devices.contract import Device, Recorder, Recording
from jumar.ground.errors import UserError
from jumar.ground.text import counted
from jumar.observer import Observer
from jumar.training.parallel.ranks import Ranks
from jumar.training.profiling.ranges import ModuleRanges

STEP: Final = "ProfilerStep#"
"""Prefix, before the step's number, of the ranges that mark steps in all of torch's profilers."""


@dataclass(frozen=True, kw_only=True)
class CaptureSettings:
    """The steps to record, and what to record.

    Attributes:
        steps: Number of steps to record.
        warm_up: Number of preceding steps, which are not recorded, for choosing kernels and
            allocating memory, including that of the profiler in the last one.
        memory: Whether allocations and releases of memory are recorded too.
        shapes: Whether shapes and dtypes of ops are recorded. On a CPU, torch's profiler then keeps
            a small record of every tensor, which fragments the heap: glibc cannot reuse freed
            memory, and each op writes to newly mapped memory. On a CPU, shapes are therefore
            recorded in separate steps after the others (`shaped_steps`).
    """

    steps: int = 3
    warm_up: int = 3
    memory: bool = False
    shapes: bool = True

    def shaped_steps(self, device: Device) -> int:
        """Number of further steps that are recorded only for their shapes.

        Two, in case steps alternate between two objectives; 0 if only one step is recorded, whose
        shapes are then recorded with it.
        """
        return 2 if self.shapes and device.on_host and self.steps > 1 else 0

    def check(self) -> None:
        """Check the numbers of steps.

        Raises:
            UserError: A number is out of range.
        """
        if not 1 <= self.steps <= MAX_STEPS:
            raise UserError(
                f"{self.steps} steps cannot be recorded",
                where="--steps",
                todo=f"Allowed: 1 to {MAX_STEPS}, because each recorded step needs megabytes.",
            )
        if self.warm_up < 0:
            raise UserError(
                f"{self.warm_up} steps of warm-up are not possible",
                where="--warm-up",
                todo="Allowed: 0 or more.",
            )


def raw_folder(run: Path, ranks: Ranks) -> Path:
    """The folder of torch_npu's output in a run on an NPU, from which `profile/` is created."""
    return run / "profile-npu" / f"rank-{ranks.rank}"


MAX_STEPS: Final = 200
"""All events are kept in memory; a step of a large network has some 10,000 of 600 bytes each."""


@dataclass(frozen=True, kw_only=True)
class Recorded:
    """A finished recording, before it is turned into files.

    Attributes:
        recorder: The profiler, stopped.
        shaped: The stopped profiler of the steps recorded for their shapes; None if there are none.
        inputs: The input shapes of the layers, by step number.
        first_step: Number of the first recorded step.
        step_ms: Wall-clock time of each recorded step.
        plain_step_ms: Wall-clock time of the warm-up steps, except the first and the last.
    """

    recorder: Recorder
    shaped: Recorder | None
    inputs: Mapping[int, Hashable]
    first_step: int
    step_ms: Sequence[float]
    plain_step_ms: Sequence[float]


@dataclass(frozen=True, kw_only=True)
class CapturePlan:
    """What to record, and how.

    Attributes:
        settings: The steps to record.
        ranges: Marks the layers during the recording.
        device: The device whose profiler is used.
        folder: The folder to which an NPU's profiler writes its files.
        keep: Called once with the finished recording.
    """

    settings: CaptureSettings
    ranges: ModuleRanges
    device: Device
    folder: Path
    keep: Callable[[Recorded], None]


class Capture(Observer):
    """Records a few training steps and passes the recording on."""

    def __init__(self, plan: CapturePlan) -> None:
        self._plan: CapturePlan | None = plan
        """None after the last recorded step."""
        self._recorder: Recorder | None = None
        self._range: AbstractContextManager[object] | None = None
        self._first = 0
        self._steps_seen = 0
        self._began = 0.0
        self._step_ms: list[float] = []
        self._plain_ms: list[float] = []
        self._step = 0
        self._inputs: dict[int, Hashable] = {}
        self._without_shapes: Recorder | None = None
        self._last_timed = plan.settings.warm_up + plan.settings.steps
        self.span = self._last_timed + plan.settings.shaped_steps(plan.device)
        """Number of steps up to the last recorded one, which are slower than the rest."""
        self.is_cut_short = True
        """Whether some of the steps have not been recorded."""

    def check(self, steps_left: int | None) -> None:
        """See `Observer.check`."""
        if steps_left is not None and steps_left < self.span:
            raise UserError(
                f"the run has {counted(steps_left, 'step')} left; the profile needs {self.span} "
                "including warm-up",
                where="--profile",
                todo="Train for longer, or profile a finished run: jumar profile RUN.",
            )

    def end(self) -> None:
        """Stop the profiler, so that it does not outlive the loop."""
        self._stop()

    def phase(self, name: str, detail: str = "") -> AbstractContextManager[object] | None:
        """A profiler range around a phase of a step while recording; otherwise None."""
        if self._recorder is None:
            return None
        return record_function(f"{name} {detail}" if detail else name)

    def begin_step(self, step: int) -> None:
        """See `Observer.begin_step`."""
        plan = self._plan
        if plan is None:
            return
        warm_up = plan.settings.warm_up
        self._step = step
        if self._recorder is None and self._steps_seen >= warm_up - 1:
            has_own = self._steps_seen >= self._last_timed or self.span == self._last_timed
            self._recorder = self._start(plan, shapes=plan.settings.shapes and has_own)
        if self._steps_seen == warm_up:
            self._first = step
        plan.ranges.take_inputs()
        if self._steps_seen >= warm_up and not plan.device.profiler_writes_files:
            # Profilers that write files create these ranges themselves.
            self._range = record_function(f"{STEP}{step}")
            self._range.__enter__()
        self._began = time.perf_counter()

    def end_step(self) -> None:
        """See `Observer.end_step`; passes the recording on after the last recorded step."""
        plan = self._plan
        if plan is None:
            return
        self._steps_seen += 1
        last = self._steps_seen == self.span
        if (
            last
            or self._steps_seen == self._last_timed
            or self._steps_seen <= plan.settings.warm_up
        ):
            plan.device.synchronize()
        step_ms = 1000 * (time.perf_counter() - self._began)
        if self._recorder is None:
            self._plain_ms += [step_ms] if self._steps_seen > 1 else []
            return
        if plan.settings.warm_up < self._steps_seen <= self._last_timed:
            self._step_ms.append(step_ms)
        self._inputs[self._step] = plan.ranges.take_inputs()
        self._close_range()
        self._recorder.step()
        if self._steps_seen == self._last_timed and not last:
            self._without_shapes = self._recorder
            self._end_recording(plan)
        if last:
            recorder = self._recorder
            self._stop()
            self.is_cut_short = False
            timed_recorder = self._without_shapes
            plan.keep(
                Recorded(
                    recorder=recorder if timed_recorder is None else timed_recorder,
                    shaped=None if timed_recorder is None else recorder,
                    inputs=self._inputs,
                    first_step=self._first,
                    step_ms=tuple(self._step_ms),
                    plain_step_ms=tuple(self._plain_ms),
                )
            )

    def _start(self, plan: CapturePlan, *, shapes: bool) -> Recorder:
        # Otherwise Kineto prints a line at start and stop.
        os.environ.setdefault("KINETO_LOG_LEVEL", "99")
        settings = plan.settings
        if plan.device.profiler_writes_files:
            shutil.rmtree(plan.folder, ignore_errors=True)  # from an earlier capture
        recorder = plan.device.create_recorder(
            Recording(
                folder=plan.folder,
                steps=settings.steps,
                warm_up=min(settings.warm_up, 1),
                memory=settings.memory and self._without_shapes is None,
                shapes=shapes,
            )
        )
        recorder.start()
        plan.ranges.install()
        return recorder

    def _stop(self) -> None:
        if self._plan is not None:
            self._end_recording(self._plan)
        self._plan = None

    def _end_recording(self, plan: CapturePlan) -> None:
        if self._recorder is not None:
            plan.ranges.remove()
            self._close_range()
            self._recorder.stop()
        self._recorder = None

    def _close_range(self) -> None:
        if self._range is not None:
            self._range.__exit__(None, None, None)
            self._range = None
