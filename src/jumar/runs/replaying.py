"""Replays steps of a run in a separate process, with hashes of the state after each.

It is separate because threads and op lists are settings of a whole process, and the compared runs
may differ in them.
"""

import contextlib
import multiprocessing
import sys
from collections.abc import Callable, Generator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from jumar.ground.errors import UserError
from jumar.ground.processes import begin_worker
from jumar.ground.text import counted
from jumar.observer import Observer
from jumar.precision.recording.observing import DumpObserver
from jumar.precision.recording.recorder import RecordSettings
from jumar.runs.context import open_context
from jumar.runs.dump import DumpRequest, chosen_run, step_recorder
from jumar.runs.observed_steps import check_step, observing_trainer, starting_task
from jumar.training.progress import Console
from jumar.training.state_hashes import Hashes, StepHashes

_NOWHERE: Final = Path("a folder that nothing is written to")


@dataclass(frozen=True, kw_only=True)
class Replay:
    """The steps to replay.

    Attributes:
        run: The run.
        first: Finished steps before: those of a checkpoint, or 0 for the initial weights.
        until: Finished steps after.
        assignments: Changed fields.
        imports: Modules to import first.
        device: The value of `--device`.
        dump: Where the last step is recorded; None for hashes only.
        record: What to record of it.
    """

    run: Path
    first: int
    until: int
    assignments: Sequence[str]
    imports: Sequence[str]
    device: str
    dump: Path | None = None
    record: RecordSettings = field(default_factory=RecordSettings)


@dataclass(frozen=True, kw_only=True)
class Replayed:
    """The result of a replay.

    Attributes:
        steps: The hashes of the state, one per part, by the number of finished steps; when
            recording, only after the last step.
        last: The hashes of the state after the last step.
    """

    steps: Mapping[int, Mapping[str, str]]
    last: Hashes


class Replayer:
    """Replays steps of one run.

    Args:
        name: Name of the run in messages.
        pool: The process to do it in.
        say: Prints a line before each replay.

    Attributes:
        count: How many replays were made.
    """

    def __init__(self, name: str, pool: ProcessPoolExecutor, say: Callable[[str], None]) -> None:
        self.name, self._pool, self._say = name, pool, say
        self.count = 0

    def replay(self, wanted: Replay) -> Replayed:
        """Repeat steps.

        Raises:
            UserError: See `replay`; or the process was killed.
        """
        self.count += 1
        where = f"from step {wanted.first}" if wanted.first else "from the initial weights"
        what = "" if wanted.dump is None else f", recording step {wanted.until - 1}"
        steps = counted(wanted.until - wanted.first, "step")
        self._say(f"{self.name}: replaying {steps} {where}{what}")
        try:
            return self._pool.submit(replay, wanted).result()
        except BrokenProcessPool as error:
            raise UserError(
                f"the process that replays {self.name} was killed",
                todo="It may have run out of memory; see its messages above.",
            ) from error


@contextmanager
def replayer(name: str, say: Callable[[str], None]) -> Generator[Replayer]:
    """The context in which a run is replayed, with a process of its own."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=context, initializer=begin_worker) as pool:
        pool.submit(int)  # so that the processes of two runs start side by side
        yield Replayer(name, pool, say)


def replay(wanted: Replay) -> Replayed:
    """Repeat steps of a run in this process; nothing in the run changes.

    Raises:
        UserError: The run, its data or a checkpoint cannot be used, or the run has no such step.
    """
    request = DumpRequest(
        what=str(wanted.run),
        steps=(wanted.first,),
        settings=wanted.record,
        assignments=wanted.assignments,
        imports=wanted.imports,
        to=wanted.dump or _NOWHERE,
        device=wanted.device,
    )
    # What the parent prints may be JSON.
    with (
        contextlib.redirect_stdout(sys.stderr),
        open_context(
            lambda ranks: chosen_run(request, ranks), device=request.device, writes=False
        ) as context,
    ):
        chosen = context.chosen
        checkpoint, plan, first = chosen.checkpoint, chosen.plan, chosen.first
        task = starting_task(context, checkpoint)
        span = wanted.until - first
        hashes = StepHashes(span, first=0 if wanted.dump is None else span - 1)
        observers: list[Observer] = [hashes]
        if wanted.dump is not None:
            plan = replace(plan, training=replace(plan.training, compile=False))
            recorder = step_recorder(request, context, task)
            steps = (wanted.until - 1,)
            # First, so that hashing the state is not recorded.
            observers.insert(0, DumpObserver(recorder, steps=steps, first=first, say=_say_nothing))
        trainer = observing_trainer(context, task, plan, observers, Console(silent=True))
        check_step(trainer, wanted.until - 1, "--steps")
        hashes.state = trainer.state
        trainer.observe(checkpoint)
        return Replayed(steps=hashes.steps, last=hashes.last)


def _say_nothing(line: str) -> None:
    del line
