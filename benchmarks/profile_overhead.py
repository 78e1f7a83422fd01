"""The cost of recording: a recorded step against a plain one, and the loop without recording.

    python benchmarks/profile_overhead.py --network resnext50 --size 64 --batch 8
    python benchmarks/profile_overhead.py --network ds-cnn-s --batch 100

Four kinds of step take turns over one state and one batch of `benchmarks/training_step.py`:

- `plain`: nothing is recorded;
- `torch.profiler`: recorded with the same settings, without marks and layers;
- `jumar`: recorded as `jumar profile` does, with the marks of the loop and a range a layer;
- `jumar --memory`: the same with each allocation and release.

Time is the process's CPU time on one thread; medians over the rounds are compared. Starting the
profiler and writing the files are timed apart. The calls that a step makes where nothing is
recorded are timed alone, since they are too short to be seen beside a step. Exit code 1 if they
take more than a thousandth of a step, or a recorded step more than 1.25 times that of the bare
profiler.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from statistics import median

import torch
from torch.profiler import ProfilerActivity, profile

from jumar.devices.process import set_threads
from jumar.devices.registry import open_device
from jumar.observer import BACKWARD, COMMUNICATION, DATA, FORWARD, OPTIMIZER, Observers
from jumar.precision.policy import PrecisionPolicy
from jumar.tasks.task import Task
from jumar.training.guard import Guard
from jumar.training.parallel.ranks import Ranks
from jumar.training.profiling.capture import (
    Capture,
    CapturePlan,
    CaptureSettings,
    Recorded,
)
from jumar.training.profiling.files import write_profile
from jumar.training.profiling.ranges import ModuleRanges, named_layers
from jumar.training.settings import Plan
from jumar.training.state import TrainState
from jumar.training.step import Stepper
from training_step import CLIPS, clips, pictures

IDLE_CALLS = 20_000
UNOBSERVED = Observers()
MEMORY = "jumar --memory"
ALLOWED_IDLE, ALLOWED_OVER_BARE = 0.001, 1.25


@dataclass(kw_only=True)
class Bench:
    """One state that all kinds of step train on."""

    task: Task
    plan: Plan
    state: TrainState
    batch: dict[str, torch.Tensor]
    times: dict[str, list[float]] = field(
        default_factory=lambda: {"plain": [], "torch.profiler": [], "jumar": [], MEMORY: []}
    )
    writing_s: dict[str, list[float]] = field(default_factory=lambda: {"jumar": [], MEMORY: []})

    def stepper(self, observers: Observers = UNOBSERVED) -> Stepper:
        """What makes a step."""
        names = [objective.name for objective in self.task.objectives]
        guard = Guard(names, torch.device("cpu"), Ranks())
        return Stepper(
            self.state,
            self.plan,
            Ranks(),
            guard,
            steps_per_epoch=1000,
            total_steps=10_000,
            observers=observers,
        )

    def timed(self, kind: str, stepper: Stepper, *, counts: bool) -> None:
        """Run a step and note its time."""
        start = time.process_time()
        stepper.step(self.batch)
        if counts:
            self.times[kind].append(time.process_time() - start)

    def plain(self) -> None:
        """Steps that nobody records."""
        stepper = self.stepper()
        for counts in (False, True):
            self.timed("plain", stepper, counts=counts)

    def bare(self) -> None:
        """Steps recorded by torch's profiler alone."""
        stepper = self.stepper()
        with profile(activities=[ProfilerActivity.CPU], record_shapes=True):
            for counts in (False, True):
                self.timed("torch.profiler", stepper, counts=counts)

    def ours(self, *, memory: bool = False) -> None:
        """Steps recorded with marks and layers, and their files."""
        kind = MEMORY if memory else "jumar"
        settings = CaptureSettings(steps=1, warm_up=1, memory=memory)
        with tempfile.TemporaryDirectory() as folder:

            def keep(recorded: Recorded) -> None:
                start = time.process_time()
                write_profile(
                    recorded,
                    Path(folder),
                    device=open_device("cpu"),
                    ranks=Ranks(),
                    settings=settings,
                    environment={},
                )
                self.writing_s[kind].append(time.process_time() - start)

            capture = Capture(
                CapturePlan(
                    settings=settings,
                    ranges=ModuleRanges(named_layers(self.task.model, self.task.objectives)),
                    device=open_device("cpu"),
                    folder=Path(folder),
                    keep=keep,
                )
            )
            observers = Observers([capture])
            stepper = self.stepper(observers)
            with observers.around():
                observers.begin_step(self.state.step)
                for counts in (False, True):
                    self.timed(kind, stepper, counts=counts)
                    observers.end_step()
                    observers.begin_step(self.state.step)


def idle_s() -> float:
    """Seconds that the calls of one step take where nothing is recorded."""
    observers = Observers()
    mark = observers.phase
    start = time.process_time()
    for step in range(IDLE_CALLS):
        with mark("objective", "classification"):
            for name in (FORWARD, BACKWARD, OPTIMIZER, COMMUNICATION):
                with mark(name):
                    pass
        observers.end_step()
        with mark(COMMUNICATION):
            pass
        observers.begin_step(step)
        with mark(DATA):
            pass
    return (time.process_time() - start) / IDLE_CALLS


def main() -> int:
    """Run the benchmark; the exit code says whether the promise holds."""
    parser = argparse.ArgumentParser(description=str(__doc__).split("\n")[0])
    parser.add_argument("--network", choices=("resnext50", "alexnet", CLIPS), default="resnext50")
    parser.add_argument("--size", type=int, default=64, help="px; pictures only")
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=7)
    chosen = parser.parse_args()
    chosen.steps = 1
    set_threads(1)
    torch.manual_seed(1)
    rivals, task, plan = (clips if chosen.network == CLIPS else pictures)(chosen)
    policy = PrecisionPolicy(plan.precision, device_type="cpu")
    policy.install()
    for objective in task.objectives:
        objective.train()
    state = TrainState(task, plan, open_device("cpu"), Ranks(), policy)
    bench = Bench(task=task, plan=plan, state=state, batch=rivals.batch)
    kinds: list[Callable[[], None]] = [
        bench.plain,
        bench.bare,
        bench.ours,
        partial(bench.ours, memory=True),
    ]
    for turn in range(chosen.rounds + 1):
        # The order changes, since later ones find the caches full of the others' data.
        for kind in kinds if turn % 2 else reversed(kinds):
            kind()
    policy.close()
    return report(bench, chosen)


def report(bench: Bench, chosen: argparse.Namespace) -> int:
    """Print medians and ratios; 1 if the promise does not hold."""
    medians = {name: median(values[1:]) for name, values in bench.times.items()}
    size = "" if chosen.network == CLIPS else f" {chosen.size} px"
    print(
        f"{chosen.network}{size}, batch {chosen.batch}, bf16; torch {torch.__version__}, "
        f"1 thread, median CPU time of {chosen.rounds} rounds"
    )
    for name, value in medians.items():
        values = bench.times[name][1:]
        print(
            f"  {name:<14} {1000 * value:8.1f} ms a step ({1000 * min(values):.1f} to "
            f"{1000 * max(values):.1f})  {value / medians['plain']:.3f} x plain"
        )
    for kind, seconds in bench.writing_s.items():
        print(f"  files of {kind}: {median(seconds):.2f} s once, after the recording")
    idle = median(idle_s() for _ in range(5))
    share = idle / medians["plain"]
    print(f"  without a recording: {1e6 * idle:.2f} us a step, {100 * share:.4f} % of it")
    return int(
        share > ALLOWED_IDLE or medians["jumar"] > ALLOWED_OVER_BARE * medians["torch.profiler"]
    )


if __name__ == "__main__":
    sys.exit(main())
