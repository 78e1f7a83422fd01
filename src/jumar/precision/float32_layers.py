"""Keep all ops of selected layers in float32, regardless of op lists."""

from collections.abc import Callable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils import _pytree

_LOW = (torch.float16, torch.bfloat16)


def keep_in_float32(
    modules: Mapping[str, nn.Module], patterns: Sequence[str], device_type: str
) -> list[str]:
    """Make layers compute in float32: cast their inputs, and disable autocast within them.

    Args:
        modules: The layers by path; changed in place.
        patterns: Paths or globs of layers.
        device_type: `cpu`, `cuda` or `npu`.

    Returns:
        The patterns that match no layer.
    """
    unmatched: list[str] = []
    for pattern in patterns:
        matched = [module for path, module in modules.items() if fnmatchcase(path, pattern)]
        for module in matched:
            if not isinstance(module.forward, _InFloat32):
                module.forward = _InFloat32(module.forward, device_type)
        if not matched:
            unmatched.append(pattern)
    return unmatched


class _InFloat32:
    """A forward function that runs in float32 without autocast."""

    def __init__(self, forward: Callable[..., Any], device_type: str) -> None:
        self._forward, self._device_type = forward, device_type

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        args, kwargs = _pytree.tree_map(_float32, (args, kwargs))
        with torch.autocast(self._device_type, enabled=False):
            return self._forward(*args, **kwargs)


def _float32(value: Any) -> Any:
    return value.float() if isinstance(value, Tensor) and value.dtype in _LOW else value
