"""The shared implementation of GPUs and NPUs.

`torch.cuda` and `torch_npu.npu` offer the same functions under the same names. They are called on
a variable named `backend`, so that a test can find these calls in the source and check that the
real package has the functions.
"""

import os
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import ModuleType

import torch
from torch import Tensor

from jumar.devices.contract import Device
from jumar.ground.errors import UserError
from jumar.ground.text import counted


@dataclass(frozen=True, kw_only=True)
class Accelerator(Device):
    """A device other than the CPU, with its own memory and streams."""

    @classmethod
    @abstractmethod
    def load(cls) -> ModuleType:
        """Return torch's module for this kind, once it is known to have at least one device.

        Raises:
            UserError: There is no such device; the message says what to install or check.
        """

    @classmethod
    def open(cls, index: int | None, note: str = "") -> Device:
        backend = cls.load()
        checked_index = _checked_index(cls.names.kind, index, backend.device_count())
        backend.set_device(checked_index)
        return cls(index=checked_index, name=backend.get_device_name(checked_index), note=note)

    @classmethod
    def visible(cls) -> list[Device]:
        try:
            backend = cls.load()
        except UserError:
            return []
        return [
            cls(index=index, name=str(backend.get_device_name(index)))
            for index in range(backend.device_count())
        ]

    def synchronize(self) -> None:
        backend = self._backend()
        backend.synchronize(self.index)

    def memory_peak_bytes(self) -> int:
        backend = self._backend()
        return int(backend.max_memory_allocated(self.index))

    def memory_total_bytes(self) -> int:
        backend = self._backend()
        return int(backend.get_device_properties(self.index).total_memory)

    def copy_ahead(self, batches: Iterable[Mapping[str, Tensor]]) -> Iterator[Mapping[str, Tensor]]:
        """The batches on the device, each copied while the previous step computes.

        One batch is prefetched and copied ahead, from pinned memory on a separate stream.
        """
        backend = self._backend()
        side = backend.Stream(self.torch)

        def send(batch: Mapping[str, Tensor]) -> dict[str, Tensor]:
            with backend.stream(side):
                return {
                    name: (tensor if tensor.is_pinned() else tensor.pin_memory()).to(
                        self.torch, non_blocking=True
                    )
                    for name, tensor in batch.items()
                }

        waiting: Mapping[str, Tensor] | None = None
        for batch in batches:
            sent = send(batch)
            if waiting is not None:
                yield waiting
            waiting = self._received(backend, side, sent)
        if waiting is not None:
            yield waiting

    def _backend(self) -> ModuleType:
        return torch.get_device_module(self.kind)

    def _received(
        self, backend: ModuleType, side: torch.Stream, sent: Mapping[str, Tensor]
    ) -> Mapping[str, Tensor]:
        current = backend.current_stream(self.torch)
        current.wait_stream(side)
        for tensor in sent.values():
            # Without this the allocator may hand the memory to the next copy while a kernel of
            # the step still reads it.
            tensor.record_stream(current)
        return sent


def _checked_index(kind: str, requested: int | None, count: int) -> int:
    ranks = int(os.environ.get("LOCAL_WORLD_SIZE", "1"))
    has_peers = ranks > 1
    if requested is not None and has_peers:
        raise UserError(
            f"{ranks} ranks on this machine cannot share {kind}:{requested}",
            where="--device",
            todo=f"Write --device {kind}: each rank then uses the device with its local rank.",
        )
    index = requested if requested is not None else int(os.environ.get("LOCAL_RANK", "0"))
    if index >= count:
        raise UserError(
            f"there is no {kind}:{index}; {counted(count, f'{kind} device')} visible, "
            "numbered from 0",
            where="--device",
            todo=f"Start at most {counted(count, 'rank')} (torchrun --nproc-per-node {count})."
            if has_peers
            else f"Write --device {kind}:N with N up to {count - 1}.",
        )
    return index
