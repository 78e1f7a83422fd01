"""Batches from worker processes through reused shared memory.

By default torch allocates new shared memory for every tensor that a worker sends. The kernel clears
and maps each page of it three times (worker, sender, receiver), which costs a fifth of the decoding
time. Here a worker writes its batches into a few buffers in turn, and the main process copies each
batch out immediately, into memory that it already has.
"""

from collections.abc import Mapping
from typing import NamedTuple

import torch
from torch import Tensor

from jumar.ground.errors import UserError
from jumar.ground.text import size_text

_ALIGNMENT = 64


class _Place(NamedTuple):
    """The place of a tensor in a buffer."""

    name: str
    dtype: torch.dtype
    shape: tuple[int, ...]
    stride: tuple[int, ...]
    start: int
    stop: int

    def view(self, buffer: Tensor) -> Tensor:
        """The tensor in a buffer of bytes."""
        values = buffer[self.start : self.stop].view(self.dtype)
        return values.as_strided(self.shape, self.stride, values.storage_offset())


class PackedBatch(NamedTuple):
    """The message sent instead of a batch.

    Attributes:
        buffer: Which buffer of which worker, (worker, turn).
        memory: The buffer itself if it is new; afterwards the receiver knows it.
        used: Bytes of it that hold the batch.
        places: The places of the tensors.
    """

    buffer: tuple[int, int]
    memory: Tensor | None
    used: int
    places: tuple[_Place, ...]


class BatchPacker:
    """A worker's end: writes batches into its buffers in turn.

    Args:
        worker: Number of the worker.
        buffers: How many are used in turn. The receiver copies a batch out before it requests the
            next one, so one more than the number of prefetched batches is enough.
    """

    def __init__(self, worker: int, buffers: int) -> None:
        self._worker = worker
        self._buffers: list[Tensor | None] = [None] * buffers
        self._turn = 0

    def pack(self, batch: Mapping[str, Tensor]) -> PackedBatch:
        """Copy a batch into the next buffer, which is enlarged if the batch does not fit.

        Raises:
            UserError: Shared memory is full.
        """
        places, size = _places(batch)
        turn = self._turn
        self._turn = (turn + 1) % len(self._buffers)
        memory, is_new = self._buffers[turn], False
        if memory is None or memory.numel() < size:
            # Batches of growing size would otherwise need another buffer each time.
            memory, is_new = _shared(size if memory is None else size + size // 8), True
            self._buffers[turn] = memory
        for place in places:
            place.view(memory).copy_(batch[place.name])
        return PackedBatch((self._worker, turn), memory if is_new else None, size, places)


class BatchUnpacker:
    """The main process's end."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, int], Tensor] = {}

    def unpack(self, packed: PackedBatch) -> dict[str, Tensor]:
        """The batch in separate memory; the worker may overwrite its buffer afterwards."""
        if packed.memory is not None:
            self._known[packed.buffer] = packed.memory
        copy = self._known[packed.buffer][: packed.used].clone()
        return {place.name: place.view(copy) for place in packed.places}


def _shared(size: int) -> Tensor:
    try:
        return torch.empty(size, dtype=torch.uint8).share_memory_()
    except RuntimeError as error:
        raise UserError(
            f"shared memory has no room for a batch of {size_text(size)}",
            where="/dev/shm",  # noqa: S108 - a name in a message
            todo="Enlarge it (docker run --shm-size), or use a smaller batch or fewer workers "
            "(data.batch_size, data.workers; data.workers=0 needs none).",
        ) from error


def _places(batch: Mapping[str, Tensor]) -> tuple[tuple[_Place, ...], int]:
    places: list[_Place] = []
    end = 0
    for name, tensor in batch.items():
        start = -(-end // _ALIGNMENT) * _ALIGNMENT
        end = start + tensor.numel() * tensor.element_size()
        # Keep the strides if the tensor is dense, for instance in channels_last order.
        stride = torch.empty_like(tensor, device="meta").stride()
        places.append(_Place(name, tensor.dtype, tuple(tensor.shape), tuple(stride), start, end))
    return tuple(places), end
