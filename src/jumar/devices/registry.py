"""The supported kinds of device, and opening the requested one."""

import re

import torch

from jumar.devices.asking import AUTO, parse_device
from jumar.devices.contract import Device
from jumar.devices.cpu import Cpu
from jumar.devices.cuda import Cuda
from jumar.devices.npu import Npu

_KINDS: dict[str, type[Device]] = {}
"""By name; `auto` selects the last one that is present."""

_OUT_OF_MEMORY = (
    r"out of memory|"
    # Sizes beyond 63 bits, a worker's MemoryError as repeated by the loader, and shared memory.
    r"Storage size calculation overflowed|numel: integer multiplication overflow|"
    r"Unable to allocate .* for an array|Caught \w*MemoryError|Cannot allocate memory"
)
_TOO_LARGE_FOR_NUMPY = re.compile("array is too big|Maximum allowed dimension exceeded")


def register(kind: type[Device]) -> None:
    """Register a kind for `--device`; `auto` prefers it to kinds registered earlier."""
    _KINDS[kind.names.kind] = kind


for _kind in (Cpu, Cuda, Npu):
    register(_kind)


def device_kind(name: str) -> type[Device]:
    """The class for a kind of device, whether or not one is present.

    Args:
        name: torch's device type.

    Raises:
        ValueError: The kind is not supported.
    """
    if name not in _KINDS:
        raise ValueError(f"device type must be one of {', '.join(_KINDS)}, not '{name}'")
    return _KINDS[name]


def open_device(request: str) -> Device:
    """Find and select the requested device, never a substitute.

    `auto` selects an NPU, otherwise a GPU, otherwise the CPU. If NPUs are visible and torch_npu is
    installed but broken, it fails instead of silently using the CPU.

    Args:
        request: `auto`, `cpu`, `cuda`, `cuda:N`, `npu` or `npu:N`. Without a number, a torchrun
            process uses the device with its local rank.

    Raises:
        UserError: The device is not available; the message says what to install or check.
    """
    name, index = parse_device(request, [kind.names for kind in _KINDS.values()])
    if name != AUTO:
        return _KINDS[name].open(index)
    note = ""
    for kind in reversed(_KINDS.values()):
        reason = kind.why_passed_over()
        if reason is None:
            return kind.open(None, note)
        note = note or reason
    raise AssertionError("there is always a CPU")


def list_devices() -> list[Device]:
    """Every accelerator that can be opened, then the CPU. Imports torch_npu if installed."""
    return [device for kind in reversed(_KINDS.values()) for device in kind.visible()]


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an error means that memory ran out, on any device.

    A CPU, older releases of torch_npu and CANN itself raise a plain RuntimeError.
    """
    if isinstance(error, (torch.OutOfMemoryError, MemoryError)):
        return True
    if isinstance(error, ValueError):
        return bool(_TOO_LARGE_FOR_NUMPY.search(str(error)))
    pattern = "|".join([_OUT_OF_MEMORY, *(kind.out_of_memory for kind in _KINDS.values())])
    return isinstance(error, RuntimeError) and bool(re.search(pattern, str(error)))
