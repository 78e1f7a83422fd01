"""Event categories of all torch.profiler releases and vendors, mapped to Kineto's current ones."""

import re
from functools import lru_cache
from typing import Final

OP_CATEGORY: Final = "cpu_op"
DEVICE_CATEGORIES: Final = ("kernel", "gpu_memcpy", "gpu_memset")
"""Work on a device."""

RUNTIME_CATEGORIES: Final = ("cuda_runtime", "cuda_driver")
"""Calls that launch work on a device."""

_CURRENT_CATEGORIES: Final = tuple(
    (re.compile(pattern), name)
    for pattern, name in (
        ("operator", OP_CATEGORY),
        # MTIA's device runs its kernels on core processors (CCP); HPU is Gaudi.
        ("(concurrent_|rocm_)?kernel(_dispatch)?|mtia_ccp_events|hpu_op", DEVICE_CATEGORIES[0]),
        ("(gpu_|rocm_)?(memcpy|memory_copy)", DEVICE_CATEGORIES[1]),
        ("(gpu_)?memset", DEVICE_CATEGORIES[2]),
        (r"(\w+_)?runtime(_api)?|(rocm_)?(hip|hsa)(_runtime)?_api", RUNTIME_CATEGORIES[0]),
        (r"\w+_driver", RUNTIME_CATEGORIES[1]),
        ("python", "python_function"),
        ("user[_ ]annotation", "user_annotation"),
    )
)
"""PyTorch 1.8 to 1.10 wrote `Operator`, `Kernel`, `Memcpy`, `Memset` and `Runtime`."""

_DEVICE_PROCESSES: Final = (
    (re.compile(r"GPU ?\d{1,4}"), DEVICE_CATEGORIES[0]),
    (re.compile("COPY"), DEVICE_CATEGORIES[1]),
)


@lru_cache(maxsize=4096)
def category_of(category: str) -> str:
    """Kineto's current name of a category; an unknown one is returned unchanged."""
    lowered = category.lower()
    return next(
        (name for pattern, name in _CURRENT_CATEGORIES if pattern.fullmatch(lowered)), category
    )


def device_category(process: str) -> str:
    """The category of slices without one, by their process's name in rocprof; empty if unknown."""
    return next((name for pattern, name in _DEVICE_PROCESSES if pattern.fullmatch(process)), "")
