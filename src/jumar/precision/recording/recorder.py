"""Record training steps and write their dumps."""

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
COMPILED: Final = "torch.compile is off during a dump: modules run op by op"


@dataclass(frozen=True, kw_only=True)
class RecordSettings:
    """The parts of a step to record.

    Attributes:
        level: `modules` for statistics of modules only, `statistics` for those of ops too, or
            `tensors` for tensors as well.
        counts: Whether zeros, NaN, infinities and elements outside float16's range are counted.
        parameters: Whether parameters, gradients, the optimizer's state and updates are recorded.
        ops: Globs of ops, by aten name or CANN type; empty for all.
        layers: Globs of layers' paths; empty for all.
        max_gib: Maximum size of a step's tensors.
        sample: Maximum number of elements stored per tensor, evenly spaced; 0 for all.
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
            UserError: A setting is not allowed.
        """
        if self.level not in get_args(Level):
            raise unknown_name("level", self.level, get_args(Level), where="--level")
        if self.max_gib <= 0:
            raise UserError(f"{self.max_gib:g} GiB is not above 0", where="--max-gib")
        if self.sample < 0:
            raise UserError(
                f"{self.sample} is not a number of elements",
                where="--sample",
                todo="Allowed: 0 or more.",
            )
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
        modules: The modules by path; None to name them by their path in the outermost module that
            is called.
        facts: Further facts for the dump.

    Raises:
        UserError: The settings are not allowed, or the folder contains a dump of this rank.
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
            max_bytes=settings.max_gib * 2**30,
            digests=settings.digests,
        )
        self._ops = OpRecorder(self._calls, self._contents, self._layers)
        self._modules = ModuleRecorder(self._calls, self._contents, self._layers)
        self._updates = UpdateRecorder(
            *(self._calls, self._contents, self._layers, self._ops),
            is_enabled=settings.parameters,
        )
        self._stance: Any = None
        self._step: int | None = None
        self._is_entered = False
        self._is_new_folder = False

    @property
    def is_recording(self) -> bool:
        """Whether a step is being recorded."""
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
        self._is_new_folder = not exists(self._folder)
        make_writable(self._folder)
        self._updates.install()

    def close(self) -> None:
        """Undo `open`."""
        self.stop()
        self._updates.remove()
        if self._is_new_folder:
            with suppress(OSError):  # The folder is not empty if a dump was written.
                self._folder.rmdir()

    @contextmanager
    def paused(self) -> Generator[None]:
        """Return a context in which recording is paused."""
        was_paused, self._ops.is_paused = self._ops.is_paused, True
        try:
            yield
        finally:
            self._ops.is_paused = was_paused

    def begin(self, step: int) -> None:
        """Start recording a step."""
        self._step = step
        self._forget()
        self._layers.begin()
        self._modules.install()
        self._updates.begin()
        if "torch._dynamo" in sys.modules:
            # torch warns that hooks run twice for a compiled module, which is handled here.
            warnings.filterwarnings("ignore", r"Using `torch\.compile\(module\)` when there are")
            self._stance = torch.compiler.set_stance("force_eager")
            self._stance.__enter__()
        self._ops.is_paused = False
        if self._settings.level != "modules" and not self._is_entered:
            self._ops.__enter__()
            self._is_entered = True

    def stop(self) -> None:
        """Stop recording and discard the step."""
        self._step = None
        self._modules.remove()
        self._updates.stop()
        if self._stance is not None:
            self._stance.__exit__(None, None, None)
            self._stance = None
        self._ops.is_paused = True
        # Modes that the script has entered since must be exited first; until then, this one is
        # paused.
        if self._is_entered and _get_current_dispatch_mode() is self._ops:
            self._ops.__exit__(None, None, None)
            self._is_entered = False
        self._forget()

    def end(self) -> Path:
        """Write the dump of the step.

        Returns:
            The folder of the dump.

        Raises:
            UserError: A glob matched nothing, the size limit is exceeded, or the dump cannot be
                written.
        """
        try:
            self._calls.check_globs()
            self._check_size()
            # Reading from a device runs ops, which must not be recorded.
            with self.paused():
                dump = self._dump()
                return write_dump(self._folder, dump, self._contents.tensors, self._contents.views)
        finally:
            self.stop()

    def take(self, optimizer: Optimizer) -> Dump:
        """End a step without an update, and return its dump without writing it.

        Args:
            optimizer: The optimizer whose parameters and gradients are recorded.
        """
        try:
            self._updates.record_parameters(optimizer)
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
                f"the tensors of step {self._step} need {size_text(size)}, which exceeds the limit "
                f"of {size_text(limit)}; nothing was written",
                where="--max-gib",
                todo="Raise the limit, restrict --ops or --layers, or store only --sample N "
                "elements per tensor.",
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
    """Check that a folder contains no dump of this rank.

    Raises:
        UserError: The folder contains a dump of this rank.
    """
    dumps = [dump for dump in find_dumps(folder) if dump.rank == rank] if is_folder(folder) else ()
    if dumps:
        raise UserError(
            f"already contains {counted(len(dumps), 'dump')}, for instance of step {dumps[0].step}",
            where=str(folder),
            todo="Choose another folder, or delete that one.",
        )
