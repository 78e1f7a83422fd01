"""Everything specific to Ascend NPUs. Only this file and `npu_package` refer to torch_npu.

Functions that exist only for Ascend are called on a variable named `npu`, and its profiler's on a
variable named `profiler`, so that a test can find these calls in the source and check that the
real package has the functions.
"""

import importlib
import importlib.util
import os
from dataclasses import dataclass
from types import ModuleType
from typing import ClassVar

import torch

from jumar.devices.accelerator import Accelerator
from jumar.devices.asking import Names
from jumar.devices.contract import Recorder, Recording
from jumar.devices.load import LoadMeter
from jumar.devices.npu_load import NpuMeter
from jumar.devices.npu_package import (
    CANN_VARIABLE,
    NPU_PACKAGE,
    npu_nodes,
    npu_package_version,
    npu_pairing_fault,
)
from jumar.ground.errors import UserError
from jumar.ground.text import first_line


@dataclass(frozen=True, kw_only=True)
class Npu(Accelerator):
    """An Ascend NPU."""

    names: ClassVar = Names(
        kind="npu",
        others=("ascend", "atlas", "davinci", "huawei", "privateuseone"),
        counted=("npu",),
    )
    dispatch_key: ClassVar = "PrivateUse1"
    autocast_key: ClassVar = "AutocastPrivateUse1"
    distributed_backend: ClassVar = "hccl"
    # Both come from CANN, below torch_npu's allocator: its error code, and its runtime's return
    # value, which is an arbitrary number without the text before it.
    out_of_memory: ClassVar = r"\bEL0004\b|(?:result = |error code is )207001\b"
    has_float64: ClassVar = False
    fallback_message: ClassVar = (
        r"The operator '([^']+)' is not currently supported on the NPU backend and will fall back"
    )
    fallback_remedy: ClassVar = "TORCH_NPU_FALLBACK_CPU_DISABLE=1 makes that an error"
    profiler_writes_files: ClassVar = True

    @classmethod
    def why_passed_over(cls) -> str | None:
        """Fail if NPUs are visible and torch_npu is installed but broken, because `auto` would
        otherwise silently use the CPU.
        """
        nodes = npu_nodes()
        if importlib.util.find_spec(NPU_PACKAGE) is None:
            return f"{nodes[0]} exists, but torch_npu is not installed" if nodes else ""
        fault = npu_fault()
        if fault is not None and nodes:
            raise fault
        return None if fault is None else ""

    @classmethod
    def load(cls) -> ModuleType:
        """`torch.npu`, which torch_npu registers, if there is an NPU."""
        if importlib.util.find_spec(NPU_PACKAGE) is None:
            release = ".".join(torch.__version__.split(".")[:2])
            raise UserError(
                "an NPU needs the package torch_npu, which is not installed",
                where="--device",
                todo="Install CANN, then the torch_npu for this torch: "
                f"pip install 'torch-npu=={release}.*'. Or write --device cpu.",
            )
        version = npu_package_version()
        mismatch = npu_pairing_fault(torch.__version__, version) if version else None
        if mismatch is not None:
            raise mismatch
        try:
            importlib.import_module(NPU_PACKAGE)
        except Exception as error:
            # Besides ImportError and OSError, torch_npu raises a bare Exception if CANN is
            # incomplete.
            raise _import_fault(error) from error
        backend = torch.get_device_module(cls.names.kind)
        if backend.is_available() and backend.device_count() > 0:
            return backend
        raise _no_npu_fault()

    def load_meter(self) -> LoadMeter:
        """A meter that queries npu-smi."""
        return NpuMeter(self.index)

    def set_full_float32(self, full: bool) -> None:
        """Set whether matmul and convolution use full precision; otherwise they use HF32, the
        default for convolutions.
        """
        super().set_full_float32(full)
        npu = self._backend()
        npu.matmul.allow_hf32 = not full
        npu.conv.allow_hf32 = not full

    def set_deterministic(self, deterministic: bool) -> None:
        """Set whether the same inputs give the same bits, also in collectives."""
        if deterministic:
            os.environ.setdefault("HCCL_DETERMINISTIC", "true")
        super().set_deterministic(deterministic)

    def create_recorder(self, wanted: Recording) -> Recorder:
        """torch_npu's profiler, which writes files when it stops."""
        profiler = importlib.import_module(f"{NPU_PACKAGE}.profiler")
        # Level 0, the default, records neither types nor shapes nor cores.
        config = profiler._ExperimentalConfig(
            profiler_level=profiler.ProfilerLevel.Level1,
            aic_metrics=profiler.AiCMetrics.PipeUtilization,
            export_type=[profiler.ExportType.Text, profiler.ExportType.Db],
        )
        return profiler.profile(
            activities=profiler.supported_activities(),
            schedule=profiler.schedule(
                wait=0, warmup=wanted.warm_up, active=wanted.steps, repeat=1
            ),
            on_trace_ready=profiler.tensorboard_trace_handler(str(wanted.folder)),
            record_shapes=wanted.shapes,
            profile_memory=wanted.memory,
            experimental_config=config,
        )


def npu_fault() -> UserError | None:
    """Why no NPU can be opened here, or None if one can."""
    try:
        Npu.load()
    except UserError as error:
        return error
    return None


def _import_fault(error: BaseException) -> UserError:
    reason = first_line(str(error), type(error).__name__)
    if CANN_VARIABLE not in os.environ:
        todo = (
            f"{CANN_VARIABLE} is not set, so CANN's libraries are not found: install CANN, then "
            "run `source /usr/local/Ascend/ascend-toolkit/set_env.sh`."
        )
    elif "libascend_hal" in reason:
        todo = "The NPU driver is missing: in a container, mount /usr/local/Ascend/driver."
    elif "undefined symbol" in reason:
        todo = (
            "Install the torch_npu for this torch, and a CANN release that it supports "
            "(https://gitcode.com/Ascend/pytorch has the table)."
        )
    else:
        todo = f"Check CANN in {os.environ[CANN_VARIABLE]}, and run `jumar doctor`."
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
        f"torch_npu finds no NPU, although {nodes[0]} exists",
        where="--device",
        todo=f"Check ASCEND_RT_VISIBLE_DEVICES, which is '{visible}'."
        if visible is not None
        else "Check `npu-smi info`, and that this user may open the device (group HwHiAiUser).",
    )
