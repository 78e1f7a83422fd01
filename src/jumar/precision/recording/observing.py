"""Dump steps of jumar's training loop, as one of its observers."""

from collections.abc import Callable, Collection
from contextlib import AbstractContextManager

from jumar.observer import DATA, Observer
from jumar.precision.recording.recorder import StepRecorder


class DumpObserver(Observer):
    """Dumps some steps of a run.

    Args:
        recorder: Records a step.
        steps: The steps to dump.
        first: The first step of the training.
        say: Prints a line for every dump.
    """

    def __init__(
        self,
        recorder: StepRecorder,
        *,
        steps: Collection[int],
        first: int,
        say: Callable[[str], None],
    ) -> None:
        self._recorder, self._steps, self._say = recorder, frozenset(steps), say
        self._step = first
        self.span = max(steps) + 1 - first

    def begin(self) -> None:
        """See `Observer.begin`."""
        self._recorder.open()

    def end(self) -> None:
        """See `Observer.end`."""
        self._recorder.close()

    def begin_step(self, step: int) -> None:
        """See `Observer.begin_step`."""
        self._step = step
        if step in self._steps:
            self._recorder.begin(step)

    def end_step(self) -> None:
        """See `Observer.end_step`."""
        if self._recorder.is_recording:
            self._say(f"dumped step {self._step}: {self._recorder.end()}")

    def phase(self, name: str, detail: str = "") -> AbstractContextManager[object] | None:
        """See `Observer.phase`: data preparation is not part of the step."""
        del detail
        return self._recorder.paused() if name == DATA else None
