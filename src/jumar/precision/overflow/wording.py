"""The origin of an overflow as text."""

from collections.abc import Iterator

from jumar.precision.dumps.dump import Call, Value
from jumar.precision.overflow.origin import Origin


def origin_lines(rank: int, origin: Origin) -> Iterator[str]:
    """The op behind a non-finite value, its inputs, and what to try."""
    call = origin.op
    verb = "overflows" if origin.is_made else "receives values that are not finite"
    yield f"rank {rank}, {call.phase}: {_named(call)} {verb}"
    if origin.parameter:
        yield f"  what it casts is the parameter {origin.parameter}"
    for value in origin.inputs:
        yield f"  takes {described(value)}"
    for value in origin.bad:
        yield f"  {'gives' if value.role == 'output' else 'takes'} {described(value)}"
    yield f"  try: {advice(origin)}"


def advice(origin: Origin) -> str:
    """What to try."""
    call = origin.op
    if not origin.is_made:
        return "look at the batch and the parameters of this layer: no recorded op made the value"
    if call.phase == "backward":
        return "a smaller loss scale, or keep the op in float32 (modify_mixlist)"
    if origin.parameter:
        return "a smaller parameter, or keep the ops that take it in float32 (modify_mixlist)"
    op = call.cann or call.op
    return (
        f"keep {op} in float32: black-list it in a file for precision.modify_mixlist "
        "(`jumar precision lint` checks it), or make its inputs smaller"
    )


def _named(call: Call) -> str:
    cann = f" ({call.cann})" if call.cann else ""
    return f"{call.op}{cann} in {call.layer or 'no layer'}, call {call.number}"


def described(value: Value) -> str:
    """A tensor with its range and its number of non-finite elements."""
    shape = "x".join(map(str, value.shape)) or "scalar"
    numbers = value.statistics
    if numbers is None:
        return f"{value.name}: {value.dtype} {shape}"
    ends = "" if numbers.min is None else f", {numbers.min:.4g} to {numbers.max:.4g}"
    bad = [
        f"{count} of {numbers.count} {kind}"
        for count, kind in ((numbers.nan, "NaN"), (numbers.inf, "infinite"))
        if count
    ]
    return f"{value.name}: {value.dtype} {shape}{ends}{''.join(f', {remark}' for remark in bad)}"
