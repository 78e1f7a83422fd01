"""Records a training step and writes its dump."""

import sys
import warnings
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, get_args

import torch
from torch import nn
from torch.optim import Optimizer
from torch.utils._python_dispatch import _get_current_dispatch_mode

from jumar.ground.errors import UserError, unknown_name
from jumar.ground.paths import exists, expanded, is_folder, make_writable
from jumar.ground.text import counted, size_text
from jumar.precision.dumps.dump import Dump
from jumar.precision.dumps.ours import SAMPLE, TOOL, find_dumps, write_dump
from jumar.precision.recording.calls import Calls
from jumar.precision.recording.contents import Contents
from jumar.precision.recording.layers import Layers
from jumar.precision.recording.modules import ModuleRecorder
from jumar.precision.recording.ops import OpRecorder
from jumar.precision.recording.statistics import Meter
from jumar.precision.recording.updates import UpdateRecorder

Level = Literal["modules", "statistics", "tensors"]
COMPILED: Final = "torch.compile is off while a step is dumped: modules run op by op"


@dataclass(frozen=True, kw_only=True)
class RecordSettings:
    """What to record of a step.

    Attributes:
        level: `modules`: statistics of modules; `statistics`: of every op too; `tensors`: the
            tensors as well.
        counts: Whether zeros, NaN, infinities and elements out of float16's range are counted.
        parameters: Whether parameters, gradients, the optimizer's state and updates are recorded.
        ops: Globs of ops, by aten name or CANN type; none for all.
        layers: Globs of layers' paths; none for all.
        max_gib: Largest size of a step's tensors.
        sample: How many elements of a larger tensor are kept, evenly spaced; 0 for all.
        digests: Whether a hash of every tensor is recorded.
    """

    level: Level = "statistics"
    counts: bool = True
    parameters: bool = True
    ops: Sequence[str] = ()
    layers: Sequence[str] = ()
    max_gib: float = 10.0
    sample: int = 0
    digests: bool = False

    def check(self) -> None:
        """Check the settings.

        Raises:
            UserError: One is not allowed.
        """
        if self.level not in get_args(Level):
            raise unknown_name("level", self.level, get_args(Level), where="--level")
        if self.max_gib <= 0:
            raise UserError(f"{self.max_gib:g} GiB hold nothing", where="--max-gib")
        if self.sample < 0:
            raise UserError(f"{self.sample} elements", where="--sample", todo="0 or more")
        if self.ops and self.level == "modules":
            raise UserError(
                "the level 'modules' records no ops",
                where="--ops",
                todo="Omit one of them, or choose --level statistics.",
            )


class StepRecorder:
    """Records steps, one at a time, into a folder.

    Args:
        folder: The folder of all steps and ranks; None for dumps that `take` returns.
        settings: What to record.
        rank: This process's rank.
        modules: The modules by path; None to name them by their path in the outermost module
            called.
        facts: Further facts for the dump.

    Raises:
        UserError: The settings are not allowed, or the folder holds a dump of this rank.
    """

    def __init__(
        self,
        folder: Path | str | None,
        settings: RecordSettings,
        *,
        rank: int = 0,
        modules: Mapping[str, nn.Module] | None = None,
        facts: Mapping[str, str] | None = None,
    ) -> None:
        settings.check()
        self._folder = Path() if folder is None else expanded(folder)
        if folder is not None:
            _check_folder(self._folder, rank)
        self._settings, self._rank, self._facts = settings, rank, dict(facts or {})
        self._meter = Meter(counts=settings.counts)
        self._calls = Calls(settings.ops, settings.layers)
        self._layers = Layers(modules)
        self._contents = Contents(
            self._meter,
            keeps_tensors=settings.level == "tensors",
            sample=settings.sample,
            room=settings.max_gib * 2**30,
            digests=settings.digests,
        )
        self._ops = OpRecorder(self._calls, self._contents, self._layers)
        self._modules = ModuleRecorder(self._calls, self._contents, self._layers)
        self._updates = UpdateRecorder(
            *(self._calls, self._contents, self._layers, self._ops),
            is_wanted=settings.parameters,
        )
        self._stance: Any = None
        self._step: int | None = None
        self._is_entered = False
        self._makes_folder = False

    @property
    def is_recording(self) -> bool:
        """Whether a step has begun."""
        return self._step is not None

    @property
    def is_empty(self) -> bool:
        """Whether nothing of the step has been recorded."""
        return not self._calls.entries

    @property
    def is_compiled(self) -> bool:
        """Whether a compiled module was called, which ran op by op."""
        return self._layers.is_compiled

    def open(self) -> None:
        """Prepare for the first step.

        Raises:
            UserError: The folder cannot be written to.
        """
        self._makes_folder = not exists(self._folder)
        make_writable(self._folder)
        self._updates.install()

    def close(self) -> None:
        """Undo `open`."""
        self.stop()
        self._updates.remove()
        if self._makes_folder:
            with suppress(OSError):  # it holds dumps
                self._folder.rmdir()

    @contextmanager
    def paused(self) -> Generator[None]:
        """Context in which recording is paused."""
        before, self._ops.is_paused = self._ops.is_paused, True
        try:
            yield
        finally:
            self._ops.is_paused = before

    def begin(self, step: int) -> None:
        """Start recording a step."""
        self._step = step
        self._forget()
        self._layers.begin()
        self._modules.install()
        self._updates.begin()
        if "torch._dynamo" in sys.modules:
            # It would warn that our hooks see a compiled module twice, which is handled.
            warnings.filterwarnings("ignore", r"Using `torch\.compile\(module\)` when there are")
            self._stance = torch.compiler.set_stance("force_eager")
            self._stance.__enter__()
        self._ops.is_paused = False
        if self._settings.level != "modules" and not self._is_entered:
            self._ops.__enter__()
            self._is_entered = True

    def stop(self) -> None:
        """Stop recording; what was recorded is dropped."""
        self._step = None
        self._modules.remove()
        self._updates.stop()
        if self._stance is not None:
            self._stance.__exit__(None, None, None)
            self._stance = None
        self._ops.is_paused = True
        # A mode that the script entered meanwhile must be left first; until then ours does nothing.
        if self._is_entered and _get_current_dispatch_mode() is self._ops:
            self._ops.__exit__(None, None, None)
            self._is_entered = False
        self._forget()

    def end(self) -> Path:
        """Write the dump of the step.

        Returns:
            Its path.

        Raises:
            UserError: Nothing matched, the size limit is exceeded, or the system refuses.
        """
        try:
            self._calls.check_globs()
            self._check_size()
            # Reading from a device runs ops too.
            with self.paused():
                dump = self._dump()
                return write_dump(self._folder, dump, self._contents.tensors, self._contents.views)
        finally:
            self.stop()

    def take(self, optimizer: Optimizer) -> Dump:
        """End a step that no update followed, without writing anything.

        Args:
            optimizer: Its parameters are recorded, with their gradients.
        """
        try:
            self._updates.note(optimizer)
            with self.paused():
                return self._dump()
        finally:
            self.stop()

    def _dump(self) -> Dump:
        rows = self._meter.read()
        return Dump(
            where=self._folder,
            tool=TOOL,
            framework="pytorch",
            step=self._step,
            rank=self._rank,
            facts=self._facts | self._own_facts(),
            calls=[entry.call(rows) for entry in self._calls.entries],
            notices=list(self._notices()),
        )

    def _check_size(self) -> None:
        size, limit = self._contents.size, self._settings.max_gib * 2**30
        if size > limit:
            raise UserError(
                f"the tensors of step {self._step} take {size_text(size)}, more than the "
                f"{size_text(limit)} allowed, so nothing was written",
                where="--max-gib",
                todo="Allow more, choose --ops or --layers, or keep --sample N elements of each.",
            )

    def _own_facts(self) -> dict[str, str]:
        sample = {SAMPLE: str(self._settings.sample)} if self._settings.sample else {}
        return {"torch": torch.__version__, "level": self._settings.level, **sample}

    def _notices(self) -> Sequence[str]:
        notices = [COMPILED] if self._layers.is_compiled else []
        if self._settings.parameters and not self._updates.num_updates:
            notices.append("No optimizer made an update in this step.")
        return notices

    def _forget(self) -> None:
        self._calls.clear()
        self._meter.clear()
        self._contents.clear()


def _check_folder(folder: Path, rank: int) -> None:
    """Check that a folder has no dump of this rank.

    Raises:
        UserError: It has one.
    """
    dumps = [dump for dump in find_dumps(folder) if dump.rank == rank] if is_folder(folder) else ()
    if dumps:
        raise UserError(
            f"it already holds {counted(len(dumps), 'dump')}, such as that of step {dumps[0].step}",
            where=str(folder),
            todo="Choose another folder, or delete that one.",
        )
