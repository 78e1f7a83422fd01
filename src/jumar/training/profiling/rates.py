"""Measuring the peak rates of this machine's CPU for the roofline of a CPU capture."""

import time
from collections.abc import Callable
from typing import Any, Final

import torch
from torch import Tensor

from jumar.ground.machine import processor_name

_SIDE: Final = 768
"""Side of the square matrices: 0.9 billion operations, tens of milliseconds on one core."""
_IN_CACHE: Final = 1 << 13
"""Elements of a vector that fits into the L1 cache."""
_IN_MEMORY: Final = 1 << 24
"""Elements of a 64 MB vector, too large for any cache."""
_ROUNDS: Final = 7


def cpu_rates() -> dict[str, Any]:
    """The rates of this machine, in the format of a `--chip` entry.

    Each is the best of seven measurements, with the number of threads that training uses. This
    takes half a second on an idle machine.
    """
    threads = torch.get_num_threads()
    name = " ".join(processor_name().split())[:80]
    with torch.no_grad():
        cube = {
            "FLOAT": _matrix(torch.float32),
            "BF16": _matrix(torch.bfloat16),
        }
        vector, launch = _vector()
        memory = _memory()
    return {
        "name": name,
        "matches": [name.lower()],
        "cube_tflops": {dtype: round(rate / 1e12, 4) for dtype, rate in cube.items()},
        "vector_tflops": round(vector / 1e12, 4),
        "hbm_gb_s": round(memory / 1e9, 2),
        "cube_cores": threads,
        "vector_cores": threads,
        "launch_us": round(launch * 1e6, 2),
        "estimate": False,
        "source": f"measured after the recording with {threads} threads: products of "
        f"{_SIDE}x{_SIDE} matrices, additions of {_IN_CACHE} numbers and of 1, copies of "
        f"{_IN_MEMORY * 4 >> 20} MB",
    }


def _best(operation: Callable[[], object], repeats: int = 1) -> float:
    """The seconds per call in the fastest of a few rounds.

    Wall-clock time is used because not every call keeps all threads busy, so that CPU time divided
    by the number of threads would overstate the rate. The fastest round is the least disturbed.
    """
    operation()
    best = float("inf")
    for _ in range(_ROUNDS):
        began = time.perf_counter()
        for _ in range(repeats):
            operation()
        best = min(best, (time.perf_counter() - began) / repeats)
    return max(best, 1e-9)


def _matrix(dtype: torch.dtype) -> float:
    first = torch.ones(_SIDE, _SIDE, dtype=dtype)
    result = torch.empty_like(first)
    return 2 * _SIDE**3 / _best(lambda: torch.mm(first, first, out=result))


def _vector() -> tuple[float, float]:
    """Additions per second in cache, and the shortest duration of an op."""

    def seconds_to_add(values: Tensor) -> float:
        return _best(lambda: values.add_(1.0), repeats=200)

    overhead = seconds_to_add(torch.ones(1))
    # PyTorch uses one thread for so few elements.
    one_thread = _IN_CACHE / max(seconds_to_add(torch.ones(_IN_CACHE)) - overhead, 1e-9)
    return one_thread * torch.get_num_threads(), overhead


def _memory() -> float:
    source = torch.ones(_IN_MEMORY)
    target = torch.empty_like(source)
    # Each element is read and written.
    return 2 * 4 * _IN_MEMORY / _best(lambda: target.copy_(source))
