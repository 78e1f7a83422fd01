"""The error that rounding explains, from the op, its shapes and the magnitude of its operands.

An output differs by its operands' errors, times how strongly the op passes them on, and by the op's
own rounding. Both follow from one number per operand, its gain: the rms error of the output when
the operand has random relative errors of 1. A sum of n random products, for example, has the gain
sqrt(n) rms(x) rms(w), however much of it cancels; so a gradient that is zero in theory is expected
to be noise. If both dumps have tensors, `replay` measures gains instead.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from jumar.precision.comparing.observed import roundoff
from jumar.precision.comparing.pairing import canonical
from jumar.precision.dumps.dump import Call, Value

_ACCUMULATED: Final = 2.0**-24
"""Unit roundoff of sums: kernels of every device add low-precision products up in float32."""
_BACKWARD: Final = ("_backward", "_backward_data")
_RECIPROCAL: Final = "2"
"""The output of an aten norm with the reciprocals of the standard deviations."""
_PARTIAL: Final = 2.0
"""Mean and variance are of a row or channel; statistics are of the whole tensor."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Operand:
    """A tensor that a call depends on.

    Attributes:
        value: The tensor in the first dump.
        error: Approximate upper bound of its relative error.
        roundoff: The coarser unit roundoff of both sides.
        rms: Root of its mean square; 0 where unknown.
        peak: Its largest absolute value; 0 where unknown.
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
        numbers = self.value.statistics
        mean = numbers.mean if numbers is not None else None
        if mean is None or not math.isfinite(mean):
            return self.rms
        return math.sqrt(max(self.rms**2 - mean**2, 0.0))


class Gains(NamedTuple):
    """How an output follows its operands."""

    each: Sequence[float]
    """By operand: the rms error of the output when the operand's relative error is 1."""
    terms: float = 1
    """Number of terms in a sum."""


_Rule = Callable[[Sequence[Operand], Operand], Gains]


def explained_error(
    call: Call, operands: Sequence[Operand], output: Operand, *, is_gradient: bool
) -> float:
    """The absolute rms error of an output that its operands' errors and rounding explain.

    Args:
        call: The call in the first dump.
        operands: What it depends on; of a gradient op the incoming gradient first.
        output: The output, its `error` unused.
        is_gradient: Whether it computes gradients of `call.op`.
    """
    gains = _gains(call, operands, output, is_gradient=is_gradient)
    inherited = math.fsum(
        gain * operand.error
        for gain, operand in zip(gains.each, operands, strict=True)
        if operand.error
    )
    strongest = max(gains.each, default=0.0)
    # An operand's own dtype does not matter once it is in memory: a sum of bfloat16 numbers in
    # float32 is a float32 sum. What matters is the coarsest dtype that the op may compute in.
    coarsest = max(tensor.roundoff for tensor in (*operands, output))
    accumulated = min(coarsest, _ACCUMULATED) * math.sqrt(gains.terms / 2) * strongest
    return inherited + coarsest * (strongest + output.rms) + accumulated


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
    # linear and conv hold the weights as (out, in, ...), matmul contracts the last axis.
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
    terms = max((each.count for each in operands), default=1) / max(output.count, 1)
    each = [operand.rms / math.sqrt(max(terms, 1)) + output.rms for operand in operands]
    return Gains(each, terms)


def _added(operands: Sequence[Operand], output: Operand) -> Gains:
    return Gains([operand.rms + output.rms for operand in operands])


def _exponential(operands: Sequence[Operand], output: Operand) -> Gains:
    """An absolute error of the exponent is a relative error of the result."""
    return Gains([output.rms * max(operand.peak, 1.0) for operand in operands])


def _logarithmic(operands: Sequence[Operand], output: Operand) -> Gains:
    return Gains([2 * operand.peak + output.rms for operand in operands])


def _normalised(operands: Sequence[Operand], output: Operand) -> Gains:
    """The subtracted mean may be much larger than the remainder."""
    first, *rest = operands or [output]
    cancellation = first.rms / first.spread if first.spread else first.peak / max(first.rms, 1e-30)
    if output.value.name == _RECIPROCAL and len(operands) > 1:
        # The narrowest row has the largest reciprocal, and errors are relative to its spread.
        cancellation = max(cancellation, first.rms * output.peak)
    terms = first.count / max(min((each.count for each in rest), default=1), 1)
    each = [_PARTIAL * output.rms * max(cancellation, 1.0), *(output.rms + one.rms for one in rest)]
    return Gains(each[: len(operands)], terms)


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
    """For a loss on logits: probabilities minus the target."""
    peak = max((operand.peak for operand in operands[1:]), default=1.0)
    return Gains([output.rms * max(peak, 1.0)] * len(operands))


def _parameter_gradient(operands: Sequence[Operand], output: Operand) -> Gains:
    """A sum over all uses of the parameter."""
    if not operands:
        return Gains([])
    incoming, *rest = operands
    terms = max(incoming.count / max(output.value.shape[0] if output.value.shape else 1, 1), 1.0)
    data = max((operand.rms for operand in rest), default=1.0)
    gain = math.sqrt(terms) * incoming.rms * max(data, 1.0)
    return Gains([max(gain, output.rms)] * len(operands), terms)


def _updated(operands: Sequence[Operand], output: Operand) -> Gains:
    """The effect of a gradient's error on the optimizer.

    Adam divides a gradient by its own size, so an element with a relative error above 1 may even
    change sign: for random elements the error becomes the root of the gradient's. It also keeps
    squares, so a gradient that is zero in theory may differ by its square.
    """
    errors = [each.error for each in operands]
    changes = [2 / math.sqrt(error) if 0 < error < 1 else 2 + error for error in errors]
    return Gains([output.rms * (1 + each) for each in changes])


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
    """The larger unit roundoff of two values."""
    return max(roundoff(first.dtype), roundoff(second.dtype))
