"""Everything specific to GPUs through CUDA or ROCm."""

import os
from dataclasses import dataclass
from types import ModuleType
from typing import ClassVar

import torch

from jumar.devices.accelerator import Accelerator
from jumar.devices.asking import Names
from jumar.devices.cuda_load import cuda_meter
from jumar.devices.load import LoadMeter
from jumar.ground.errors import UserError


@dataclass(frozen=True, kw_only=True)
class Cuda(Accelerator):
    """A GPU."""

    names: ClassVar = Names(
        kind="cuda",
        others=("gpu", "nvidia", "geforce", "rtx", "rocm", "hip", "amd"),
        counted=("cuda", "gpu"),
    )
    dispatch_key: ClassVar = "CUDA"
    autocast_key: ClassVar = "AutocastCUDA"
    distributed_backend: ClassVar = "nccl"
    out_of_memory: ClassVar = r"CU(?:BLAS|DNN)_STATUS_ALLOC_FAILED"
    profiler_activities: ClassVar = (torch.profiler.ProfilerActivity.CUDA,)

    @property
    def group_device(self) -> "torch.device":
        """The device itself, because NCCL must know it in advance."""
        return self.torch

    @classmethod
    def why_passed_over(cls) -> str | None:
        """An empty text without a GPU, because its absence is not worth a note."""
        return None if torch.cuda.is_available() else ""

    @classmethod
    def load(cls) -> ModuleType:
        """`torch.cuda`, if there is a GPU."""
        if torch.cuda.is_available() and torch.cuda.device_count() > 0:
            return torch.cuda
        if torch.version.cuda is None and torch.version.hip is None:
            problem = f"torch {torch.__version__} was built without CUDA"
            todo = "Install a CUDA build of torch (https://pytorch.org/get-started/locally)"
        else:
            problem = f"torch {torch.__version__} finds no CUDA device"
            hidden = os.environ.get("CUDA_VISIBLE_DEVICES")
            todo = (
                f"Check CUDA_VISIBLE_DEVICES, which is '{hidden}'"
                if hidden is not None
                else "Check that `nvidia-smi` lists a GPU and that the container has access to it"
            )
        raise UserError(problem, where="--device", todo=f"{todo}, or write --device cpu.")

    def load_meter(self) -> LoadMeter:
        """A meter that uses the driver's library if pynvml is installed, otherwise nvidia-smi."""
        return cuda_meter(self._backend(), self.index)

    def set_full_float32(self, full: bool) -> None:
        """Set whether matmul and cuDNN use full precision; otherwise TensorFloat-32."""
        super().set_full_float32(full)
        torch.backends.cudnn.allow_tf32 = not full

    def set_deterministic(self, deterministic: bool) -> None:
        """Set whether the same inputs give the same bits, also in cuBLAS and cuDNN."""
        if deterministic:
            os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
        super().set_deterministic(deterministic)
        # The search for the fastest algorithm may choose another one in every process.
        torch.backends.cudnn.benchmark = not deterministic
