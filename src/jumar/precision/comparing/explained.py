"""Estimate the error that rounding explains, from an op, its shapes and its operands' magnitudes.

The error of an output consists of its operands' errors, amplified by the op, and of the op's
rounding. Both follow from one number per operand, its gain: the rms error of the output if the
operand has random relative errors of 1. For example, the gain of a sum of n random products is
sqrt(n) rms(x) rms(w), even if the terms cancel, so that a gradient that is zero in theory is
expected to be noise. If both dumps have tensors, `replay` measures gains instead.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from jumar.precision.comparing.observed import roundoff
from jumar.precision.comparing.pairing import canonical
from jumar.precision.dumps.dump import Call, Value

_ACCUMULATED: Final = 2.0**-24
"""Unit roundoff of sums: the kernels of all devices add low-precision products in float32."""
_BACKWARD: Final = ("_backward", "_backward_data")
_RECIPROCAL: Final = "2"
"""Name of the output of an aten norm with the reciprocals of the standard deviations."""
_PARTIAL: Final = 2.0
"""Allowance for norms of rows or channels, because statistics cover only the whole tensor."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Operand:
    """A tensor that a call depends on.

    Attributes:
        value: The tensor in the first dump.
        error: Approximate upper bound of its relative error.
        roundoff: The coarser unit roundoff of both dumps.
        rms: Root of its mean square; 0 if unknown.
        peak: Its largest absolute value; 0 if unknown.
    """

    value: Value
    error: float
    roundoff: float
    rms: float
    peak: float

    @property
    def count(self) -> int:
        """Number of elements."""
        return math.prod(self.value.shape)

    @property
    def spread(self) -> float:
        """Standard deviation."""
        statistics = self.value.statistics
        mean = statistics.mean if statistics is not None else None
        if mean is None or not math.isfinite(mean):
            return self.rms
        return math.sqrt(max(self.rms**2 - mean**2, 0.0))


class Gains(NamedTuple):
    """The effect of each operand's error on an output."""

    by_operand: Sequence[float]
    """For each operand, the rms error of the output if the operand's relative error is 1."""
    terms: float = 1
    """Number of terms in a sum."""


_Rule = Callable[[Sequence[Operand], Operand], Gains]


def explained_error(
    call: Call, operands: Sequence[Operand], output: Operand, *, is_gradient: bool
) -> float:
    """Return the absolute rms error of an output that its operands' errors and rounding explain.

    Args:
        call: The call in the first dump.
        operands: The operands of the output; for a gradient op, the incoming gradient first.
        output: The output; its `error` is not used.
        is_gradient: Whether the call computes gradients of `call.op`.
    """
    gains = _gains(call, operands, output, is_gradient=is_gradient)
    inherited = math.fsum(
        gain * operand.error
        for gain, operand in zip(gains.by_operand, operands, strict=True)
        if operand.error
    )
    largest_gain = max(gains.by_operand, default=0.0)
    # The op may compute in the coarsest dtype of its tensors, but accumulates at least in float32.
    coarsest = max(tensor.roundoff for tensor in (*operands, output))
    accumulated = min(coarsest, _ACCUMULATED) * math.sqrt(gains.terms / 2) * largest_gain
    return inherited + coarsest * (largest_gain + output.rms) + accumulated


def _gains(call: Call, operands: Sequence[Operand], output: Operand, *, is_gradient: bool) -> Gains:
    family = canonical(call.op)
    if family.endswith(_BACKWARD):
        family = canonical(family.partition("_backward")[0])
    if call.kind == "parameter":
        rule = _parameter_gradient if output.value.role == "gradient" else _updated
        return rule(operands, output)
    if is_gradient and operands:
        return _GRADIENTS.get(family, _gradient)(operands, output)
    return _RULES.get(family, _plain)(operands, output)


def _plain(operands: Sequence[Operand], output: Operand) -> Gains:
    return Gains(
        [
            2 * output.rms + (operand.rms if operand.count == output.count else 0.0)
            for operand in operands
        ]
    )


def _product(operands: Sequence[Operand], output: Operand) -> Gains:
    matrices = [operand for operand in operands if len(operand.value.shape) > 1][:2]
    if len(matrices) < 2:
        return _plain(operands, output)
    first, second = matrices
    # The weights of linear and conv are (out, in, ...); matmul contracts the last axis.
    terms = max(math.prod(second.value.shape[1:]), first.value.shape[-1])
    if len(second.value.shape) == len(first.value.shape) and len(first.value.shape) != 4:
        terms = first.value.shape[-1]
    gain = math.sqrt(terms) * first.rms * second.rms
    return Gains([gain if operand in matrices else operand.rms for operand in operands], terms)


def _sum(operands: Sequence[Operand], output: Operand) -> Gains:
    terms = max((operand.count for operand in operands), default=1) / max(output.count, 1)
    return Gains(
        [math.sqrt(max(terms, 1)) * operand.rms + output.rms for operand in operands], terms
    )


def _mean(operands: Sequence[Operand], output: Operand) -> Gains:
    terms = max((operand.count for operand in operands), default=1) / max(output.count, 1)
    return Gains(
        [operand.rms / math.sqrt(max(terms, 1)) + output.rms for operand in operands], terms
    )


def _added(operands: Sequence[Operand], output: Operand) -> Gains:
    return Gains([operand.rms + output.rms for operand in operands])


def _exponential(operands: Sequence[Operand], output: Operand) -> Gains:
    """Return the gains: an absolute error of the exponent is a relative error of the result."""
    return Gains([output.rms * max(operand.peak, 1.0) for operand in operands])


def _logarithmic(operands: Sequence[Operand], output: Operand) -> Gains:
    return Gains([2 * operand.peak + output.rms for operand in operands])


def _normalised(operands: Sequence[Operand], output: Operand) -> Gains:
    """Return the gains of a norm: subtracting the mean may amplify relative errors."""
    first, *rest = operands or [output]
    cancellation = first.rms / first.spread if first.spread else first.peak / max(first.rms, 1e-30)
    if output.value.name == _RECIPROCAL and len(operands) > 1:
        # The narrowest row has the largest reciprocal, and errors are relative to its spread.
        cancellation = max(cancellation, first.rms * output.peak)
    terms = first.count / max(min((operand.count for operand in rest), default=1), 1)
    gains = [
        _PARTIAL * output.rms * max(cancellation, 1.0),
        *(output.rms + operand.rms for operand in rest),
    ]
    return Gains(gains[: len(operands)], terms)


def _gradient(operands: Sequence[Operand], output: Operand) -> Gains:
    incoming = operands[0]
    terms = max(incoming.count / max(output.count, 1), 1.0)
    first = math.sqrt(terms) * incoming.rms + 2 * output.rms
    return Gains([first, *(2 * output.rms for _ in operands[1:])], terms)


def _product_gradient(operands: Sequence[Operand], output: Operand) -> Gains:
    incoming, *rest = operands
    matrices = [operand for operand in rest if len(operand.value.shape) > 1][:2]
    if len(matrices) < 2:
        return _gradient(operands, output)
    data, weight = matrices
    shape = weight.value.shape
    rows = incoming.count / max(shape[0], 1)
    choices = {
        "data": (weight.count / max(shape[1], 1), weight.rms, output.count == data.count),
        "weight": (rows, data.rms, output.count == weight.count),
        "bias": (incoming.count / max(output.count, 1), 1.0, len(output.value.shape) == 1),
    }
    fitting = [choice[:2] for choice in choices.values() if choice[2]]
    options = fitting or [choice[:2] for choice in choices.values()]
    terms, factor = max(options, key=lambda option: math.sqrt(option[0]) * option[1])
    gain = math.sqrt(max(terms, 1)) * incoming.rms * factor
    return Gains([gain, *(gain if operand in matrices else 0.0 for operand in rest)], terms)


def _normalised_gradient(operands: Sequence[Operand], output: Operand) -> Gains:
    incoming, *rest = operands
    if output.count < incoming.count:
        terms = incoming.count / max(output.count, 1)
        gain = math.sqrt(terms) * incoming.rms
        return Gains([gain] * len(operands), terms)
    data = next((operand for operand in rest if operand.count == incoming.count), None)
    scale = max((operand.peak for operand in rest if operand.count < incoming.count), default=1.0)
    spread = data.spread if data is not None else 0.0
    gain = 2 * incoming.rms * scale / spread if spread else 4 * output.rms
    return Gains([max(gain, 2 * output.rms)] * len(operands))


def _softmax_gradient(operands: Sequence[Operand], output: Operand) -> Gains:
    incoming, *rest = operands
    gain = 2 * incoming.rms * min(max((operand.peak for operand in rest), default=1.0), 1.0)
    return Gains([max(gain, output.rms)] * len(operands))


def _loss_gradient(operands: Sequence[Operand], output: Operand) -> Gains:
    """Return the gains of a loss on logits, whose gradient is probabilities minus targets."""
    peak = max((operand.peak for operand in operands[1:]), default=1.0)
    return Gains([output.rms * max(peak, 1.0)] * len(operands))


def _parameter_gradient(operands: Sequence[Operand], output: Operand) -> Gains:
    """Return the gains of a parameter's gradient, a sum over all uses of the parameter."""
    if not operands:
        return Gains([])
    incoming, *rest = operands
    terms = max(incoming.count / max(output.value.shape[0] if output.value.shape else 1, 1), 1.0)
    data = max((operand.rms for operand in rest), default=1.0)
    gain = math.sqrt(terms) * incoming.rms * max(data, 1.0)
    return Gains([max(gain, output.rms)] * len(operands), terms)


def _updated(operands: Sequence[Operand], output: Operand) -> Gains:
    """Return the gains of an optimizer update from the gradient's error.

    Adam divides a gradient by its magnitude, so an element with a relative error above 1 may even
    change sign: for random elements, the error becomes the root of the gradient's error. Adam also
    stores squares, so a gradient that is zero in theory may differ by its square.
    """
    errors = [operand.error for operand in operands]
    changes = [2 / math.sqrt(error) if 0 < error < 1 else 2 + error for error in errors]
    return Gains([output.rms * (1 + change) for change in changes])


_RULES: Final[dict[str, _Rule]] = {
    **dict.fromkeys(("linear", "bmm", "baddbmm", "conv", "einsum"), _product),
    **dict.fromkeys(("add", "sub", "iadd", "radd", "addcmul", "cat"), _added),
    **dict.fromkeys(("softmax", "exp", "sinh", "cosh"), _exponential),
    **dict.fromkeys(("log_softmax", "cross_entropy", "logsumexp", "log"), _logarithmic),
    **dict.fromkeys(("layer_norm", "batch_norm", "group_norm", "rms_norm"), _normalised),
    "sum": _sum,
    "mean": _mean,
}
_GRADIENTS: Final[dict[str, _Rule]] = {
    **dict.fromkeys(("linear", "bmm", "conv", "conv_transpose"), _product_gradient),
    **dict.fromkeys(("layer_norm", "batch_norm", "group_norm", "rms_norm"), _normalised_gradient),
    "softmax": _softmax_gradient,
    **dict.fromkeys(("log_softmax", "cross_entropy"), _loss_gradient),
}


def coarser(first: Value, second: Value) -> float:
    """Return the larger unit roundoff of two values."""
    return max(roundoff(first.dtype), roundoff(second.dtype))
