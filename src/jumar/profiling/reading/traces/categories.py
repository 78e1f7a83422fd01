"""Categories of torch.profiler's events over its releases and vendors, in current terms."""

import re
from typing import Final

OP: Final = "cpu_op"
DEVICE: Final = ("kernel", "gpu_memcpy", "gpu_memset")
"""What ran on a device."""

RUNTIME: Final = ("cuda_runtime", "cuda_driver")
"""Calls that launch something on a device."""

_RULES: Final = tuple(
    (re.compile(pattern), name)
    for pattern, name in (
        ("operator", OP),
        # MTIA's device runs its kernels on core processors (CCP); HPU is Gaudi.
        ("(concurrent_|rocm_)?kernel(_dispatch)?|mtia_ccp_events|hpu_op", DEVICE[0]),
        ("(gpu_|rocm_)?(memcpy|memory_copy)", DEVICE[1]),
        ("(gpu_)?memset", DEVICE[2]),
        (r"(\w+_)?runtime(_api)?|(rocm_)?(hip|hsa)(_runtime)?_api", RUNTIME[0]),
        (r"\w+_driver", RUNTIME[1]),
        ("python", "python_function"),
        ("user[_ ]annotation", "user_annotation"),
    )
)
"""PyTorch 1.8 to 1.10 wrote `Operator`, `Kernel`, `Memcpy`, `Memset` and `Runtime`."""

_PROCESSES: Final = ((re.compile(r"GPU ?\d{1,4}"), DEVICE[0]), (re.compile("COPY"), DEVICE[1]))


def category_of(written: str) -> str:
    """A category in Kineto's current terms; an unknown one is unchanged."""
    plain = written.lower()
    return next((name for pattern, name in _RULES if pattern.fullmatch(plain)), written)


def device_category(process: str) -> str:
    """What slices without a category are, by process, as rocprof names it; or empty."""
    return next((name for pattern, name in _PROCESSES if pattern.fullmatch(process)), "")
