"""Checkpoints written by all ranks during training.

Weights, averages and the optimizer's state change only in a step's update, so they are copied
during the passes of the next step, and the update waits for the copy. A thread of each rank writes
its copies: the first rank writes the weights, which stay a single file, and all ranks share the
optimizer's state. A crash in between leaves earlier checkpoints intact.
"""

import shutil
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict, dataclass
from math import inf
from pathlib import Path
from typing import Any

import torch

from jumar.ground.errors import UserError
from jumar.ground.paths import is_folder
from jumar.training.checkpoint import (
    EMA,
    MODEL,
    OPTIMIZER,
    NotWrittenError,
    begin_checkpoint,
    finish_checkpoint,
    not_written,
    unfinished,
)
from jumar.training.checkpoint_files import FileMark, marks_from_json
from jumar.training.checkpoint_parts import write_part
from jumar.training.parallel.ranks import Ranks
from jumar.training.run_directory import read_json, write_json

LONGEST_WAIT_S = 1800.0
"""How long the first rank waits for the others' parts."""
LAST_WAIT_S = 5.0
"""How long the first rank waits for them once a run has failed."""
_POLL_S = 0.01
Tensors = Mapping[str, torch.Tensor]


@dataclass(frozen=True, kw_only=True)
class Content:
    """The content of a checkpoint.

    Attributes:
        step: Finished steps.
        epoch: Finished epochs.
        model: The model's state dict.
        ema: The averaged weights, if any.
        slots: The optimizer's state.
        values: Further state for resuming, as JSON.
        batch: The values that determine the order of samples.
        changing: `data_ptr` of the tensors that passes change, such as batch-norm averages.
    """

    step: int
    epoch: float
    model: Tensors
    ema: Tensors | None
    slots: Tensors
    values: Mapping[str, Any]
    batch: Mapping[str, int]
    changing: frozenset[int]


@dataclass(frozen=True, kw_only=True)
class Share:
    """The share of a checkpoint that one rank writes.

    Attributes:
        files: Tensors by file.
        part: The number of this rank's part of the optimizer's state, counted from 1.
        parts: The number of such parts.
    """

    files: Mapping[str, Tensors]
    part: int
    parts: int


def shares(model: Tensors, ema: Tensors | None, slots: Tensors, writers: int) -> list[Share]:
    """Divide a checkpoint among the ranks into shares of about equal size.

    Args:
        model: Tensors that the first rank writes.
        ema: Tensors that the second rank writes, or the first if there is only one.
        slots: Tensors that are distributed over the ranks, without being split.
        writers: Number of ranks that write.
    """
    files: list[dict[str, dict[str, torch.Tensor]]] = [{} for _ in range(writers)]
    files[0][MODEL] = dict(model)
    if ema is not None:
        files[1 % writers][EMA] = dict(ema)
    sizes = [
        sum(t.nbytes for tensors in rank_files.values() for t in tensors.values())
        for rank_files in files
    ]
    if slots:
        for rank_files in files:
            rank_files[OPTIMIZER] = {}
    for name, tensor in sorted(slots.items(), key=lambda item: (-item[1].nbytes, item[0])):
        smallest = sizes.index(min(sizes))
        files[smallest][OPTIMIZER][name] = tensor
        sizes[smallest] += tensor.nbytes
    return [
        Share(files=rank_files, part=number, parts=writers)
        for number, rank_files in enumerate(files, start=1)
    ]


class CheckpointWriter:
    """Writes checkpoints in the background, one at a time.

    Args:
        directory: The run's `checkpoints` directory.
        ranks: The ranks that write together.
    """

    def __init__(self, directory: Path, ranks: Ranks) -> None:
        self._directory, self._ranks = directory, ranks
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="checkpoint")
        self._jobs: list[Future[None]] = []
        self._copied = threading.Event()
        self._copied.set()
        self._copies: dict[str, torch.Tensor] = {}
        self._gives_up_at = inf

    def begin(self, content: Content) -> None:
        """Start writing a checkpoint; all ranks call this together, and then `wait_for_copy`.

        Raises:
            NotWrittenError: This checkpoint or the previous one could not be written.
        """
        self.finish()
        temporary = unfinished(self._directory, content.step)
        if self._ranks.is_first:
            with not_written(temporary):
                begin_checkpoint(temporary)
        # Nodes that do not share the first one's disk leave the writing to those that do.
        self._ranks.wait()
        own_name = [f"{self._ranks.rank:08}"] if is_folder(temporary) else []
        writers = [int(rank) for rank in self._ranks.texts(own_name)]
        if self._ranks.rank not in writers:
            return
        number = writers.index(self._ranks.rank)
        share = shares(content.model, content.ema, content.slots, len(writers))[number]
        copies = self._copies_of(share, content.changing)
        self._copied.clear()
        self._submit(lambda: self._write(temporary, content, share, copies))

    def wait_for_copy(self) -> None:
        """Wait until weights, averages and the optimizer's state may change again."""
        self._copied.wait()

    def afterwards(self, action: Callable[[], None]) -> None:
        """Run an action on the checkpoints once all pending ones are written."""
        self._submit(action)

    def check(self) -> None:
        """Raise pending errors.

        Raises:
            NotWrittenError: A checkpoint could not be written.
        """
        done = [job for job in self._jobs if job.done()]
        # Do not call `done` again: a job may have ended since, and its error would be lost.
        self._jobs = [job for job in self._jobs if job not in done]
        for job in done:
            job.result()

    def finish(self) -> None:
        """Wait until all pending checkpoints are written.

        Raises:
            NotWrittenError: A checkpoint could not be written.
        """
        jobs, self._jobs = self._jobs, []
        for job in jobs:
            job.result()

    def close(self) -> None:
        """Wait for the end of pending writes, successful or not."""
        self._gives_up_at = time.monotonic() + LAST_WAIT_S
        self._thread.shutdown()

    def _submit(self, action: Callable[[], None]) -> None:
        self._jobs.append(self._thread.submit(action))

    def _copies_of(
        self, share: Share, changing: frozenset[int]
    ) -> list[tuple[torch.Tensor, torch.Tensor]]:
        """Pairs of the copy and the original of each tensor that is to be copied in the background.

        Tensors that passes change are copied at once. Memory on the host is reused for the next
        checkpoint.
        """
        pairs: list[tuple[torch.Tensor, torch.Tensor]] = []
        copies: dict[str, torch.Tensor] = {}
        for file, tensors in share.files.items():
            for name, tensor in tensors.items():
                key = f"{file}/{name}"
                copy = self._copies.get(key)
                if copy is None or copy.shape != tensor.shape or copy.dtype != tensor.dtype:
                    copy = torch.empty(tensor.shape, dtype=tensor.dtype)
                copies[key] = copy
                if tensor.data_ptr() in changing:
                    copy.copy_(tensor.detach())
                else:
                    pairs.append((copy, tensor.detach()))
        self._copies = copies
        return pairs

    def _write(
        self,
        temporary: Path,
        content: Content,
        share: Share,
        copies: Sequence[tuple[torch.Tensor, torch.Tensor]],
    ) -> None:
        try:
            for copy, tensor in copies:
                copy.copy_(tensor)
        finally:
            self._copied.set()
        marker = temporary / f"written-{share.part:05}.json"
        try:
            with not_written(temporary):
                marks: dict[str, FileMark] = {}
                for file, tensors in share.files.items():
                    host_copies = {name: self._copies[f"{file}/{name}"] for name in tensors}
                    parts = (share.part, share.parts) if file == OPTIMIZER else (1, 1)
                    marks |= write_part(temporary, file, host_copies, part=parts[0], parts=parts[1])
                if share.part > 1:
                    write_json(marker, {name: asdict(mark) for name, mark in marks.items()})
                    return
                marks |= self._marks_of_others(temporary, share.parts)
                finish_checkpoint(
                    temporary,
                    step=content.step,
                    epoch=content.epoch,
                    values=content.values,
                    batch=content.batch,
                    marks=marks,
                )
        except NotWrittenError as error:
            if share.part > 1:
                with suppress(UserError, OSError):
                    write_json(marker, {"error": error.what})
            else:
                shutil.rmtree(temporary, ignore_errors=True)
            raise

    def _marks_of_others(self, temporary: Path, writers: int) -> dict[str, FileMark]:
        """Wait for the other ranks' parts, and remove their markers."""
        marks: dict[str, FileMark] = {}
        end = time.monotonic() + LONGEST_WAIT_S
        for number in range(2, writers + 1):
            marker = temporary / f"written-{number:05}.json"
            while not marker.exists():
                if time.monotonic() > min(end, self._gives_up_at):
                    raise OSError(f"part {number} of {writers} did not arrive")
                time.sleep(_POLL_S)
            content = read_json(marker)
            if "error" in content:
                raise OSError(str(content["error"]))
            marks |= marks_from_json(content)
            marker.unlink()
        return marks
