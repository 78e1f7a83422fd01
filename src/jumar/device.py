"""The device a run computes on: cpu, cuda or npu. The only file that knows torch_npu.

That is why it is longer than others: whatever names a device, a back end or a vendor's package,
and whatever asks them something, stands here and nowhere else. What differs between devices is
asked for here by everybody else, with a `Device`. `torch.cuda` and `torch_npu.npu` offer the
same functions under the same names, so most of it speaks to either of them.

What holds for both is called on a name `backend`, what only Ascend has on a name `npu`, and its
profiler on a name `profiler`. A test reads those calls from this source and compares them with the
names of the real package.
"""

import importlib
import importlib.metadata
import importlib.util
import os
import random
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, Protocol

import numpy
import torch
from torch import Tensor

from jumar.device_names import Kind, parse_device
from jumar.ground import machine
from jumar.ground.errors import UserError
from jumar.ground.text import counted

NPU_PACKAGE = "torch_npu"
CANN_VARIABLE = "ASCEND_HOME_PATH"
"""Set by CANN's set_env.sh; unset means that its libraries cannot be found either."""

DEVICE_FILES = Path("/dev")

_DISPATCH_KEYS: Mapping[Kind, str] = {"cpu": "CPU", "cuda": "CUDA", "npu": "PrivateUse1"}
_BACKENDS: Mapping[Kind, str] = {"cpu": "gloo", "cuda": "nccl", "npu": "hccl"}
# The last two come from CANN below torch_npu's own allocator: its error code, and what its runtime
# returns, which is only a number unless the words before it are read too.
_OUT_OF_MEMORY = re.compile(
    r"out of memory|DefaultCPUAllocator: (can't allocate|not enough) memory"
    r"|CU(BLAS|DNN)_STATUS_ALLOC_FAILED|\bEL0004\b|(result = |error code is )207001\b"
    # Bytes beyond 63 bits, a worker's MemoryError as the loader repeats it, and shared memory.
    r"|Storage size calculation overflowed|numel: integer multiplication overflow"
    r"|Unable to allocate .* for an array|Caught \w*MemoryError|Cannot allocate memory"
)
_TOO_LARGE_FOR_NUMPY = re.compile("array is too big|Maximum allowed dimension exceeded")


@dataclass(frozen=True, kw_only=True)
class Device:
    """One device that is there and selected.

    Attributes:
        kind: `cpu`, `cuda` or `npu`.
        index: Number among the visible devices of its kind; 0 on a CPU.
        name: Of the processor or accelerator, for instance `Ascend910B3`.
        note: What `auto` passed over and why, for the first line of a run; mostly empty.
    """

    kind: Kind
    index: int
    name: str
    note: str = ""

    def __str__(self) -> str:
        return self.kind if self.kind == "cpu" else f"{self.kind}:{self.index}"

    @property
    def type(self) -> str:
        """The device type for `torch.autocast` and `GradScaler`."""
        return self.kind

    @property
    def distributed_backend(self) -> str:
        """The torch.distributed back end that moves this device's tensors."""
        return _BACKENDS[self.kind]

    @property
    def torch(self) -> "torch.device":
        """The device as torch takes it."""
        return torch.device(str(self))


def open_device(request: str) -> Device:
    """Find and select the device that was asked for; never another one.

    `auto` takes an NPU, else a GPU, else the CPU. Where NPUs are visible and torch_npu is
    installed but broken, it stops instead of letting the job land on the CPU.

    Args:
        request: `auto`, `cpu`, `cuda`, `cuda:N`, `npu` or `npu:N`. Without a number, a process
            of torchrun takes the one of its local rank.

    Raises:
        UserError: The device is not there; says what to install or check.
    """
    kind, index = parse_device(request)
    note = ""
    if kind == "auto":
        kind, note = _best_kind()
    if kind == "cpu":
        return Device(kind="cpu", index=0, name=machine.processor_name(), note=note)
    backend = _load_npu() if kind == "npu" else _load_cuda()
    index = _checked_index(kind, index, backend.device_count())
    backend.set_device(index)
    return Device(kind=kind, index=index, name=backend.get_device_name(index), note=note)


def list_devices() -> list[Device]:
    """Every accelerator that can be opened, then the CPU. Loads torch_npu where it is installed."""
    found: list[Device] = []
    for kind, load in (("npu", _load_npu), ("cuda", _load_cuda)):
        try:
            backend = load()
        except UserError:
            continue
        for index in range(backend.device_count()):
            name = str(backend.get_device_name(index))
            found.append(Device(kind="npu" if kind == "npu" else "cuda", index=index, name=name))
    return [*found, Device(kind="cpu", index=0, name=machine.processor_name())]


def npu_fault() -> UserError | None:
    """Why no NPU can be opened here, or None where one can."""
    try:
        _load_npu()
    except UserError as error:
        return error
    return None


def npu_nodes() -> list[str]:
    """The device files of NPUs that this machine or container shows, such as /dev/davinci0."""
    return sorted(str(path) for path in DEVICE_FILES.glob("davinci[0-9]*"))


def npu_package_version() -> str | None:
    """The version of the installed torch_npu, found without importing it."""
    try:
        return importlib.metadata.version(NPU_PACKAGE)
    except importlib.metadata.PackageNotFoundError:
        return None


def npu_pairing_fault(torch_version: str, npu_version: str) -> UserError | None:
    """What is wrong with this pair of torch and torch_npu; None when they fit.

    torch_npu X.Y.Z is built against the C++ interface of torch X.Y and loads with no other.
    """
    ours, theirs = (re.match(r"(\d+)\.(\d+)", text) for text in (torch_version, npu_version))
    if ours and theirs and ours.groups() == theirs.groups():
        return None
    return UserError(
        f"torch_npu {npu_version} is not compatible with torch {torch_version}",
        where="--device",
        todo="Install the same X.Y of both: torch_npu X.Y.Z works with torch X.Y only.",
    )


def synchronize(device: Device) -> None:
    """Wait until the device has done all that was given to it."""
    if device.kind != "cpu":
        backend = _backend(device)
        backend.synchronize(device.index)


def memory_peak_bytes(device: Device) -> int:
    """Most memory held at once: tensors on an accelerator, the whole process on a CPU."""
    if device.kind == "cpu":
        return machine.process_peak_bytes()
    backend = _backend(device)
    return int(backend.max_memory_allocated(device.index))


def reset_memory_peak(device: Device) -> None:
    """Start the measurement of `memory_peak_bytes` anew; on a CPU only where Linux allows it."""
    if device.kind == "cpu":
        machine.reset_process_peak()
    else:
        backend = _backend(device)
        backend.reset_peak_memory_stats(device.index)


def memory_free_bytes(device: Device) -> int:
    """Memory that can still be had; on a CPU within the container's limit."""
    if device.kind == "cpu":
        return machine.memory_bytes()[0]
    backend = _backend(device)
    return int(backend.mem_get_info(device.index)[0])


def memory_total_bytes(device: Device) -> int:
    """Memory of the device; on a CPU the container's limit where there is one."""
    if device.kind == "cpu":
        return machine.memory_bytes()[1]
    backend = _backend(device)
    return int(backend.get_device_properties(device.index).total_memory)


def supports_bf16(device: Device) -> bool:
    """Whether the device computes in bfloat16. Ascend 910 (first generation) does not."""
    if device.kind == "cpu":
        return True
    backend = _backend(device)
    if device.kind == "cuda":
        # Emulation would be slower than float32, which is no reason to choose bfloat16.
        return bool(backend.is_bf16_supported(including_emulation=False))
    return bool(backend.is_bf16_supported())


def accelerates_bf16(device: Device) -> bool:
    """Whether bfloat16 is faster than float32; on a CPU that takes instructions for it."""
    return cpu_accelerates_bf16() if device.kind == "cpu" else supports_bf16(device)


def cpu_accelerates_bf16() -> bool:
    """Whether this CPU has bf16 instructions that torch's kernels use."""
    try:
        return bool(torch.ops.mkldnn._is_mkldnn_bf16_supported())
    except (AttributeError, RuntimeError):
        return False


def has_fused_optimizers(device: Device, *names: str) -> bool:
    """Whether the device has one kernel for the whole update of these optimizers.

    torch lets `fused=True` pass on every accelerator; where the kernel is missing, torch_npu
    runs it on the CPU, with a copy of every parameter each step.

    Args:
        device: The device of the parameters.
        names: Of `sgd`, `adam`, `adamw`, `adagrad`; `sgd` and `adamw` when none is given.
    """
    key = _DISPATCH_KEYS[device.kind]
    return all(
        torch._C._dispatch_has_kernel_for_dispatch_key(f"aten::_fused_{name}_", key)
        for name in names or ("sgd", "adamw")
    )


def is_out_of_memory(error: BaseException) -> bool:
    """Whether the error means that memory ran out, on whatever device.

    A CPU, older releases of torch_npu and CANN itself raise a plain RuntimeError.
    """
    if isinstance(error, (torch.OutOfMemoryError, MemoryError)):
        return True
    if isinstance(error, ValueError):
        return bool(_TOO_LARGE_FOR_NUMPY.search(str(error)))
    return isinstance(error, RuntimeError) and bool(_OUT_OF_MEMORY.search(str(error)))


class Recorder(Protocol):
    """A profiler, of torch or of torch_npu."""

    def start(self) -> None:
        """Record from here on."""
        ...

    def step(self) -> None:
        """A step has ended."""
        ...

    def stop(self) -> None:
        """Record no longer; an NPU's profiler writes its files now."""
        ...

    def export_chrome_trace(self, path: str) -> Any:
        """Write the events as JSON."""
        ...


def create_recorder(
    device: Device,
    folder: Path,
    *,
    steps: int,
    warm_up: int,
    memory: bool = False,
    shapes: bool = True,
) -> Recorder:
    """The profiler of a device, with the settings that fill every column of the op table.

    Args:
        device: Whose ops are recorded, besides those of the host.
        folder: Where the profiler of an NPU writes its files; that of others writes none.
        steps: How many are recorded.
        warm_up: Steps before them; torch's profiler records these too.
        memory: Whether allocations are recorded, too.
        shapes: Whether the shapes of ops are.
    """
    if device.kind != "npu":
        activities = [torch.profiler.ProfilerActivity.CPU]
        if device.kind == "cuda":
            activities.append(torch.profiler.ProfilerActivity.CUDA)
        return torch.profiler.profile(
            activities=activities, record_shapes=shapes, profile_memory=memory
        )
    profiler = importlib.import_module(f"{NPU_PACKAGE}.profiler")
    # Level 0, the default, tells neither types nor shapes nor cores.
    level = profiler._ExperimentalConfig(
        profiler_level=profiler.ProfilerLevel.Level1,
        aic_metrics=profiler.AiCMetrics.PipeUtilization,
        export_type=[profiler.ExportType.Text, profiler.ExportType.Db],
    )
    return profiler.profile(
        activities=profiler.supported_activities(),
        schedule=profiler.schedule(wait=0, warmup=warm_up, active=steps, repeat=1),
        on_trace_ready=profiler.tensorboard_trace_handler(str(folder)),
        record_shapes=shapes,
        profile_memory=memory,
        experimental_config=level,
    )


def copy_ahead(
    batches: Iterable[Mapping[str, Tensor]], device: Device
) -> Iterator[Mapping[str, Tensor]]:
    """The batches on the device, each copied while the step before it computes.

    On an accelerator one batch is fetched and copied ahead, from pinned memory on a stream of
    its own; on a CPU the batches pass through as they are.
    """
    if device.kind == "cpu":
        yield from batches
        return
    backend = _backend(device)
    side = backend.Stream(device.torch)

    def send(batch: Mapping[str, Tensor]) -> dict[str, Tensor]:
        with backend.stream(side):
            return {
                name: (tensor if tensor.is_pinned() else tensor.pin_memory()).to(
                    device.torch, non_blocking=True
                )
                for name, tensor in batch.items()
            }

    waiting: Mapping[str, Tensor] | None = None
    for batch in batches:
        sent = send(batch)
        if waiting is not None:
            yield waiting
        waiting = _received(backend, side, sent, device)
    if waiting is not None:
        yield waiting


def _received(
    backend: ModuleType, side: torch.Stream, sent: Mapping[str, Tensor], device: Device
) -> Mapping[str, Tensor]:
    current = backend.current_stream(device.torch)
    current.wait_stream(side)
    for tensor in sent.values():
        # Without this the allocator may hand the memory to the next copy while a kernel of the
        # step still reads it.
        tensor.record_stream(current)
    return sent


def set_full_float32(device: Device, full: bool) -> None:
    """Whether float32 matmul and convolution compute in all 24 bits of the mantissa.

    Args:
        device: What the run computes on; a CPU has no shorter format and always computes in full.
        full: False allows TensorFloat-32 on CUDA and HF32 on an NPU (11 bits each). HF32 is on
            for convolutions unless somebody turns it off.
    """
    shorter = not full and device.kind != "cpu"
    torch.set_float32_matmul_precision("high" if shorter else "highest")
    if device.kind == "cuda":
        torch.backends.cudnn.allow_tf32 = shorter
    elif device.kind == "npu":
        npu = _backend(device)
        npu.matmul.allow_hf32 = shorter
        npu.conv.allow_hf32 = shorter


def set_deterministic(device: Device, deterministic: bool) -> None:
    """Whether the same inputs give the same bits, at some cost in speed.

    An operator without such an algorithm then raises and names itself. To be called before the
    first matmul and before torch.distributed starts: cuBLAS and HCCL read their variables once.
    """
    if deterministic and device.kind == "cuda":
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    if deterministic and device.kind == "npu":
        os.environ.setdefault("HCCL_DETERMINISTIC", "true")
    torch.use_deterministic_algorithms(deterministic)
    if device.kind == "cuda":
        # The search for the fastest algorithm may end differently in every process.
        torch.backends.cudnn.benchmark = not deterministic


def set_threads(intra_op: int | None = None, inter_op: int | None = None) -> None:
    """Set the CPU threads within one operator and between operators; None leaves them alone.

    Raises:
        UserError: More than this machine bears, or the inter-op pool of this process already runs
            with another size.
    """
    if intra_op is not None:
        torch.set_num_threads(machine.checked_count(intra_op, "threads", "threads.intra_op"))
    if inter_op is None or inter_op == torch.get_num_interop_threads():
        return
    try:
        torch.set_num_interop_threads(
            machine.checked_count(inter_op, "threads", "threads.inter_op")
        )
    except RuntimeError as error:
        raise UserError(
            f"the inter-op threads of this process are fixed at {torch.get_num_interop_threads()}, "
            f"and cannot be changed to {inter_op}",
            where="threads.inter_op",
            todo="torch takes this number once, before the first operator that runs in parallel. "
            "Start a new process for another number.",
        ) from error


def seed_everything(seed: int) -> None:
    """Seed Python, NumPy and torch on the CPU and on every accelerator."""
    random.seed(seed)
    numpy.random.seed(seed % 2**32)
    torch.manual_seed(seed)


def _backend(device: Device) -> ModuleType:
    return torch.get_device_module(device.kind)


def _best_kind() -> tuple[Kind, str]:
    nodes = npu_nodes()
    note = ""
    if importlib.util.find_spec(NPU_PACKAGE) is not None:
        fault = npu_fault()
        if fault is None:
            return "npu", ""
        if nodes:
            raise fault
    elif nodes:
        note = f"{nodes[0]} is there, but torch_npu is not installed"
    if torch.cuda.is_available():
        return "cuda", note
    return "cpu", note


def _checked_index(kind: Kind, asked: int | None, count: int) -> int:
    ranks = int(os.environ.get("LOCAL_WORLD_SIZE", "1"))
    several = ranks > 1
    if asked is not None and several:
        raise UserError(
            f"{ranks} ranks on this machine cannot share {kind}:{asked}",
            where="--device",
            todo=f"Write --device {kind}: each rank then uses the device of its local rank.",
        )
    index = asked if asked is not None else int(os.environ.get("LOCAL_RANK", "0"))
    if index >= count:
        have = f"{counted(count, f'{kind} device')} visible here"
        raise UserError(
            f"there is no {kind}:{index}; {have}, counted from 0",
            where="--device",
            todo=f"Start at most {counted(count, 'rank')} (torchrun --nproc-per-node {count})."
            if several
            else f"Write --device {kind}:N with N up to {count - 1}.",
        )
    return index


def _load_cuda() -> ModuleType:
    if torch.cuda.is_available() and torch.cuda.device_count() > 0:
        return torch.cuda
    if torch.version.cuda is None and torch.version.hip is None:
        what = f"torch {torch.__version__} is built without CUDA"
        todo = "Install a CUDA build of torch (https://pytorch.org/get-started/locally)"
    else:
        what = f"torch {torch.__version__} finds no CUDA device"
        hidden = os.environ.get("CUDA_VISIBLE_DEVICES")
        todo = (
            f"Check CUDA_VISIBLE_DEVICES, which is '{hidden}'"
            if hidden is not None
            else "Check that `nvidia-smi` lists a GPU and that the container was given it"
        )
    raise UserError(what, where="--device", todo=f"{todo}, or write --device cpu.")


def _load_npu() -> ModuleType:
    if importlib.util.find_spec(NPU_PACKAGE) is None:
        release = ".".join(torch.__version__.split(".")[:2])
        raise UserError(
            "an NPU needs the package torch_npu, which is not installed",
            where="--device",
            todo="Install CANN, then the torch_npu of this torch: "
            f"pip install 'torch-npu=={release}.*'. Or write --device cpu.",
        )
    version = npu_package_version()
    mismatch = npu_pairing_fault(torch.__version__, version) if version else None
    if mismatch is not None:
        raise mismatch
    try:
        importlib.import_module(NPU_PACKAGE)
    except Exception as error:
        # torch_npu raises bare Exception where CANN is incomplete, besides ImportError and OSError.
        raise _import_fault(error) from error
    backend = torch.get_device_module("npu")
    if backend.is_available() and backend.device_count() > 0:
        return backend
    raise _no_npu_fault()


def _import_fault(error: BaseException) -> UserError:
    reason = str(error).splitlines()[0]
    if CANN_VARIABLE not in os.environ:
        todo = (
            f"{CANN_VARIABLE} is not set, so CANN's libraries are not found: install CANN, then "
            "run `source /usr/local/Ascend/ascend-toolkit/set_env.sh`."
        )
    elif "libascend_hal" in reason:
        todo = "The NPU driver is missing: in a container, mount /usr/local/Ascend/driver."
    elif "undefined symbol" in reason:
        todo = (
            "Install the torch_npu of this torch, and a CANN release that it supports "
            "(https://gitcode.com/Ascend/pytorch has the table)."
        )
    else:
        todo = f"Check CANN in {os.environ[CANN_VARIABLE]}, and `jumar doctor`."
    return UserError(f"torch_npu cannot be loaded: {reason}", where="--device", todo=todo)


def _no_npu_fault() -> UserError:
    nodes = npu_nodes()
    if not nodes:
        return UserError(
            "torch_npu finds no NPU, and there is no /dev/davinci*",
            where="--device",
            todo="Check `npu-smi info`. A container needs --device /dev/davinci0 (1, 2, ...), "
            "/dev/davinci_manager, /dev/devmm_svm and /dev/hisi_hdc, and the driver mounted.",
        )
    visible = os.environ.get("ASCEND_RT_VISIBLE_DEVICES")
    return UserError(
        f"torch_npu finds no NPU, though {nodes[0]} is there",
        where="--device",
        todo=f"Check ASCEND_RT_VISIBLE_DEVICES, which is '{visible}'."
        if visible is not None
        else "Check `npu-smi info`, and that this user may open the device (group HwHiAiUser).",
    )
