"""How long a checkpoint stops training: written in the background, and while training waits.

    python benchmarks/background_checkpoints.py
    python benchmarks/background_checkpoints.py --threads 2 --rounds 9 --to runs

Trains ResNeXt-50 with Adam and averaged weights, whose checkpoint has 400 MB. In every round it
makes a few steps, writes a checkpoint while it waits, makes steps again, writes one in the
background, and makes steps until that is on the disk. Training stands still where it begins a
checkpoint and where an update waits for the copy; steps may also take longer, since the thread that
writes needs a core and memory at the same time.
"""

import argparse
import sys
import tempfile
import time
from dataclasses import dataclass
from math import inf
from pathlib import Path
from statistics import median

from jumar.devices.registry import open_device
from jumar.training.checkpoint import write_checkpoint
from jumar.training.checkpoint_retention import list_checkpoints
from jumar.training.keeper import CheckpointKeeper
from jumar.training.parallel.ranks import Ranks
from jumar.training.run_directory import RunDirectory
from on_accelerator.cases import CLASSIFIERS
from on_accelerator.measuring import Context
from on_accelerator.trainings import Training, open_training

SETTINGS = (
    "data.image_size=64",
    "optimizer=adam",
    "training.ema_decay=0.999",
    "checkpoints.keep=2",
    "precision.mode=must_keep_origin_dtype",
)


@dataclass(frozen=True, kw_only=True)
class Round:
    """Seconds of one round.

    Attributes:
        step: A step while nothing is written, the median.
        waiting: A checkpoint for which training waits.
        stopped: What a checkpoint in the background stops training for.
        written: From its beginning until it is on the disk.
        step_beside: A step while a checkpoint is written, the median.
    """

    step: float
    waiting: float
    stopped: float
    written: float
    step_beside: float


class Steps:
    """Steps of a run, and how long their updates waited for a copy."""

    def __init__(self, training: Training) -> None:
        self._training, self._stepper = training, training.stepper()
        self.waited = 0.0

    def step(self) -> float:
        """Make a step; returns its seconds without the waiting."""
        state = self._training.state
        original, self_waited = state.before_change, 0.0

        def timed() -> None:
            nonlocal self_waited
            began = time.perf_counter()
            original()
            self_waited += time.perf_counter() - began

        state.before_change = timed
        began = time.perf_counter()
        self._stepper.step(self._training.batch)
        took = time.perf_counter() - began
        state.before_change = original
        self.waited += self_waited
        return took - self_waited


def measured(training: Training, place: Path) -> Round:
    """One round."""
    state, steps = training.state, Steps(training)
    alone = [steps.step() for _ in range(4)]
    saved = state.capture()
    began = time.perf_counter()
    write_checkpoint(
        place / "waiting",
        step=state.step,
        epoch=0.0,
        model=state.task.model.state_dict(),
        ema=None if state.ema is None else state.ema.state_dict(),
        state=saved,
        batch={},
    )
    waiting = time.perf_counter() - began
    alone += [steps.step() for _ in range(4)]
    steps.waited = 0.0
    kept = CheckpointKeeper(
        RunDirectory(place),
        training.plan,
        Ranks(),
        training.task.headline,
        epoch_size=1,
        steps_per_epoch=1,
    )
    began = time.perf_counter()
    kept.save(state)
    stopped = time.perf_counter() - began
    beside: list[float] = []
    saved_step = state.step
    while not any(each.step == saved_step for each in list_checkpoints(place / "checkpoints")):
        beside.append(steps.step())
    written = time.perf_counter() - began
    kept.finish()
    kept.close()
    return Round(
        step=median(alone),
        waiting=waiting,
        stopped=stopped + steps.waited,
        written=written,
        step_beside=median(beside),
    )


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--threads", type=int, default=1, help="of training; default 1")
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--to", type=Path, help="where checkpoints go; the disk is measured too")
    chosen = parser.parse_args()
    if chosen.to is not None:
        chosen.to.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="checkpoints-", dir=chosen.to) as folder:
        place = Path(folder)
        context = Context(device="cpu", small=False, out=place, work=place, data=None, deadline=inf)
        settings = [
            *CLASSIFIERS[0].settings(context),
            *SETTINGS,
            f"data.batch_size={chosen.batch}",
            f"threads.intra_op={chosen.threads}",
        ]
        training = open_training("resnext50", settings, open_device("cpu"))
        rounds = [measured(training, place) for _ in range(chosen.rounds + 1)][1:]
        (*_, last) = list_checkpoints(place / "checkpoints")
        size = sum(mark.size for mark in last.marks.values())
    print(f"{size / 1e6:.0f} MB, {chosen.threads} threads, {len(rounds)} rounds, medians")
    waiting = median(each.waiting for each in rounds)
    stopped = median(each.stopped for each in rounds)
    print(f"while training waits    {1000 * waiting:7.0f} ms")
    print(
        f"in the background       {1000 * stopped:7.0f} ms in which training stands still, "
        f"{100 * median(each.stopped / each.waiting for each in rounds):.1f} % of the above; "
        f"on the disk after {1000 * median(each.written for each in rounds):.0f} ms"
    )
    print(
        f"a step                  {1000 * median(each.step for each in rounds):7.0f} ms alone, "
        f"{1000 * median(each.step_beside for each in rounds):.0f} ms beside the writing"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
