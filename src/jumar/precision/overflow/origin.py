"""Find the op that produced the first non-finite value of a step."""

from collections.abc import Sequence
from dataclasses import dataclass

from jumar.precision.dumps.dump import Call, Dump, Value

CASTS = ("aten._to_copy", "aten.to", "aten.copy_", "aten.clone")
"""Ops that only change the dtype, so that their input causes an overflow in them."""
FILLS = ("aten.masked_fill", "aten.full", "aten.fill", "aten.scalar_tensor", "aten.where")
"""Ops that write infinities on purpose."""


@dataclass(frozen=True, kw_only=True)
class Origin:
    """The first non-finite value of a step.

    Attributes:
        call: The op that produced it, or the first op that used it.
        bad: The call's values that are not finite.
        producer: The op that computed a cast's input; None if the call is not a cast.
        parameter: Path of the parameter that is a cast's input; empty if it is not a parameter.
        is_made: Whether the call produced the value from finite inputs. Otherwise, it came from the
            batch, a parameter or an op that was not recorded.
    """

    call: Call
    bad: Sequence[Value]
    producer: Call | None = None
    parameter: str = ""
    is_made: bool

    @property
    def op(self) -> Call:
        """The op to change: the one that computed the value."""
        return self.producer or self.call

    @property
    def inputs(self) -> Sequence[Value]:
        """The inputs of the op."""
        return self.op.of("input")


def origin_of(dump: Dump) -> Origin | None:
    """Return the origin of a step's non-finite values; None if all values are finite.

    An infinity that an op writes on purpose, or one from outside, such as an attention mask, is
    reported only when it becomes NaN or reaches the backward pass.

    Args:
        dump: The step, with statistics of its ops.
    """
    ops = [call for call in dump.calls if call.kind == "op"]
    is_masked = False
    from_outside: Origin | None = None
    for position, call in enumerate(ops):
        bad_inputs = list(filter(is_bad, call.of("input")))
        bad_outputs = list(filter(is_bad, call.of("output")))
        if call.op.startswith(FILLS):
            is_masked |= bool(bad_outputs)
        elif any(map(_has_nan, bad_inputs)):
            return from_outside or Origin(call=call, bad=bad_outputs or bad_inputs, is_made=False)
        elif bad_inputs:
            if not is_masked and from_outside is None:
                from_outside = Origin(call=call, bad=bad_outputs or bad_inputs, is_made=False)
            if bad := list(filter(_has_nan, bad_outputs)):
                return from_outside or Origin(call=call, bad=bad, is_made=True)
            if bad_outputs and call.phase == "backward" and from_outside is not None:
                return from_outside
        elif bad_outputs:
            if not call.op.startswith(CASTS):
                return Origin(call=call, bad=bad_outputs, is_made=True)
            producer = _producer(ops[:position], call)
            parameter = "" if producer else _parameter(dump, call)
            return Origin(
                call=call, bad=bad_outputs, producer=producer, parameter=parameter, is_made=True
            )
    return _of_parameters(dump)


def _of_parameters(dump: Dump) -> Origin | None:
    for call in dump.calls:
        if call.kind == "parameter" and (bad := list(filter(is_bad, call.values))):
            return Origin(call=call, bad=bad, is_made=False)
    return None


def is_bad(value: Value) -> bool:
    """Whether a tensor contains NaN or an infinity."""
    statistics = value.statistics
    return statistics is not None and bool(statistics.nan or statistics.inf)


def _has_nan(value: Value) -> bool:
    return value.statistics is not None and bool(value.statistics.nan)


def _producer(before: Sequence[Call], cast: Call) -> Call | None:
    """Return the last op before a cast whose output is the cast's input."""
    operand = next(iter(cast.of("input")), None)
    if operand is None or operand.statistics is None:
        return None
    for call in reversed(before):
        if call.op.startswith(CASTS):
            continue
        for value in call.of("output"):
            if value.statistics == operand.statistics and value.dtype == operand.dtype:
                return call
    return None


def _parameter(dump: Dump, cast: Call) -> str:
    """Return the path of the parameter that is a cast's input; empty if none is."""
    operand = next(iter(cast.of("input")), None)
    for call in dump.calls:
        for value in call.of("parameter") if call.kind == "parameter" else ():
            if operand and (value.statistics, value.shape) == (operand.statistics, operand.shape):
                return call.op
    return ""
