"""A device's interface to the rest of jumar, which never compares kinds."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal, Protocol

import torch
from torch import Tensor

from jumar.devices.asking import Names
from jumar.devices.load import LoadMeter, NoMeter


class Recorder(Protocol):
    """The profiler of torch or torch_npu."""

    def start(self) -> None:
        """Start recording."""
        ...

    def step(self) -> None:
        """Mark the end of a step."""
        ...

    def stop(self) -> None:
        """Stop recording; an NPU's profiler then writes its files."""
        ...

    def export_chrome_trace(self, path: str) -> Any:
        """Write the events as JSON."""
        ...


@dataclass(frozen=True, kw_only=True)
class Recording:
    """The settings of a recording by a profiler.

    Attributes:
        folder: Output folder for profilers that write files.
        steps: Number of steps to record.
        warm_up: Number of preceding steps; torch's profiler records these too.
        memory: Whether allocations are recorded.
        shapes: Whether the shapes of ops are recorded.
    """

    folder: Path
    steps: int
    warm_up: int
    memory: bool = False
    shapes: bool = True


@dataclass(frozen=True, kw_only=True)
class Device(ABC):
    """One selected device; everything that is specific to its kind is in its class.

    Attributes:
        names: The names of its kind.
        dispatch_key: torch's dispatch key of kernels for this kind.
        autocast_key: The dispatch key of autocast.
        native_lists: The op lists that torch's own autocast uses for this kind.
        distributed_backend: The torch.distributed backend for this kind's tensors.
        out_of_memory: A pattern for the out-of-memory errors that only this kind raises.
        on_host: Whether it uses the cores and the memory of this process.
        reads_at_once: Whether a result can be read without waiting for pending work.
        computes_fp16: Whether computing in float16 is worthwhile; otherwise bfloat16 is used, or
            fp16 is emulated.
        has_float64: Whether it computes in float64.
        profiler_activities: What torch's profiler records besides the host.
        fallback_message: A pattern for its library's warning that the CPU computes an op which has
            no kernel; the first group is the op. None if a missing kernel is an error.
        fallback_remedy: Additional advice for this warning.
        profiler_writes_files: Whether its profiler marks steps itself and writes files instead of
            returning events.
        index: Number among the visible devices of its kind; 0 on a CPU.
        name: Name of the processor or accelerator, such as `Ascend910B3`.
        note: The kind that `auto` skipped and the reason, for the first line of a run; usually
            empty.
    """

    names: ClassVar[Names]
    dispatch_key: ClassVar[str]
    autocast_key: ClassVar[str]
    native_lists: ClassVar[Literal["cpu", "cuda"]] = "cuda"
    distributed_backend: ClassVar[str]
    out_of_memory: ClassVar[str] = r"(?!)"
    on_host: ClassVar[bool] = False
    reads_at_once: ClassVar[bool] = False
    computes_fp16: ClassVar[bool] = True
    has_float64: ClassVar[bool] = True
    profiler_activities: ClassVar[tuple[torch.profiler.ProfilerActivity, ...]] = ()
    profiler_writes_files: ClassVar[bool] = False
    fallback_message: ClassVar[str | None] = None
    fallback_remedy: ClassVar[str] = ""

    index: int
    name: str
    note: str = ""

    def __str__(self) -> str:
        return f"{self.kind}:{self.index}" if self.names.numbered else self.kind

    @property
    def kind(self) -> str:
        """The name of its kind, which is torch's device type."""
        return self.names.kind

    @property
    def torch(self) -> "torch.device":
        """The device as a `torch.device`."""
        return torch.device(str(self))

    @property
    def parallel_ids(self) -> list[int] | None:
        """The `device_ids` of DistributedDataParallel."""
        return [self.index]

    @property
    def group_device(self) -> "torch.device | None":
        """The device that a process group is bound to; None for the current one."""
        return None

    @classmethod
    @abstractmethod
    def open(cls, index: int | None, note: str = "") -> "Device":
        """Find and select a device.

        Args:
            index: The device number; None for this process's local rank.
            note: See the attribute `note`.

        Raises:
            UserError: The device is not available; the message says what to install or check.
        """

    @classmethod
    @abstractmethod
    def visible(cls) -> "list[Device]":
        """Every device of this kind that can be opened."""

    @classmethod
    @abstractmethod
    def why_passed_over(cls) -> str | None:
        """Return why `auto` skips this kind, or None if it selects it.

        Returns:
            Text for the first line of a run, empty if there is nothing to report.

        Raises:
            UserError: A device exists, but its software is broken.
        """

    @classmethod
    def has_kernel(cls, name: str) -> bool:
        """Whether this kind has a native kernel for an aten operator.

        torch accepts `fused=True` on every accelerator; if the kernel is missing, torch_npu
        runs it on the CPU, with a copy of every parameter each step.
        """
        return torch._C._dispatch_has_kernel_for_dispatch_key(f"aten::{name}", cls.dispatch_key)

    @classmethod
    def accelerates_bf16(cls) -> bool:
        """Whether bfloat16 products are fast; if not, they are computed in float32 and rounded."""
        return True

    @classmethod
    def note_on_bf16(cls) -> str:
        """A note for the user on bfloat16 on this kind; usually empty."""
        return ""

    @abstractmethod
    def synchronize(self) -> None:
        """Wait until the device has finished all its work."""

    @abstractmethod
    def memory_peak_bytes(self) -> int:
        """Peak memory: tensors on an accelerator, the whole process on a CPU."""

    @abstractmethod
    def memory_total_bytes(self) -> int:
        """Memory of the device; on a CPU the container's limit, if there is one."""

    def load_meter(self) -> LoadMeter:
        """The meter of its load, memory, power and temperature during training."""
        return NoMeter(f"the load of {self.kind} devices cannot be read")

    @abstractmethod
    def copy_ahead(self, batches: Iterable[Mapping[str, Tensor]]) -> Iterator[Mapping[str, Tensor]]:
        """The batches on the device; on an accelerator each is copied during the previous step."""

    def set_full_float32(self, full: bool) -> None:
        """Set whether float32 matmul and convolution compute with all 24 bits of the mantissa.

        Args:
            full: False allows TensorFloat-32 on CUDA and HF32 on an NPU (11 bits each). A CPU has
                no shorter format and always uses full precision.
        """
        torch.set_float32_matmul_precision("highest" if full or self.on_host else "high")

    def set_deterministic(self, deterministic: bool) -> None:
        """Set whether the same inputs give the same bits, at some cost in speed.

        An operator without a deterministic algorithm then raises an error that names it. Call this
        before the first matmul and before torch.distributed starts: cuBLAS and HCCL read their
        environment variables only once.
        """
        # The call imports the compiler, which takes a second and a half; False is the default
        # anyway.
        if deterministic or torch.are_deterministic_algorithms_enabled():
            torch.use_deterministic_algorithms(deterministic)

    def create_recorder(self, wanted: Recording) -> Recorder:
        """The profiler of the device, with the settings that fill every column of the op table."""
        return torch.profiler.profile(
            activities=[torch.profiler.ProfilerActivity.CPU, *self.profiler_activities],
            record_shapes=wanted.shapes,
            profile_memory=wanted.memory,
        )
