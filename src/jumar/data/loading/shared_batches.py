"""Passes batches from worker processes through reused shared memory.

By default, torch allocates new shared memory for every tensor that a worker sends. The kernel
clears and maps each page of it three times (worker, sender, receiver), which costs a fifth of the
decoding time. Here, a worker writes its batches into a few buffers in turn, and the main process
copies each batch immediately, into memory that it already has.
"""

from collections.abc import Mapping
from typing import NamedTuple

import torch
from torch import Tensor

from jumar.ground.errors import UserError
from jumar.ground.text import size_text

_ALIGNMENT = 64


class _TensorSlice(NamedTuple):
    """The position and form of a tensor in a buffer."""

    name: str
    dtype: torch.dtype
    shape: tuple[int, ...]
    stride: tuple[int, ...]
    start: int
    stop: int

    def view(self, buffer: Tensor) -> Tensor:
        """Return the tensor as a view of a buffer of bytes."""
        values = buffer[self.start : self.stop].view(self.dtype)
        return values.as_strided(self.shape, self.stride, values.storage_offset())


class PackedBatch(NamedTuple):
    """The message sent instead of a batch.

    Attributes:
        buffer: Identifies the buffer, as (worker, turn).
        memory: The buffer itself if it is new; otherwise the receiver already has it.
        used: Number of its bytes used by the batch.
        slices: The positions of the tensors.
    """

    buffer: tuple[int, int]
    memory: Tensor | None
    used: int
    slices: tuple[_TensorSlice, ...]


class BatchPacker:
    """The worker's side: writes batches into its buffers in turn.

    Args:
        worker: Index of the worker.
        buffers: Number of buffers. The receiver copies a batch before it requests the next one, so
            one more than the number of prefetched batches is enough.
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
        slices, size = _slices_of(batch)
        turn = self._turn
        self._turn = (turn + 1) % len(self._buffers)
        memory, is_new = self._buffers[turn], False
        if memory is None or memory.numel() < size:
            # Batches of growing size would otherwise need another buffer each time.
            memory, is_new = _shared(size if memory is None else size + size // 8), True
            self._buffers[turn] = memory
        for tensor_slice in slices:
            tensor_slice.view(memory).copy_(batch[tensor_slice.name])
        return PackedBatch((self._worker, turn), memory if is_new else None, size, slices)


class BatchUnpacker:
    """The main process's side: copies batches from the workers' buffers."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, int], Tensor] = {}

    def unpack(self, packed: PackedBatch) -> dict[str, Tensor]:
        """Copy a batch into separate memory, so that the worker may overwrite its buffer."""
        if packed.memory is not None:
            self._known[packed.buffer] = packed.memory
        copy = self._known[packed.buffer][: packed.used].clone()
        return {tensor_slice.name: tensor_slice.view(copy) for tensor_slice in packed.slices}


def _shared(size: int) -> Tensor:
    try:
        return torch.empty(size, dtype=torch.uint8).share_memory_()
    except RuntimeError as error:
        raise UserError(
            f"shared memory has no space for a batch of {size_text(size)}",
            where="/dev/shm",  # noqa: S108 - a name in a message
            todo="Enlarge it (docker run --shm-size), or use a smaller batch or fewer workers "
            "(data.batch_size, data.workers; data.workers=0 needs none).",
        ) from error


def _slices_of(batch: Mapping[str, Tensor]) -> tuple[tuple[_TensorSlice, ...], int]:
    slices: list[_TensorSlice] = []
    end = 0
    for name, tensor in batch.items():
        start = -(-end // _ALIGNMENT) * _ALIGNMENT
        end = start + tensor.numel() * tensor.element_size()
        # Keep the strides if the tensor is dense, for instance in channels_last order.
        stride = torch.empty_like(tensor, device="meta").stride()
        shape = tuple(tensor.shape)
        slices.append(_TensorSlice(name, tensor.dtype, shape, tuple(stride), start, end))
    return tuple(slices), end
