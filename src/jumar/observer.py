"""Who watches a training: the profiler, recorders of memory, and whoever else wants to.

The loop tells its observers what it does and knows nothing of them. The protocol stands below the
precision and the training rooms, so that either can have observers.
"""

from collections.abc import Generator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from typing import Final

DATA: Final = "data"
"""Waiting for a batch; `enumerate(DataLoader)`, which torch marks by itself, lies within it."""
OBJECTIVE: Final = "objective"
"""Everything that trains one objective; its name is the detail."""
FORWARD: Final = "forward"
BACKWARD: Final = "backward"
OPTIMIZER: Final = "optimizer"
COMMUNICATION: Final = "communication"

_NOTHING: Final[AbstractContextManager[object]] = nullcontext()


class Observer:
    """Watches a training; every hook does nothing unless a subclass overrides it.

    Attributes:
        span: Steps from the first one that are slower for being observed, and count for no
            statement about speed.
    """

    span: int = 0

    def check(self, steps_left: int | None) -> None:
        """Before the first step, while nothing is written yet.

        Args:
            steps_left: None where a clock ends the run.

        Raises:
            UserError: The run is too short for what is to be seen.
        """

    def begin(self) -> None:
        """Before the first step; the place for hooks on modules."""

    def end(self) -> None:
        """After the last step, also where an error ended the training."""

    def begin_step(self, step: int) -> None:
        """Before the data of a step are asked for.

        Args:
            step: Counted from 0.
        """

    def end_step(self) -> None:
        """After the update of the step."""

    def phase(self, name: str, detail: str = "") -> AbstractContextManager[object] | None:
        """Around a part of a step; None where it is not of interest.

        Args:
            name: One of the constants of this module.
            detail: What more tells it from others of its name.
        """


class Observers:
    """The observers of one training, as its loop calls them; without any it costs nothing."""

    def __init__(self, observers: Sequence[Observer] = ()) -> None:
        self._observers = tuple(observers)
        self._watching: tuple[Observer, ...] = ()
        self.span = max((observer.span for observer in observers), default=0)

    def check(self, steps_left: int | None) -> None:
        """See `Observer.check`."""
        for observer in self._observers:
            observer.check(steps_left)

    @contextmanager
    def around(self) -> Generator[None]:
        """Around the loop: whoever began is ended."""
        with ExitStack() as stack:
            for observer in self._observers:
                stack.callback(observer.end)
                observer.begin()
            # The loop rehearses a step before it begins, which is nobody's business.
            self._watching = self._observers
            stack.callback(self._look_away)
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
        """Around a part of a step; one shared context that does nothing where nobody looks."""
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

    def _look_away(self) -> None:
        self._watching = ()
