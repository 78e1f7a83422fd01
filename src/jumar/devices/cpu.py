"""Everything specific to the CPU as a device."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from jumar.devices.asking import Names
from jumar.devices.contract import Device
from jumar.ground import machine


@dataclass(frozen=True, kw_only=True)
class Cpu(Device):
    """The processor that runs this process."""

    names: ClassVar = Names(kind="cpu", others=("x86", "intel", "host"), numbered=False)
    dispatch_key: ClassVar = "CPU"
    autocast_key: ClassVar = "AutocastCPU"
    native_lists: ClassVar = "cpu"
    distributed_backend: ClassVar = "gloo"
    out_of_memory: ClassVar = r"DefaultCPUAllocator: (?:can't allocate|not enough) memory"
    on_host: ClassVar = True
    reads_at_once: ClassVar = True
    # CPUs without fp16 arithmetic emulate it in every kernel; those with it still do so in some,
    # such as the backward pass of a convolution.
    computes_fp16: ClassVar = False

    @property
    def parallel_ids(self) -> None:
        """None: DistributedDataParallel takes no device numbers for CPUs."""
        return

    @classmethod
    def open(cls, index: int | None = None, note: str = "") -> Device:
        return cls(index=index or 0, name=machine.processor_name(), note=note)

    @classmethod
    def visible(cls) -> list[Device]:
        return [cls.open()]

    @classmethod
    def why_passed_over(cls) -> None:
        """None: there is always a CPU."""
        return

    @classmethod
    def note_on_bf16(cls) -> str:
        """Whether bfloat16 may be slower than float32."""
        if cls.accelerates_bf16():
            return ""
        return "this CPU has no bf16 instructions, so it may be slower than fp32"

    @staticmethod
    def accelerates_bf16() -> bool:
        """Whether this CPU has bf16 instructions that torch's kernels use."""
        try:
            return bool(torch.ops.mkldnn._is_mkldnn_bf16_supported())
        except (AttributeError, RuntimeError):
            return False

    def synchronize(self) -> None:
        """Do nothing: operators on a CPU are finished when they return."""

    def memory_peak_bytes(self) -> int:
        return machine.process_peak_bytes()

    def memory_total_bytes(self) -> int:
        return machine.memory_bytes()[1]

    def copy_ahead(self, batches: Iterable[Mapping[str, Tensor]]) -> Iterator[Mapping[str, Tensor]]:
        yield from batches
