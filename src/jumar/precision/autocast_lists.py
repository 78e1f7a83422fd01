"""Op lists as kernels on PyTorch's autocast dispatch key.

If the list differs from torch's autocast on a device, a Python kernel is registered for the aten
overload on that device's autocast key. All other overloads use torch's kernel, with its cache of
cast weights. A Python kernel casts, then calls the operator with the autocast key excluded.
torch.compile traces the casts into the graph.

Registration is process-wide: installing a list replaces the previous one.
"""

import sys
import threading
import warnings
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import Any

import torch
from torch._C import DispatchKey, DispatchKeySet

from jumar.devices.registry import device_kind
from jumar.precision.oplist import (
    Treatment,
    native_treatment,
    same_effect,
)
from jumar.precision.overloads import find_overload

_Cast = Callable[[torch.Tensor], torch.Tensor]

KEEPS_PARAMETERS = {
    "batch_norm",
    "native_batch_norm",
    "cudnn_batch_norm",
    "_batch_norm_impl_index",
    "instance_norm",
}
"""Ops with input, scale, shift, running mean and running variance in this order. The statistics
are never cast: they are updated in place, and an update of a cast copy would be lost. Scale and
shift are not lowered, because the kernels accept a low input with fp32 parameters."""

_LOW_FLOATS = (torch.float16, torch.bfloat16)
_FLOATS = (torch.float32, *_LOW_FLOATS)

_lock = threading.RLock()


class InstalledLists:
    """The op lists installed for one device type, until `close`."""

    def __init__(self, device_type: str, registered: Mapping[str, Treatment]) -> None:
        self.device_type = device_type
        self.registered = dict(registered)
        """The ops with a kernel of jumar; all others use torch's."""
        self._library: torch.library.Library | None = torch.library.Library("aten", "IMPL")

    @property
    def closed(self) -> bool:
        """Whether torch's kernels were restored, by `close` or by another `install`."""
        return self._library is None

    def close(self) -> None:
        """Restore torch's kernels; does nothing if called again."""
        with _lock:
            if self._library is None:
                return
            self._library._destroy()
            self._library = None
            if self in _in_force:
                _in_force.remove(self)
            _forget_compiled()

    def _register(self, op: str, kernel: Any) -> None:
        assert self._library is not None
        self._library.impl(op, kernel, device_kind(self.device_type).autocast_key)


_in_force: list[InstalledLists] = []
"""The installed lists: at most one, because registration is process-wide."""


def install(device_type: str, treatments: Mapping[str, Treatment]) -> InstalledLists:
    """Apply treatments in every autocast region on a device type.

    Args:
        device_type: `cpu`, `cuda` or `npu`; the machine does not need such a device.
        treatments: The treatment of each aten overload, from `oplist.treatments`.

    Returns:
        The installed lists, whose `close` restores torch's. Previously installed lists are closed.
    """
    with _lock:
        for earlier in tuple(_in_force):
            earlier.close()
        changed = {
            op: treatment
            for op, treatment in treatments.items()
            if not same_effect(op, treatment, native_treatment(device_type, op))
        }
        kernels = {
            op: kernel_for(op, op_treatment, device_type) for op, op_treatment in changed.items()
        }
        return _install(InstalledLists(device_type, changed), kernels)


def install_kernels(device_type: str, kernels: Mapping[str, Any]) -> InstalledLists:
    """Run custom kernels in every autocast region on a device type, in place of op lists.

    Args:
        device_type: `cpu`, `cuda` or `npu`.
        kernels: A kernel for each aten overload, which calls the op in `without_lists`.

    Returns:
        See `install`.
    """
    with _lock:
        for earlier in tuple(_in_force):
            earlier.close()
        return _install(InstalledLists(device_type, {}), kernels)


def without_lists(device_type: str) -> AbstractContextManager[object]:
    """Return a context in which op lists do not apply; a kernel calls its op in it."""
    return torch._C._ExcludeDispatchKeyGuard(_autocast_keys(device_type))


def _install(lists: InstalledLists, kernels: Mapping[str, Any]) -> InstalledLists:
    with warnings.catch_warnings():
        # torch warns once per process that one of its kernels is overridden, which is intended.
        warnings.filterwarnings("ignore", message=r"(?s).*verriding a previously registered kernel")
        for op, kernel in kernels.items():
            lists._register(op, kernel)
    _in_force.append(lists)
    _forget_compiled()
    return lists


def installed() -> InstalledLists | None:
    """Return the installed lists, or None."""
    return _in_force[0] if _in_force else None


def kernel_for(op: str, treatment: Treatment, device_type: str) -> Any:
    """Return the autocast kernel of an op, which casts its tensors as the treatment requires."""
    if treatment is Treatment.FOLLOW:
        return torch.library.fallthrough_kernel
    overload = find_overload(op)
    assert overload is not None
    keys = _autocast_keys(device_type)
    if treatment is Treatment.WIDEST:
        return _widest_kernel(overload, device_type, keys)
    cast_in, cast_out = _casts(treatment, device_type)
    positions = _tensor_positions(overload)
    if op in KEEPS_PARAMETERS:
        positions = positions[:3] if treatment is Treatment.FP32 else positions[:1]
    return _cast_kernel(overload, keys, positions, cast_in, cast_out)


def _autocast_keys(device_type: str) -> DispatchKeySet:
    return DispatchKeySet(getattr(DispatchKey, device_kind(device_type).autocast_key))


def _tensor_positions(overload: torch._ops.OpOverload) -> tuple[int, ...]:
    """Return the positions of the arguments that may be or contain tensors."""
    arguments: Any = overload._schema.arguments
    return tuple(
        position for position, argument in enumerate(arguments) if "Tensor" in str(argument.type)
    )


def _cast_kernel(
    overload: Any,
    keys: DispatchKeySet,
    positions: tuple[int, ...],
    cast_in: _Cast,
    cast_out: _Cast | None,
) -> Callable[..., Any]:
    exclude = torch._C._ExcludeDispatchKeyGuard

    def kernel(*args: Any, **kwargs: Any) -> Any:
        values = list(args)
        count = len(values)
        with exclude(keys):
            for position in positions:
                if position < count:
                    values[position] = each_tensor(cast_in, values[position])
            result = overload(*values, **kwargs)
            return result if cast_out is None else each_tensor(cast_out, result)

    return kernel


def _widest_kernel(overload: Any, device_type: str, keys: DispatchKeySet) -> Callable[..., Any]:
    exclude = torch._C._ExcludeDispatchKeyGuard

    def kernel(*args: Any, **kwargs: Any) -> Any:
        dtypes: set[torch.dtype] = set()

        def note(tensor: torch.Tensor) -> torch.Tensor:
            if tensor.device.type == device_type and tensor.dtype in _FLOATS:
                dtypes.add(tensor.dtype)
            return tensor

        for arg in args:
            each_tensor(note, arg)
        with exclude(keys):
            if len(dtypes) < 2:
                return overload(*args, **kwargs)
            cast = _to_fp32(device_type)
            return overload(*[each_tensor(cast, arg) for arg in args], **kwargs)

    return kernel


def each_tensor(cast: _Cast, value: Any) -> Any:
    """Apply a cast to a tensor, or to the tensors in a list or tuple; return other values as is."""
    if isinstance(value, torch.Tensor):
        return cast(value)
    if isinstance(value, (list, tuple)):
        items: list[Any] = [each_tensor(cast, item) for item in value]
        return items if isinstance(value, list) else tuple(items)
    return value


def _casts(treatment: Treatment, device_type: str) -> tuple[_Cast, _Cast | None]:
    """Return the casts of an op's inputs and of its outputs."""
    to_fp32, to_low = _to_fp32(device_type), _to_low(device_type)
    through_low = _through_low(device_type)
    rounded = _only_floats(_through_half, device_type)
    casts: dict[Treatment, tuple[_Cast, _Cast | None]] = {
        Treatment.FP32: (to_fp32, None),
        Treatment.LOW: (to_low, None),
        Treatment.LOW_THEN_FP32: (to_low, to_fp32),
        Treatment.LOW_BY_FP32: (through_low, to_low),
        Treatment.LOW_BY_FP32_THEN_FP32: (through_low, through_low),
        Treatment.ROUND: (rounded, rounded),
        Treatment.ROUND_IN: (
            _only_floats(_RoundValue.apply, device_type),
            _only_floats(_RoundGradient.apply, device_type),
        ),
    }
    return casts[treatment]


def _to_fp32(device_type: str) -> _Cast:
    def cast(tensor: torch.Tensor) -> torch.Tensor:
        if tensor.dtype in _LOW_FLOATS and tensor.device.type == device_type:
            return tensor.float()
        return tensor

    return cast


def _to_low(device_type: str) -> _Cast:
    def cast(tensor: torch.Tensor) -> torch.Tensor:
        low = torch.get_autocast_dtype(device_type)
        dtype = tensor.dtype
        if dtype != low and dtype in _FLOATS and tensor.device.type == device_type:
            return tensor.to(low)
        return tensor

    return cast


def _through_low(device_type: str) -> _Cast:
    to_low, to_fp32 = _to_low(device_type), _to_fp32(device_type)
    return lambda tensor: to_fp32(to_low(tensor))


def _through_half(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.half().float()


def _only_floats(cast: Callable[..., Any], device_type: str) -> _Cast:
    def only(tensor: torch.Tensor) -> torch.Tensor:
        if tensor.dtype in _FLOATS and tensor.device.type == device_type:
            return cast(tensor)
        return tensor

    return only


class _RoundValue(torch.autograd.Function):
    """Rounds to fp16, but stores the result in fp32.

    The gradient is not changed, because a cube op with an fp32 result has an fp32 gradient.
    """

    @staticmethod
    def forward(ctx: Any, tensor: torch.Tensor) -> torch.Tensor:
        del ctx
        return _through_half(tensor)

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> torch.Tensor:  # pyright: ignore[reportIncompatibleMethodOverride]
        del ctx
        return gradient


class _RoundGradient(torch.autograd.Function):
    """Returns the value unchanged; rounds the gradient to fp16, like the cube op's backward."""

    @staticmethod
    def forward(ctx: Any, tensor: torch.Tensor) -> torch.Tensor:
        del ctx
        return tensor.view_as(tensor)

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> torch.Tensor:  # pyright: ignore[reportIncompatibleMethodOverride]
        del ctx
        return _through_half(gradient)


def _forget_compiled() -> None:
    """Discard compiled code, which would continue to use the list with which it was traced."""
    dynamo = sys.modules.get("torch._dynamo")
    if dynamo is not None:
        dynamo.reset()
