"""What torch tells about itself and this machine, for an environment in which it may be missing.

Each function imports torch when it is called, and raises ImportError without it.
"""

import importlib

from jumar.ground.errors import UserError
from jumar.ground.text import first_line

_INSTALL = 'pip install "jumar[train]"'


def torch_version() -> str:
    """The version of torch, with its build, such as `2.13.0+cpu`."""
    import torch

    return torch.__version__


def torch_fault() -> UserError:
    """Why torch has no version."""
    try:
        importlib.import_module("torch")
    except ModuleNotFoundError:
        return UserError(
            "torch is not installed, so this machine cannot train or apply networks", todo=_INSTALL
        )
    except Exception as error:
        reason = first_line(str(error), type(error).__name__)
        return UserError(f"torch cannot be imported: {reason}", todo=f"Install it anew: {_INSTALL}")
    return UserError("torch has no version", todo=f"Install it anew: {_INSTALL}")


def cuda_version() -> str | None:
    """The version of CUDA or ROCm that torch was built with."""
    import torch

    return torch.version.cuda or torch.version.hip


def torch_threads() -> tuple[int, int]:
    """The number of threads within one operator, and between operators."""
    import torch

    return torch.get_num_threads(), torch.get_num_interop_threads()


def accelerates_bf16() -> bool:
    """Whether the processor has bfloat16 instructions."""
    from jumar.devices.cpu import Cpu

    return Cpu.accelerates_bf16()


def npu_fault() -> UserError | None:
    """Why no NPU can be opened here, or None if one can."""
    from jumar.devices import npu

    return npu.npu_fault()
