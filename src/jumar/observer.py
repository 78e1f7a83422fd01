"""Observers of a training run: the profiler, memory recorders, and any others.

The loop notifies its observers without knowing what they do. The protocol is in a layer below the
precision and training packages, so that both can define observers.
"""

from collections.abc import Generator, Iterable, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from typing import Any, Final, Protocol

DATA: Final = "data"
"""Waiting for a batch; contains `enumerate(DataLoader)`, which torch's profiler marks itself."""
OBJECTIVE: Final = "objective"
"""Everything that trains one objective; the detail is its name."""
FORWARD: Final = "forward"
BACKWARD: Final = "backward"
OPTIMIZER: Final = "optimizer"
COMMUNICATION: Final = "communication"

_NOTHING: Final[AbstractContextManager[object]] = nullcontext()


class Record(Protocol):
    """A log line or an evaluation."""

    @property
    def step(self) -> int:
        """Finished steps."""
        ...

    def line(self) -> str:
        """The record as shown on the console; empty if it is not shown there."""
        ...

    def to_json(self) -> dict[str, Any]:
        """The record as in `metrics.jsonl`, with its `kind`."""
        ...


class Observer:
    """Observes a training run; every hook does nothing unless a subclass overrides it.

    Attributes:
        span: Number of initial steps that are slower because they are observed, and are excluded
            from throughput.
    """

    span: int = 0

    def open(self, first_step: int) -> None:
        """Called after all checks, when the run's folder exists and before the first step.

        Args:
            first_step: Number of steps already finished.
        """

    def record(self, record: Record) -> None:
        """Called with each log line and each evaluation."""

    def further_records(self) -> Iterable[Record]:
        """The observer's own records.

        Requested after each record, and at the end of a run that ends without an error.
        """
        return ()

    def close(self) -> None:
        """Called after the last record, even if an error ended the run or `open` failed."""

    def check(self, steps_left: int | None) -> None:
        """Called before the first step, before anything is written.

        Args:
            steps_left: The number of remaining steps; None if the run ends after a given time.

        Raises:
            UserError: The run is too short for the observation.
        """

    def begin(self) -> None:
        """Called before the first step; the place to add hooks to modules."""

    def end(self) -> None:
        """Called after the last step, even if an error ended the training."""

    def begin_step(self, step: int) -> None:
        """Called before a step's data is requested.

        Args:
            step: Counted from 0.
        """

    def end_step(self) -> None:
        """Called after the step's update."""

    def phase(self, name: str, detail: str = "") -> AbstractContextManager[object] | None:
        """The context for a part of a step; None if the part is not of interest.

        Args:
            name: One of the constants of this module.
            detail: Distinguishes parts with the same name.
        """


class Observers:
    """The observers of one run, as the loop calls them; costs nothing if there are none."""

    def __init__(self, observers: Sequence[Observer] = ()) -> None:
        self._observers = tuple(observers)
        self._watching: tuple[Observer, ...] = ()
        self.span = max((observer.span for observer in observers), default=0)

    def check(self, steps_left: int | None) -> None:
        """See `Observer.check`."""
        for observer in self._observers:
            observer.check(steps_left)

    @contextmanager
    def recording(self, first_step: int) -> Generator[None]:
        """The context around a run, with its evaluations; see `Observer.open`."""
        with ExitStack() as stack:
            for observer in self._observers:
                stack.callback(observer.close)
                observer.open(first_step)
            yield
            # Not after an error: a record refused by a full disk would hide the original error.
            self._record_further()

    def record(self, record: Record) -> None:
        """See `Observer.record`."""
        for observer in self._observers:
            observer.record(record)
        self._record_further()

    def _record_further(self) -> None:
        """Pass the observers' own records to all observers; see `Observer.further_records`."""
        records = [record for observer in self._observers for record in observer.further_records()]
        for record in records:
            for observer in self._observers:
                observer.record(record)

    @contextmanager
    def around(self) -> Generator[None]:
        """The context around the loop: every observer that was started is ended."""
        with ExitStack() as stack:
            for observer in self._observers:
                stack.callback(observer.end)
                observer.begin()
            # Not earlier: the step rehearsed before the loop must not be observed.
            self._watching = tuple(
                observer
                for observer in self._observers
                if type(observer).phase is not Observer.phase
            )
            stack.callback(self._stop_watching)
            yield

    def begin_step(self, step: int) -> None:
        """See `Observer.begin_step`."""
        for observer in self._observers:
            observer.begin_step(step)

    def end_step(self) -> None:
        """See `Observer.end_step`."""
        for observer in self._observers:
            observer.end_step()

    def phase(self, name: str, detail: str = "") -> AbstractContextManager[object]:
        """The context for a part of a step; a shared no-op if no observer is interested."""
        contexts = [
            context
            for observer in self._watching
            if (context := observer.phase(name, detail)) is not None
        ]
        if len(contexts) < 2:
            return contexts[0] if contexts else _NOTHING
        stack = ExitStack()
        for context in contexts:
            stack.enter_context(context)
        return stack

    def _stop_watching(self) -> None:
        self._watching = ()
