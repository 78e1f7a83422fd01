"""Everything specific to the CPU as a device."""

import os
import platform
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from jumar.devices.asking import Names
from jumar.devices.contract import Device
from jumar.devices.cpu_load import CpuMeter
from jumar.devices.load import LoadMeter
from jumar.ground import machine

_ISAS_WITHOUT_BF16 = ("SSE41", "AVX", "AVX2", "AVX2_VNNI", "AVX512_CORE", "AVX512_CORE_VNNI")
"""Values of oneDNN's variable ONEDNN_MAX_CPU_ISA that rule out bf16 instructions."""


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
        """None, because DistributedDataParallel accepts no device numbers for CPUs."""
        return

    @classmethod
    def open(cls, index: int | None = None, note: str = "") -> Device:
        return cls(index=index or 0, name=machine.processor_name(), note=note)

    @classmethod
    def visible(cls) -> list[Device]:
        return [cls.open()]

    @classmethod
    def why_passed_over(cls) -> None:
        """None, because a CPU is always available."""
        return

    @classmethod
    def note_on_bf16(cls) -> str:
        """A note on how products are computed, if bfloat16 is no faster than float32."""
        if cls.accelerates_bf16():
            return ""
        return "this CPU has no bf16 instructions: products are computed in fp32 and rounded"

    @classmethod
    def accelerates_bf16(cls) -> bool:
        """Whether this CPU has bf16 instructions that torch's kernels use."""
        if os.environ.get("ONEDNN_MAX_CPU_ISA", "").upper() in _ISAS_WITHOUT_BF16:
            return False
        try:
            usable = bool(torch.ops.mkldnn._is_mkldnn_bf16_supported())
        except (AttributeError, RuntimeError):
            return False
        # torch reports bf16 support with AVX-512 alone, where it takes 2.5 times as long as fp32.
        has_instructions = getattr(torch.cpu, "_is_avx512_bf16_supported", lambda: True)
        is_x86 = platform.machine().lower() in ("x86_64", "amd64")
        return usable and (not is_x86 or bool(has_instructions()))

    def synchronize(self) -> None:
        """Do nothing: operators on a CPU are finished when they return."""

    def memory_peak_bytes(self) -> int:
        return machine.process_peak_bytes()

    def memory_total_bytes(self) -> int:
        return machine.memory_bytes()[1]

    def load_meter(self) -> LoadMeter:
        return CpuMeter()

    def copy_ahead(self, batches: Iterable[Mapping[str, Tensor]]) -> Iterator[Mapping[str, Tensor]]:
        yield from batches
