"""Describe the origin of an overflow as text."""

from collections.abc import Iterator

from jumar.precision.dumps.dump import Call, Value
from jumar.precision.overflow.origin import Origin


def origin_lines(rank: int, origin: Origin) -> Iterator[str]:
    """Yield lines about the op that caused a non-finite value, its inputs, and a remedy."""
    call = origin.op
    verb = "overflows" if origin.is_made else "receives values that are not finite"
    yield f"rank {rank}, {call.phase}: {_named(call)} {verb}"
    if origin.parameter:
        yield f"  it casts the parameter {origin.parameter}"
    for value in origin.inputs:
        yield f"  input {described(value)}"
    for value in origin.bad:
        yield f"  {'output' if value.role == 'output' else 'input'} {described(value)}"
    yield f"  try: {advice(origin)}"


def advice(origin: Origin) -> str:
    """Return a suggestion how to avoid the overflow."""
    call = origin.op
    if not origin.is_made:
        return "check the batch and the parameters of this layer: no recorded op produced the value"
    if call.phase == "backward":
        return "a smaller loss scale, or keep the op in float32 (modify_mixlist)"
    if origin.parameter:
        return "a smaller parameter, or keep the ops that use it in float32 (modify_mixlist)"
    op = call.cann or call.op
    return (
        f"keep {op} in float32: black-list it in a file for precision.modify_mixlist "
        "(check the file with `jumar precision lint`), or reduce its inputs"
    )


def _named(call: Call) -> str:
    cann = f" ({call.cann})" if call.cann else ""
    return f"{call.op}{cann} in {call.layer or 'no layer'}, call {call.number}"


def described(value: Value) -> str:
    """Describe a tensor with its range and its number of non-finite elements."""
    text = f"{value.name}: {value.dtype} {'x'.join(map(str, value.shape)) or 'scalar'}"
    statistics = value.statistics
    if statistics is None:
        return text
    if statistics.min is not None:
        text += f", {statistics.min:.4g} to {statistics.max:.4g}"
    for count, kind in ((statistics.nan, "NaN"), (statistics.inf, "infinite")):
        if count:
            text += f", {count} of {statistics.count} {kind}"
    return text
