"""Measure the effect of low precision on each op of a step, in one pass in float32.

Every op runs in float32 and again on operands rounded to the low precision. The difference between
the results is the error that the op would add. Multiplied by the gradient of the loss with respect
to the result, it is the change of the loss, to first order. Errors of different elements are
independent, so their squares are added up: over an op's elements, its calls, the ops of a type and
the layers (the criterion of arXiv 2505.13060, which then solves an integer program).
"""

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from jumar.precision.autocast_lists import (
    KEEPS_PARAMETERS,
    each_tensor,
    install_kernels,
    without_lists,
)
from jumar.precision.mixlist import SHARED_BY_KIND
from jumar.precision.oplist import listed_ops
from jumar.precision.overloads import find_overload
from jumar.precision.policy import PrecisionPolicy
from jumar.precision.recording.layers import Layers
from jumar.precision.recording.modules import tensors_in
from jumar.precision.settings import PrecisionSettings

_C: Any = torch._C  # Its stubs lack the functions used here.
_SMALLEST = {torch.float16: 2.0**-24, torch.bfloat16: 2.0**-133}


@dataclass(frozen=True, kw_only=True)
class OpEffect:
    """The effect of low precision on an op in a layer.

    Attributes:
        op: The aten overload.
        layer: The layer's path.
        calls: Number of calls.
        error: Norm of the error of its results, relative to their norm.
        loss_change: Change of the loss by that error, to first order.
        largest: Largest magnitude of its inputs and outputs.
        overflows: Number of elements of its results that are not finite in low precision.
        vanishing: Number of nonzero elements of its results that are zero in low precision.
        elements: Number of elements of its results.
    """

    op: str
    layer: str
    calls: int
    error: float
    loss_change: float
    largest: float
    overflows: int
    vanishing: int
    elements: int


class _Sums:
    """The measurements of an op in a layer, on the device until they are read."""

    def __init__(self) -> None:
        self.calls = self.elements = 0
        self.sums: dict[str, Tensor] = {}
        self.largest: Tensor | None = None

    def add(self, name: str, value: Tensor) -> None:
        self.sums[name] = self.sums[name] + value if name in self.sums else value

    @torch.no_grad()
    def add_change(self, error: Tensor, gradient: Tensor) -> None:
        """Add error times gradient; a hook of the tensor with this error."""
        self.add("change", (gradient.float() * error).square().sum())

    def update_largest(self, tensor: Tensor) -> None:
        if tensor.numel():
            peak = tensor.abs().amax().float()
            self.largest = peak if self.largest is None else torch.maximum(self.largest, peak)

    def read(self, op: str, layer: str) -> OpEffect:
        sums = {name: value.item() for name, value in self.sums.items()}
        size = sums.get("size", 0.0)
        return OpEffect(
            op=op,
            layer=layer,
            calls=self.calls,
            error=(sums.get("error", 0.0) / size) ** 0.5 if size else 0.0,
            loss_change=sums.get("change", 0.0) ** 0.5,
            largest=0.0 if self.largest is None else self.largest.item(),
            overflows=int(sums.get("overflows", 0)),
            vanishing=int(sums.get("vanishing", 0)),
            elements=self.elements,
        )


class MeasuringPolicy(PrecisionPolicy):
    """Runs forward passes in an autocast region with the kernels of an `Attribution`.

    Args:
        device_type: `cpu`, `cuda` or `npu`.
    """

    def __init__(self, *, device_type: str) -> None:
        super().__init__(PrecisionSettings(), device_type=device_type)
        self.device_type = device_type

    def forward(self) -> AbstractContextManager[object]:
        """See `PrecisionPolicy.forward`; no op computes in the region's dtype."""
        return torch.autocast(self.device_type, dtype=torch.bfloat16)


class Attribution:
    """Measures the ops of autocast regions within `measuring`.

    Args:
        device_type: `cpu`, `cuda` or `npu`.
        low: The low precision.
        modules: The modules by path.
    """

    def __init__(
        self, device_type: str, low: torch.dtype, modules: Mapping[str, nn.Module]
    ) -> None:
        self._device_type, self._low = device_type, low
        self._layers = Layers(modules)
        self._sums: dict[tuple[str, str], _Sums] = {}

    @contextmanager
    def measuring(self) -> Generator[None]:
        """Return a context in which a forward and a backward pass are measured, without op lists.

        The forward pass must run in an autocast region; it computes in float32.
        """
        kernels = {
            op: torch.library.fallthrough_kernel if op in SHARED_BY_KIND else self._kernel(op)
            for op in listed_ops()
        }
        lists = install_kernels(self._device_type, kernels)
        try:
            with self._layers.followed():
                yield
        finally:
            lists.close()

    def rows(self) -> list[OpEffect]:
        """Return the measurements in the order of the first calls, waiting for the device."""
        return [sums.read(op, layer) for (op, layer), sums in self._sums.items()]

    def _kernel(self, op: str) -> Callable[..., Any]:
        overload: Any = find_overload(op)
        is_random = torch.Tag.nondeterministic_seeded in overload.tags

        def kernel(*args: Any, **kwargs: Any) -> Any:
            with without_lists(self._device_type):
                if _C._current_graph_task_id() != -1:  # A backward pass runs within the region.
                    return overload(*args, **kwargs)
                args = tuple(each_tensor(_float32, arg) for arg in args)
                with torch.no_grad():
                    low = None if is_random else overload(*self._lowered(op, args), **kwargs)
                result = overload(*args, **kwargs)
                self._measure(op, args, result, result if low is None else low)
                return result

        return kernel

    def _lowered(self, op: str, args: Sequence[Any]) -> list[Any]:
        if op not in KEEPS_PARAMETERS:
            return [each_tensor(self._rounded, arg) for arg in args]
        # The op updates its running statistics in place.
        return [self._rounded(args[0]), *(each_tensor(Tensor.clone, arg) for arg in args[1:])]

    def _rounded(self, tensor: Tensor) -> Tensor:
        return tensor.to(self._low).float() if tensor.dtype == torch.float32 else tensor

    def _measure(self, op: str, args: Sequence[Any], result: Any, low: Any) -> None:
        layer = self._layers.stack[-1] if self._layers.stack else ""
        sums = self._sums.setdefault((op, layer), _Sums())
        sums.calls += 1
        pairs = list(zip(_floats(result), _floats(low), strict=True))
        with torch.no_grad():
            for tensor in (*_floats(args), *(exact for exact, _ in pairs)):
                sums.update_largest(tensor.detach())
        for exact, low_result in pairs:
            with torch.no_grad():
                error = self._rounded(low_result) - exact
                is_infinite = ~torch.isfinite(error)
                error = error.masked_fill(is_infinite, 0.0)
                sums.add("error", error.square().sum())
                sums.add("size", exact.square().sum())
                sums.add("overflows", (is_infinite & torch.isfinite(exact)).sum())
                small = (exact != 0) & (exact.abs() < _SMALLEST[self._low])
                sums.add("vanishing", small.sum())
            sums.elements += exact.numel()
            if exact.requires_grad:
                exact.register_hook(partial(sums.add_change, error))


def _float32(tensor: Tensor) -> Tensor:
    return tensor.float() if tensor.dtype in (torch.float16, torch.bfloat16) else tensor


def _floats(value: Any) -> list[Tensor]:
    return [tensor for _, tensor in tensors_in(value) if tensor.dtype == torch.float32]
