"""The load of a GPU, from the driver's library through torch, or from nvidia-smi."""

from collections.abc import Callable
from types import ModuleType

from jumar.devices.load import DeviceLoad, LoadMeter, UnreadableLoadError, number_in, output_of
from jumar.ground.text import first_line

_FIELDS = ("utilization.gpu", "memory.used", "memory.total", "power.draw", "temperature.gpu")
_MIB = 1 << 20


class DriverMeter:
    """Queries the driver's library, which needs the package pynvml (amdsmi for ROCm).

    Args:
        backend: `torch.cuda`.
        index: Number of the GPU among the visible ones.
    """

    def __init__(self, backend: ModuleType, index: int) -> None:
        self._backend = backend
        self._index = index

    def read(self) -> DeviceLoad:
        """See `LoadMeter.read`."""
        backend, index = self._backend, self._index
        free, total = backend.mem_get_info(index)
        milliwatts = _number(lambda: backend.power_draw(index))
        return DeviceLoad(
            busy_percent=_number(lambda: backend.utilization(index)),
            memory_used_bytes=total - free,
            memory_total_bytes=total,
            power_w=None if milliwatts is None else milliwatts / 1000,
            temperature_c=_number(lambda: backend.temperature(index)),
        )


class NvidiaSmiMeter:
    """Queries nvidia-smi.

    Args:
        identity: The UUID of the GPU, `GPU-...`, independent of visible devices.
    """

    def __init__(self, identity: str) -> None:
        self._command = (
            "nvidia-smi",
            f"--id={identity}",
            f"--query-gpu={','.join(_FIELDS)}",
            "--format=csv,noheader,nounits",
        )

    def read(self) -> DeviceLoad:
        """See `LoadMeter.read`."""
        return parse_nvidia_smi(output_of(self._command))


def cuda_meter(backend: ModuleType, index: int) -> LoadMeter:
    """The cheapest meter that works for a GPU.

    Args:
        backend: `torch.cuda`.
        index: Number of the GPU among the visible ones.
    """
    try:
        backend.utilization(index)
    except Exception:
        # ModuleNotFoundError without pynvml; drivers in virtual machines raise other errors.
        identity = getattr(backend.get_device_properties(index), "uuid", None)
        return NvidiaSmiMeter(str(index) if identity is None else f"GPU-{identity}")
    return DriverMeter(backend, index)


def parse_nvidia_smi(text: str) -> DeviceLoad:
    """Parse a line of CSV with the fields that `NvidiaSmiMeter` queries.

    Raises:
        UnreadableLoadError: The text has no such line.
    """
    lines = [line for line in text.splitlines() if line.count(",") == len(_FIELDS) - 1]
    if not lines:
        raise UnreadableLoadError(f"nvidia-smi printed no reading: {first_line(text, 'nothing')}")
    busy, used, total, power, temperature = map(number_in, lines[0].split(","))
    return DeviceLoad(
        busy_percent=busy,
        memory_used_bytes=None if used is None else used * _MIB,
        memory_total_bytes=None if total is None else total * _MIB,
        power_w=power,
        temperature_c=temperature,
    )


def _number(query: Callable[[], float]) -> float | None:
    """The result of a query; None if it is unavailable, such as the power of a GPU partition."""
    try:
        return float(query())
    except Exception:
        return None
