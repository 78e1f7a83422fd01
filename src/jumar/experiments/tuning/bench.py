"""The processes of a race: two settings are timed alternately, in pairs."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from jumar.experiments.tuning.knobs import COMPILE, Combination
from jumar.experiments.tuning.measured_process import Block, MeasuredProcess, NotMeasured
from jumar.experiments.tuning.pairs import Pair
from jumar.ground.files import remove_folder

BLOCK_S: Final = 0.4
"""Target duration of a block of steps."""
_START_TIMEOUT_S: Final = 120.0
_COMPILE_TIMEOUT_S: Final = 400.0
_MAX_SLOWDOWN: Final = 20.0
"""A candidate is dropped if its block takes more than this multiple of the initial settings'."""

Command = Callable[[Combination, Path], Sequence[str]]
"""Returns the command that trains a combination and may write to an empty folder."""


class Bench:
    """The measured processes, at most two.

    Args:
        command: Returns the command of a process.
        scratch: A folder for the processes' files.

    Attributes:
        steps: Number of steps of a block.
        step_s: Seconds per step of the initial settings.
        one_at_a_time: Whether a process must end before another begins, since memory does not
            suffice for two.
        start_s: Longest time that a process without compilation took to start, in seconds.
    """

    def __init__(self, command: Command, scratch: Path) -> None:
        self._command, self._scratch = command, scratch
        self._running: dict[str, MeasuredProcess] = {}
        self._started = 0
        self.steps, self.step_s, self.one_at_a_time = 1, 0.0, False
        self.start_s = 0.0

    def ready(self, *combinations: tuple[str, Combination]) -> list[Mapping[str, Any]]:
        """Start missing processes, end all others, and wait until blocks can be timed.

        Args:
            combinations: The settings, each with the name of its process.

        Raises:
            NotMeasured: One of them cannot be trained.
        """
        for name in self._running.keys() - {name for name, _ in combinations}:
            self.end(name)
        descriptions: list[Mapping[str, Any]] = []
        if not self.one_at_a_time:
            for name, combination in combinations:
                self._start(name, combination)
        for name, combination in combinations:
            self._start(name, combination)
            descriptions.append(self._await(name, combination))
            if self.one_at_a_time:
                self.end(name)
        return descriptions

    def block(self, name: str, combination: Combination) -> Block:
        """Time a block of a combination.

        Raises:
            NotMeasured: It can no longer be trained, or takes too long.
        """
        if name not in self._running:
            self._start(name, combination)
            self._await(name, combination)
        allowed_s = 30.0 + _MAX_SLOWDOWN * self.steps * self.step_s
        try:
            return self._running[name].measure(self.steps, allowed_s)
        finally:
            if self.one_at_a_time:
                self.end(name)

    def pair(
        self,
        reference: tuple[str, Combination],
        candidate: tuple[str, Combination],
        *,
        reverse: bool,
    ) -> tuple[Pair, tuple[Block, Block]]:
        """Time a block of the reference settings and of the candidate.

        Args:
            reference: The reference settings.
            candidate: The candidate.
            reverse: Whether to time the candidate first.

        Raises:
            NotMeasured: One of them can no longer be trained, or takes too long.
        """
        if reverse:
            after = self.block(*candidate)
            before = self.block(*reference)
        else:
            before = self.block(*reference)
            after = self.block(*candidate)
        return (before.step_s, after.step_s), (before, after)

    def rename(self, old: str, new: str) -> None:
        """Rename a running process, ending the previous one of that name."""
        self.end(new)
        if old in self._running:
            self._running[new] = self._running.pop(old)

    def end(self, name: str) -> None:
        """End a process if it is running."""
        process = self._running.pop(name, None)
        if process is not None:
            process.close()

    def close(self) -> None:
        """End all processes and remove their files."""
        for name in list(self._running):
            self.end(name)
        remove_folder(self._scratch)

    def _start(self, name: str, combination: Combination) -> None:
        if name in self._running:
            return
        self._started += 1
        folder = self._scratch / f"{self._started}"
        folder.mkdir(parents=True)
        self._running[name] = MeasuredProcess(
            self._command(combination, folder),
            combination.environment,
            self._scratch / f"{self._started}.txt",
        )

    def _await(self, name: str, combination: Combination) -> Mapping[str, Any]:
        compiles = combination.settings.get(COMPILE) == "true"
        allowed_s = _COMPILE_TIMEOUT_S if compiles else _START_TIMEOUT_S
        process = self._running[name]
        try:
            description = process.ready(allowed_s)
        except NotMeasured:
            self.end(name)
            raise
        if not compiles:
            self.start_s = max(self.start_s, process.start_s)
        return description
