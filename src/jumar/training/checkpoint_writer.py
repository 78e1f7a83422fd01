"""Checkpoints written by all ranks during training.

Weights, averages and the optimizer's state change only in a step's update, so they are copied
while the passes of the next step run, and the update waits for the copy. The copies are written by
a thread of each rank: the first rank writes the weights, which stay a single file, and all share
the optimizer state. A crash in between leaves earlier checkpoints intact.
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
from jumar.training.checkpoint_files import FileMark
from jumar.training.checkpoint_parts import write_part
from jumar.training.parallel.ranks import Ranks
from jumar.training.run_directory import read_json, write_json

LONGEST_WAIT_S = 1800.0
"""How long the first rank waits for the others' parts."""
LAST_WAIT_S = 5.0
"""How long it still waits for them when a run has failed."""
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
        batch: What determines the order of samples.
        changing: Memory (`data_ptr`) of tensors that passes change, such as batch-norm averages.
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
        part: The number of its part of the optimizer's state, from 1.
        parts: How many parts that has.
    """

    files: Mapping[str, Tensors]
    part: int
    parts: int


def shares(model: Tensors, ema: Tensors | None, slots: Tensors, writers: int) -> list[Share]:
    """Divide a checkpoint among the ranks, in about equal numbers of bytes.

    Args:
        model: Written whole by the first.
        ema: Written whole by the second, if there is one.
        slots: Written in parts, whole tensors.
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
        least = sizes.index(min(sizes))
        files[least][OPTIMIZER][name] = tensor
        sizes[least] += tensor.nbytes
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
            NotWrittenError: This or the previous one could not be written.
        """
        self.finish()
        beside = unfinished(self._directory, content.step)
        if self._ranks.is_first:
            with not_written(beside):
                begin_checkpoint(beside)
        # Nodes without the first one's disk leave their share to those that have it.
        self._ranks.wait()
        sees = [f"{self._ranks.rank:08}"] if is_folder(beside) else []
        writers = [int(rank) for rank in self._ranks.texts(sees)]
        if self._ranks.rank not in writers:
            return
        number = writers.index(self._ranks.rank)
        share = shares(content.model, content.ema, content.slots, len(writers))[number]
        copies = self._copies_of(share, content.changing)
        self._copied.clear()
        self._submit(lambda: self._write(beside, content, share, copies))

    def wait_for_copy(self) -> None:
        """Wait until weights, averages and the optimizer's state may change again."""
        self._copied.wait()

    def afterwards(self, action: Callable[[], None]) -> None:
        """Run something on the checkpoints once all pending ones are written."""
        self._submit(action)

    def check(self) -> None:
        """Raise pending errors.

        Raises:
            NotWrittenError: A checkpoint could not be written.
        """
        if any(job.done() for job in self._jobs):
            done = [job for job in self._jobs if job.done()]
            self._jobs = [job for job in self._jobs if not job.done()]
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
        """Where each tensor of the share is copied from and to; those that passes change are
        copied here. Memory on the host is kept for the next checkpoint.
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
        beside: Path,
        content: Content,
        share: Share,
        copies: Sequence[tuple[torch.Tensor, torch.Tensor]],
    ) -> None:
        try:
            for copy, tensor in copies:
                copy.copy_(tensor)
        finally:
            self._copied.set()
        marker = beside / f"written-{share.part:05}.json"
        try:
            with not_written(beside):
                marks: dict[str, FileMark] = {}
                for file, tensors in share.files.items():
                    host_copies = {name: self._copies[f"{file}/{name}"] for name in tensors}
                    parts = (share.part, share.parts) if file == OPTIMIZER else (1, 1)
                    marks |= write_part(beside, file, host_copies, part=parts[0], parts=parts[1])
                if share.part > 1:
                    write_json(marker, {name: asdict(mark) for name, mark in marks.items()})
                    return
                marks |= self._marks_of_others(beside, share.parts)
                finish_checkpoint(
                    beside,
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
                shutil.rmtree(beside, ignore_errors=True)
            raise

    def _marks_of_others(self, beside: Path, writers: int) -> dict[str, FileMark]:
        """Wait for the other ranks' parts, and remove their markers."""
        marks: dict[str, FileMark] = {}
        end = time.monotonic() + LONGEST_WAIT_S
        for number in range(2, writers + 1):
            marker = beside / f"written-{number:05}.json"
            while not marker.exists():
                if time.monotonic() > min(end, self._gives_up_at):
                    raise OSError(f"part {number} of {writers} did not arrive")
                time.sleep(_POLL_S)
            content = read_json(marker)
            if "error" in content:
                raise OSError(str(content["error"]))
            marks |= {
                name: FileMark(size=int(mark["size"]), crc32c=str(mark["crc32c"]))
                for name, mark in content.items()
            }
            marker.unlink()
        return marks
