"""Which operators hand values of a device to the host."""

from collections.abc import Callable
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode


class ReadBacks(TorchDispatchMode):
    """Notes every operator that hands values of a device's tensor to the host, and when.

    Args:
        kind: The device's type.
        step: The step that is being made.
    """

    def __init__(self, kind: str, step: Callable[[], int]) -> None:
        super().__init__()
        self._kind, self._step = kind, step
        self.seen: list[tuple[int, str]] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        name = str(func)
        tensors = [value for value in args if isinstance(value, torch.Tensor)]
        reads = any(tensor.device.type == self._kind for tensor in tensors) and (
            "_local_scalar_dense" in name
            or "is_nonzero" in name
            or "aten.equal" in name
            or (isinstance(result, torch.Tensor) and result.device.type == "cpu")
        )
        if reads:
            self.seen.append((self._step(), name))
        return result
