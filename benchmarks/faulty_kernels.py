"""Kernels that compute something wrong, put below whatever records a step.

Each kind of fault is a function of the kernel, its arguments and the number of the output that it
spoils. `FaultyKernel` is a dispatch mode: entered before a recorder's mode, it runs after it, so
that the recorder sees an op with the right operands and a wrong result.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, cast

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from jumar.precision.dumps.dump import Call, Value

Kernel = Callable[..., Any]
Fault = Callable[[Kernel, tuple[Any, ...], int], Any]
_PRODUCTS = ("addmm", "mm", "bmm", "baddbmm")
_BATCH_NORM = "native_batch_norm"


@dataclass(frozen=True, kw_only=True)
class Planted:
    """A fault and its place in the step.

    Attributes:
        kind: Name of the fault.
        op: The aten op with its overload.
        number: How many calls of the op come before it in the whole step.
        output: Number of the output that it spoils.
    """

    kind: str
    op: str
    number: int
    output: int


class FaultyKernel(TorchDispatchMode):
    """Replaces one call of a kernel by a faulty one."""

    def __init__(self, planted: Planted) -> None:
        super().__init__()
        self._planted, self._left = planted, planted.number

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        """Run an op, rightly or not."""
        del types
        options = kwargs or {}
        if str(func) != self._planted.op:
            return func(*args, **options)
        self._left -= 1
        if self._left != -1:
            return func(*args, **options)

        def kernel(*args: Any) -> Any:
            return func(*args, **options)

        result = KINDS[self._planted.kind](kernel, args, self._planted.output)
        if func._schema.is_mutable and isinstance(result, Tensor):
            return args[0].copy_(result)
        return result


def is_float(value: Any) -> bool:
    """Whether a fault can be put into a value."""
    return isinstance(value, Tensor) and value.is_floating_point() and value.numel() > 1


def _spoiled(result: Any, place: int, change: Callable[[Tensor], Tensor]) -> Any:
    """The result with one of its tensors changed."""
    if isinstance(result, Tensor):
        return change(result)
    parts = list(cast("tuple[Any, ...]", result))
    parts[place] = change(parts[place])
    return tuple(parts)


def _through(value: Any, dtype: torch.dtype) -> Any:
    return value.to(dtype).to(value.dtype) if is_float(value) else value


def half(kernel: Kernel, args: tuple[Any, ...], place: int) -> Any:
    """Operands and result pass through float16."""
    narrow = (_through(each, torch.float16) for each in args)
    return _spoiled(kernel(*narrow), place, lambda out: _through(out, torch.float16))


def transposed(kernel: Kernel, args: tuple[Any, ...], place: int) -> Any:
    """The last square operand is used transposed."""
    del place
    at = max(at for at, each in enumerate(args) if is_float(each) and is_square(tuple(each.shape)))
    axes = (0, 1) if args[at].dim() == 4 else (-1, -2)
    return kernel(*args[:at], args[at].transpose(*axes).contiguous(), *args[at + 1 :])


def is_square(shape: tuple[int, ...]) -> bool:
    """Whether a matrix or a kernel of a convolution can be transposed unnoticed."""
    if len(shape) == 4:
        return shape[0] == shape[1] > 1
    return len(shape) > 1 and shape[-1] == shape[-2] > 1


def dropped(kernel: Kernel, args: tuple[Any, ...], place: int) -> Any:
    """A gradient is lost."""
    return _spoiled(kernel(*args), place, torch.zeros_like)


def _with_epsilon(kernel: Kernel, args: tuple[Any, ...], factor: float) -> Any:
    return kernel(
        *(each * factor if isinstance(each, float) and each < 1e-2 else each for each in args)
    )


def large_epsilon(kernel: Kernel, args: tuple[Any, ...], place: int) -> Any:
    """A norm's epsilon is 1000 times too large."""
    del place
    return _with_epsilon(kernel, args, 1000)


def lost_epsilon(kernel: Kernel, args: tuple[Any, ...], place: int) -> Any:
    """A norm's epsilon is lost in rounding."""
    del place
    return _with_epsilon(kernel, args, 0)


def scaled_twice(kernel: Kernel, args: tuple[Any, ...], place: int) -> Any:
    """A factor is applied a second time."""
    return _spoiled(kernel(*args), place, lambda out: out * 0.35)


def lost_bits(kernel: Kernel, args: tuple[Any, ...], place: int) -> Any:
    """The result has lost 4 bits of its mantissa."""

    def change(out: Tensor) -> Tensor:
        bits = {torch.bfloat16: 8, torch.float16: 11}.get(out.dtype, 24) - 4
        mantissa, exponent = torch.frexp(out.float())
        return torch.ldexp((mantissa * 2**bits).round() / 2**bits, exponent).to(out.dtype)

    return _spoiled(kernel(*args), place, change)


def rolled(kernel: Kernel, args: tuple[Any, ...], place: int) -> Any:
    """The result is shifted by a place."""
    return _spoiled(kernel(*args), place, lambda out: out.roll(1, -1))


def wrong_cast(kernel: Kernel, args: tuple[Any, ...], place: int) -> Any:
    """The result passes through bfloat16, or that of a bfloat16 op through 8 bits."""

    def change(out: Tensor) -> Tensor:
        is_low = out.dtype == torch.bfloat16
        return _through(out, torch.float8_e5m2 if is_low else torch.bfloat16)

    return _spoiled(kernel(*args), place, change)


def cut_short(kernel: Kernel, args: tuple[Any, ...], place: int) -> Any:
    """The last element of every row counts for nothing in the first float operand."""
    del place
    at = next(at for at, each in enumerate(args) if is_float(each) and each.dim() > 1)
    cut = args[at].clone()
    cut[..., -1] = 0
    return kernel(*args[:at], cut, *args[at + 1 :])


def overflow(kernel: Kernel, args: tuple[Any, ...], place: int) -> Any:
    """The largest element becomes infinite."""

    def change(out: Tensor) -> Tensor:
        flat = out.clone(memory_format=torch.contiguous_format).view(-1)
        flat[flat.abs().argmax()] = torch.inf
        return flat.view(out.shape)

    return _spoiled(kernel(*args), place, change)


def one_row(kernel: Kernel, args: tuple[Any, ...], place: int) -> Any:
    """One row is taken from its neighbour, as after a race."""

    def change(out: Tensor) -> Tensor:
        return torch.cat([out[-1:], out[1:]])

    return _spoiled(kernel(*args), place, change)


def stale_mean(kernel: Kernel, args: tuple[Any, ...], place: int) -> Any:
    """The running mean of a batch norm is not updated."""
    del place
    before = args[3].clone()
    result = kernel(*args)
    args[3].copy_(before)
    return result


def square_overflow(kernel: Kernel, args: tuple[Any, ...], place: int) -> Any:
    """The square in a norm overflows in the row of the largest variance."""
    del place
    is_batch_norm = len(args) == 8
    out, mean, scale = kernel(*args)
    kept = torch.arange(scale.numel()) != scale.flatten().argmin()
    axes = (1, -1, *(1 for _ in out.shape[2:])) if is_batch_norm else tuple(scale.shape)
    offset = args[2].view(axes) if is_batch_norm else args[3]
    return torch.where(kept.view(axes), out, offset), mean, scale * kept.view(scale.shape)


SEEN: Mapping[str, Fault] = {
    each.__name__: each
    for each in (half, transposed, dropped, large_epsilon, scaled_twice, lost_bits)
}
"""Kinds with which limits were chosen."""
_UNSEEN = (rolled, wrong_cast, cut_short, overflow, one_row)
UNSEEN: Mapping[str, Fault] = {
    each.__name__: each for each in (*_UNSEEN, stale_mean, square_overflow, lost_epsilon)
}
"""Kinds that are kept away while limits are chosen."""
KINDS: Mapping[str, Fault] = {**SEEN, **UNSEEN}


def suits(kind: str, call: Call) -> bool:
    """Whether a call can have a fault of a kind."""
    packet = call.op.split(".")[1]
    if kind in ("large_epsilon", "lost_epsilon", "square_overflow"):
        return packet in (_BATCH_NORM, "native_layer_norm")
    shapes = [value.shape for value in call.values if value.role == "input"]
    if kind == "transposed":
        is_product = packet in _PRODUCTS or packet == "convolution"
        return is_product and any(is_square(shape) for shape in shapes)
    if kind == "dropped":
        return call.phase == "backward"
    if kind == "cut_short":
        return packet in (*_PRODUCTS, "_softmax", "native_layer_norm", "sum")
    if kind == "one_row":
        return all(value.shape[:1] > (1,) for value in spoilable(call))
    return kind != "stale_mean" or packet == _BATCH_NORM


def spoilable(call: Call) -> list[Value]:
    """The outputs of a call that a fault can spoil."""
    return [
        value
        for value in call.values
        if value.role == "output"
        and value.name.isdigit()
        and value.dtype in ("float32", "bfloat16")
        and len(value.shape) + 1 > 1
        and max(value.shape, default=1) > 1
    ]
