"""The processes of a race: two settings take turns, giving pairs of times."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from jumar.experiments.tuning.knobs import COMPILE, Combination
from jumar.experiments.tuning.measured_process import Block, MeasuredProcess, NotMeasured
from jumar.experiments.tuning.pairs import Pair
from jumar.ground.files import remove_folder

BLOCK_S: Final = 0.4
"""Target duration of a block of steps."""
_STARTS_WITHIN_S: Final = 120.0
_COMPILES_WITHIN_S: Final = 400.0
_TIMES_SLOWER: Final = 20.0
"""A candidate is dropped if its block takes this many times as long as the start's."""

Command = Callable[[Combination, Path], Sequence[str]]
"""The command that trains a combination, and may write to an empty folder."""


class Bench:
    """The measured processes, at most two.

    Args:
        command: Starts a process.
        scratch: A folder for the processes' files.

    Attributes:
        steps: Steps of a block.
        step_s: Seconds per step of the start.
        apart: Whether a process must end before another begins, since both do not fit into memory.
    """

    def __init__(self, command: Command, scratch: Path) -> None:
        self._command, self._scratch = command, scratch
        self._running: dict[str, MeasuredProcess] = {}
        self._started = 0
        self.steps, self.step_s, self.apart = 1, 0.0, False
        self.start_s = 0.0

    def ready(self, *combinations: tuple[str, Combination]) -> list[Mapping[str, Any]]:
        """Start missing processes, end all others, and wait until blocks can be timed.

        Args:
            combinations: The settings, each with the name of its process.

        Raises:
            NotMeasured: One of them cannot be trained.
        """
        needed_names = {name for name, _ in combinations}
        for name in [each for each in self._running if each not in needed_names]:
            self.end(name)
        descriptions: list[Mapping[str, Any]] = []
        if not self.apart:
            for name, combination in combinations:
                self._start(name, combination)
        for name, combination in combinations:
            self._start(name, combination)
            descriptions.append(self._await(name, combination))
            if self.apart:
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
        allowed_s = 30.0 + _TIMES_SLOWER * self.steps * self.step_s
        try:
            return self._running[name].measure(self.steps, allowed_s)
        finally:
            if self.apart:
                self.end(name)

    def pair(
        self, one: tuple[str, Combination], other: tuple[str, Combination], *, turned: bool
    ) -> tuple[Pair, tuple[Block, Block]]:
        """Time a block of each.

        Args:
            one: The reference settings.
            other: The candidate.
            turned: Whether the candidate comes first.

        Raises:
            NotMeasured: One of them can no longer be trained, or takes too long.
        """
        if turned:
            after = self.block(*other)
            before = self.block(*one)
        else:
            before = self.block(*one)
            after = self.block(*other)
        return (before.step_s, after.step_s), (before, after)

    def rename(self, old: str, new: str) -> None:
        """Rename a running process; the previous one with that name ends."""
        self.end(new)
        if old in self._running:
            self._running[new] = self._running.pop(old)

    def end(self, name: str) -> None:
        """End a process, if it runs."""
        process = self._running.pop(name, None)
        if process is not None:
            process.close()

    def close(self) -> None:
        """End all processes and remove what they wrote."""
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
        allowed_s = _COMPILES_WITHIN_S if compiles else _STARTS_WITHIN_S
        process = self._running[name]
        try:
            description = process.ready(allowed_s)
        except NotMeasured:
            self.end(name)
            raise
        if not compiles:
            self.start_s = max(self.start_s, process.start_s)
        return description
