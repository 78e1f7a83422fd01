"""Replay of single ops: recompute them in float64 from recorded operands.

The result for the candidate's operands is the correct output; its distance to the recorded output
is the error that the op adds. The part that rounding explains is measured, not estimated, by
running the same op on randomly rounded operands.

Names of ops come from files, so only tensor functions listed here, and aten ops without side
effects or randomness, are ever called.
"""

import ast
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import torch
import torch.nn.functional as functional

from jumar.ground.errors import UserError
from jumar.precision.comparing.observed import roundoff, unlike
from jumar.precision.comparing.pairing import Pair, canonical
from jumar.precision.dumps.dump import Call, Dump, Value

_NAMES: Final = {
    "Functional": """
        linear conv1d conv2d conv3d conv_transpose1d conv_transpose2d softmax log_softmax gelu
        relu silu elu selu leaky_relu softplus hardswish layer_norm batch_norm group_norm
        cross_entropy nll_loss mse_loss l1_loss smooth_l1_loss binary_cross_entropy
        binary_cross_entropy_with_logits embedding avg_pool1d avg_pool2d adaptive_avg_pool2d
        max_pool2d adaptive_max_pool2d normalize pad interpolate sigmoid tanh
        scaled_dot_product_attention
    """,
    "Torch": """
        matmul bmm mm addmm baddbmm add sub mul div exp log log2 log1p sqrt rsqrt pow square abs
        neg sum mean var std cumsum softmax log_softmax relu tanh sigmoid sin cos erf clamp
        maximum minimum where cat stack addcmul addcdiv reciprocal logsumexp norm prod amax amin
        transpose permute reshape flatten squeeze unsqueeze einsum
    """,
    "Tensor": """
        __add__ __radd__ __sub__ __rsub__ __mul__ __rmul__ __truediv__ __neg__ __pow__ __matmul__
        matmul bmm mm add sub mul div exp log sqrt rsqrt pow square abs neg sum mean var std
        softmax log_softmax relu tanh sigmoid view reshape transpose permute flatten squeeze
        unsqueeze contiguous float half bfloat16 clamp chunk
    """,
}
_FUNCTIONS: Final = {kind: frozenset(names.split()) for kind, names in _NAMES.items()}
_MAX_ELEMENTS: Final = 1 << 26
"""Calls with a larger tensor are not replayed, because they would need gigabytes."""
_ACCUMULATED: Final = 2.0**-24
_LOW: Final = 2.0**-20
"""Dtypes with a larger unit roundoff count as low precision."""
_MAX_COHERENT_TERMS: Final = 4096.0
"""Kernels add in blocks, so no partial sum grows over more terms."""
_DECISIVE: Final = 30.0
"""If the candidate's error ratio is this many times smaller, the reference is to blame."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Replayed:
    """The result of replaying a call.

    Attributes:
        ratios: Ratio of the error that the call adds to the error that its rounding explains, by
            name of the output.
        added: Largest relative error that the call adds to an output.
        inherited: Largest relative error of an output that the operands cause.
        is_blamed: Whether one of the calls adds more error than is explained.
        is_reference_blamed: Whether that is the reference's call.
    """

    ratios: Mapping[str, float]
    added: float
    inherited: float
    is_blamed: bool = False
    is_reference_blamed: bool = False


@dataclass(frozen=True)
class _Side:
    """One call of a pair with its recorded and replayed outputs, and their explained errors."""

    outputs: Mapping[str, torch.Tensor]
    replayed: Mapping[str, torch.Tensor]
    explained: Mapping[str, float]

    def ratio(self, name: str) -> float:
        """Return the ratio of an output's added error to its explained error."""
        error = _distance(self.outputs[name], self.replayed[name])
        if error == 0:
            return 0.0
        return error / self.explained[name] if self.explained[name] > 0 else math.inf

    def added(self, name: str) -> float:
        """Return the relative error that the call adds to an output."""
        return _relative(_distance(self.outputs[name], self.replayed[name]), self.outputs[name])


def replay(
    pair: Pair, before: Dump, after: Dump, forward: Pair | None, limit: float
) -> Replayed | None:
    """Replay a call of both dumps; None if it cannot be replayed faithfully.

    The reference's arguments are used for both, so that a changed argument is found. If the replay
    does not even reproduce the reference, the function is another one and the result is not used.

    Args:
        pair: The call and its partner.
        before: The reference.
        after: The candidate.
        forward: For gradients of a function, its forward call and partner.
        limit: Largest ratio to the explained error that still counts as explained.
    """
    if before.tensors is None or after.tensors is None:
        return None
    function = _function(pair.before, forward)
    if function is None:
        return None
    try:
        sides = [
            _replayed(function, call, dump, twin)
            for call, dump, twin in (
                (pair.before, before, forward.before if forward else None),
                (pair.after, after, forward.after if forward else None),
            )
        ]
        first, second = sides
        return _verdict(first, second, limit) if first and second else None
    except (RuntimeError, TypeError, ValueError, IndexError, KeyError, UserError):
        # The op does not support float64, an argument cannot be parsed, or a file is missing.
        return None


def _verdict(first: _Side, second: _Side, limit: float) -> Replayed | None:
    names = [name for name in first.outputs if name in second.outputs]
    if not names:
        return None
    reference = max(first.ratio(name) for name in names)
    candidate = max(second.ratio(name) for name in names)
    inherited = max(
        _relative(_distance(first.replayed[name], second.replayed[name]), first.replayed[name])
        for name in names
    )
    if reference > limit and candidate > reference / _DECISIVE:
        return None
    is_reference_blamed = reference > limit
    blamed = first if is_reference_blamed else second
    return Replayed(
        ratios={name: blamed.ratio(name) for name in names},
        added=max(blamed.added(name) for name in names),
        inherited=inherited,
        is_blamed=max(reference, candidate) > limit,
        is_reference_blamed=is_reference_blamed,
    )


_Function = Callable[[Mapping[tuple[str, str], torch.Tensor]], Mapping[str, torch.Tensor]]


def _function(call: Call, forward: Pair | None) -> _Function | None:
    """Return the call as a function of its tensors that returns outputs by name."""
    if call.kind != "op" or call.number < 0:
        return None
    if call.is_gradient:
        return _gradient_of(call, forward.before) if forward is not None else None
    target = _target(call.op)
    if target is None:
        return None

    def run(tensors: Mapping[tuple[str, str], torch.Tensor]) -> Mapping[str, torch.Tensor]:
        positional, keywords = _arguments(call, tensors)
        return _named(target(*positional, **keywords))

    return run


def _gradient_of(call: Call, forward: Call) -> _Function | None:
    """Return a function that computes gradients by autograd, if the dump has them in order."""
    target = _target(forward.op)
    operands = [value for value in forward.of("input") if _is_float(value)]
    results = call.of("output")
    shapes = [value.shape for value in operands]
    if target is None or [value.shape for value in results] != shapes[: len(results)]:
        return None
    # msprobe records gradients in the order of operands, but may omit some of equal shape.
    if len(results) != len(shapes) and len(set(shapes)) != len(shapes):
        return None

    def run(tensors: Mapping[tuple[str, str], torch.Tensor]) -> Mapping[str, torch.Tensor]:
        leaves = {
            key[1:]: tensor.clone().requires_grad_(tensor.is_floating_point())
            for key, tensor in tensors.items()
            if key[0] == "forward"
        }
        positional, keywords = _arguments(
            forward, {("input", key[0]): leaf for key, leaf in leaves.items()}
        )
        with torch.enable_grad():
            outputs = _named(target(*positional, **keywords))
            (first,) = outputs.values()
            incoming = next(tensor for key, tensor in tensors.items() if key[0] == "input")
            inputs = [leaves[(value.name,)] for value in operands[: len(results)]]
            gradients = torch.autograd.grad(first, inputs, incoming.reshape(first.shape))
        return {value.name: gradient for value, gradient in zip(results, gradients, strict=True)}

    return run


def _target(op: str) -> Callable[..., Any] | None:
    kind, _, name = op.partition(".")
    if kind == "aten":
        return _aten(name)
    if name not in _FUNCTIONS.get(kind, ()):
        return None
    owner = {"Functional": functional, "Torch": torch, "Tensor": torch.Tensor}[kind]
    return getattr(owner, name, None)


def _aten(name: str) -> Callable[..., Any] | None:
    """Return an aten op by packet and overload, if it is a deterministic function of tensors."""
    packet, _, overload = name.partition(".")
    if not packet.isidentifier() or not (overload or "default").isidentifier():
        return None
    op = getattr(getattr(torch.ops.aten, packet, None), overload or "default", None)
    if not isinstance(op, torch._ops.OpOverload):
        return None
    schema = op._schema
    accepts_tensor = bool(schema.arguments) and "Tensor" in str(schema.arguments[0].type)
    is_random = torch.Tag.nondeterministic_seeded in op.tags
    return op if accepts_tensor and not schema.is_mutable and not is_random else None


def _replayed(function: _Function, call: Call, dump: Dump, forward: Call | None) -> _Side | None:
    tensors: dict[tuple[str, str], torch.Tensor] = {}
    outputs: dict[str, torch.Tensor] = {}
    coarsest = 0.0
    for source in (call, forward):
        for value in source.values if source is not None else ():
            if value.tensor is None or dump.tensors is None:
                return None
            if math.prod(value.shape) > _MAX_ELEMENTS:
                return None
            if source is forward and value.role != "input":
                continue
            tensor = dump.tensors.read(value.tensor)
            if tuple(tensor.shape) != value.shape:
                return None  # The dump stores a sample of a larger tensor.
            coarsest = max(coarsest, roundoff(value.dtype))
            if value.role == "output":
                outputs[value.name] = tensor
            else:
                role = "forward" if source is forward else "input"
                tensors[role, value.name] = tensor
    wide = {
        key: tensor.double() if tensor.is_floating_point() else tensor
        for key, tensor in tensors.items()
    }
    result = function(wide)
    names = [name for name in outputs if name in result]
    if not names or any(result[name].shape != outputs[name].shape for name in names):
        return None
    generator = torch.Generator().manual_seed(0)
    perturbed = function(
        {key: _perturbed(tensor, coarsest, generator) for key, tensor in wide.items()}
    )
    explained = {
        name: _explained(_terms(call, wide, result[name]), coarsest, result[name], perturbed[name])
        for name in names
    }
    return _Side(
        outputs={name: outputs[name] for name in names},
        replayed={name: result[name] for name in names},
        explained=explained,
    )


def _explained(terms: float, unit: float, exact: torch.Tensor, perturbed: torch.Tensor) -> float:
    """Return the error of an op's output that rounding explains.

    Args:
        terms: Number of terms in its sums; negative if partial sums may be far from the result.
        unit: Unit roundoff of the coarsest operand.
        exact: The output.
        perturbed: The output for operands with errors of that size.
    """
    change = _distance(exact, perturbed)
    # Kernels add in float32: the error of a sum of n terms is sqrt(n) roundings, or n if partial
    # sums are far larger than the result (a gradient that is zero in theory).
    growth = min(-terms, _MAX_COHERENT_TERMS) if terms < 0 else math.sqrt(terms) / 2
    accumulated = change * min(_ACCUMULATED / unit, 1.0) * growth if unit else 0.0
    explained = change + accumulated + unit * _rms(exact) / 2
    if unit > _LOW:
        explained *= 2  # Low-precision kernels also round intermediate results.
    # With few elements, the measured change is a small sample.
    return explained * (1 + 2 / math.sqrt(max(exact.numel(), 1)))


def _terms(
    call: Call, tensors: Mapping[tuple[str, str], torch.Tensor], output: torch.Tensor
) -> float:
    """Return the number of terms in an output's sums; negative for sums over a whole gradient."""
    family = canonical(call.op)
    floats = [tensor for tensor in tensors.values() if tensor.is_floating_point()]
    largest = max((tensor.numel() for tensor in floats), default=1)
    matrices = [tensor for tensor in floats if tensor.dim() > 1]
    ratio = max(largest / max(output.numel(), 1), 1.0)
    if output.dim() <= 1 and (call.phase == "backward" or family == "sum"):
        return -ratio
    if family.startswith(("linear", "bmm", "baddbmm")) and len(matrices) > 1:
        return float(matrices[0].shape[-1])
    if family.startswith("conv") and len(matrices) > 1:
        weight = matrices[-1]
        features = weight.numel() / max(weight.shape[0], 1)
        return max(features, matrices[0].numel() / matrices[0].shape[1])
    return ratio


def _arguments(
    call: Call, tensors: Mapping[tuple[str, str], torch.Tensor]
) -> tuple[list[Any], dict[str, Any]]:
    """Return positional and keyword arguments from the names in the dump.

    Raises:
        ValueError: An argument is missing, or its text is not a literal.
    """
    contents: dict[str, Any] = {name: tensor for (_, name), tensor in tensors.items()}
    contents |= {name: _literal(text) for name, text in call.arguments.items()}
    arguments: dict[str, Any] = {}
    for name, content in contents.items():
        argument, _, index = name.partition(".")
        if index:
            arguments.setdefault(argument, {})[int(index)] = content
        else:
            arguments[argument] = content
    arguments = {
        name: [content[position] for position in range(len(content))]
        if isinstance(content, dict)
        else content
        for name, content in arguments.items()
    }
    positions = sorted(int(name) for name in arguments if name.isdigit())
    if positions != [*range(len(positions))]:
        raise ValueError("an argument is missing")
    return (
        [arguments[str(position)] for position in positions],
        {name: content for name, content in arguments.items() if not name.isdigit()},
    )


def _literal(text: str) -> Any:
    if text.startswith("torch."):
        dtype = getattr(torch, text.removeprefix("torch."), None)
        if isinstance(dtype, torch.dtype):
            return torch.float64 if dtype.is_floating_point else dtype
        raise ValueError(text)
    if text in ("inf", "-inf", "nan"):
        return float(text)
    try:
        return ast.literal_eval(text)
    except (SyntaxError, MemoryError, RecursionError) as error:
        raise ValueError(text) from error


def _named(result: Any) -> Mapping[str, torch.Tensor]:
    parts: Sequence[Any] = list(result) if isinstance(result, tuple | list) else [result]
    return {str(index): part for index, part in enumerate(parts) if isinstance(part, torch.Tensor)}


def _perturbed(tensor: torch.Tensor, unit: float, generator: torch.Generator) -> torch.Tensor:
    """Return a tensor with random relative errors of the size of rounding errors."""
    if not tensor.is_floating_point():
        return tensor
    noise = torch.rand(tensor.shape, generator=generator, dtype=torch.float64) * 2 - 1
    return tensor * (1 + unit * noise)


def _is_float(value: Value) -> bool:
    return roundoff(value.dtype) > 0


def _rms(tensor: torch.Tensor) -> float:
    """Return the root mean square of the finite elements: masks may contain infinities."""
    wide = tensor.double()
    finite = wide.isfinite()
    wide = wide if finite.all() else wide[finite]
    return wide.norm().item() / math.sqrt(max(wide.numel(), 1))


def _distance(first: torch.Tensor, second: torch.Tensor) -> float:
    if unlike(first, second):
        return math.inf
    return _rms(first.double() - second.double())


def _relative(error: float, tensor: torch.Tensor) -> float:
    size = _rms(tensor)
    return error / size if size > 0 else (math.inf if error else 0.0)
