"""Dump steps of any training loop by a context around it."""

import os
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from types import TracebackType
from typing import Any

import torch
from torch import nn
from torch.optim import Optimizer
from torch.utils.hooks import RemovableHandle

from jumar.ground.errors import UserError
from jumar.ground.text import counted
from jumar.precision.recording.recorder import COMPILED, RecordSettings, StepRecorder
from jumar.precision.recording.updates import on_update


class Dumping:
    """The context in which the steps of a training loop are dumped.

    A step ends when `step` is called. If that is never called, it ends with each step of the
    optimizer, or of the first optimizer if there are several.

    Args:
        folder: Folder for the dumps, with a subfolder per step and rank.
        steps: The steps to dump, counted from 0.
        settings: What to record.
        model: The module relative to which layers are named; None for the outermost module that is
            called.
        optimizer: The optimizer whose step ends a step; None for the first one that steps.
        say: Prints a line for every dump.
    """

    def __init__(
        self,
        folder: Path | str,
        *,
        steps: Iterable[int],
        settings: RecordSettings,
        model: nn.Module | None = None,
        optimizer: Optimizer | None = None,
        say: Callable[[str], None] | None = None,
    ) -> None:
        self._missing = set(steps)
        self._has_first = 0 in self._missing
        negative = [step for step in self._missing if step < 0]
        if negative or not self._missing:
            raise UserError(
                f"there is no step {negative[0]}" if negative else "there is no step to dump",
                where="steps",
                todo="Steps are counted from 0.",
            )
        self._recorder = StepRecorder(
            folder,
            settings,
            rank=_rank(),
            modules=None if model is None else dict(model.named_modules()),
        )
        self._optimizer = optimizer
        self._say = say or _say
        self._index = 0
        self._is_explicit = False
        self._has_others = False
        self._handle: RemovableHandle | None = None

    def __enter__(self) -> "Dumping":
        self._recorder.open()
        # Register this hook after the recorder's, so that a step includes what those record.
        self._handle = on_update(self._updated)
        self._begin()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._handle is not None:
            self._handle.remove()
        try:
            if kind is None and self._recorder.is_recording and not self._recorder.is_empty:
                self._end()
        finally:
            self._recorder.close()
        if kind is None and self._missing:
            raise UserError(
                f"the training ended before step {min(self._missing)}, after "
                f"{counted(self._index, 'step')}",
                where="steps",
                todo="Steps are counted from 0 and end with the optimizer's step, or when the "
                "script calls step().",
            )

    def step(self) -> None:
        """End the current step; if used, it must be called at the end of each iteration.

        Raises:
            UserError: The dump cannot be written, or the first step was written too early.
        """
        if not self._is_explicit:
            self._is_explicit = True
            if self._index:
                # An optimizer has ended the first step; this method ends all further ones.
                self._restart()
                return
        self._end()
        self._begin()

    def _restart(self) -> None:
        if self._has_others and self._has_first:
            raise UserError(
                "step 0 was written too early, after the update of the first of several optimizers",
                where="optimizer",
                todo="Pass the optimizer that ends a step: dump(..., optimizer=...).",
            )
        self._recorder.stop()
        self._index = 1
        self._begin()

    def _updated(self, optimizer: Optimizer) -> None:
        if self._is_explicit:
            return
        self._optimizer = self._optimizer or optimizer
        if optimizer is self._optimizer:
            self._end()
            self._begin()
        else:
            self._has_others = True

    def _begin(self) -> None:
        if self._index in self._missing:
            self._recorder.begin(self._index)

    def _end(self) -> None:
        if self._recorder.is_recording:
            path = self._recorder.end()
            self._missing.discard(self._index)
            self._say(f"jumar: dumped step {self._index}: {path}")
            if self._recorder.is_compiled:
                self._say(f"jumar: {COMPILED}")
        self._index += 1


def _say(line: str) -> None:
    print(line, file=sys.stderr)


def _rank() -> int:
    """Return the rank of this process, with any launcher."""
    distributed: Any = torch.distributed
    if distributed.is_available() and distributed.is_initialized():
        return distributed.get_rank()
    rank = os.environ.get("RANK", "0")
    return int(rank) if rank.isdecimal() else 0
