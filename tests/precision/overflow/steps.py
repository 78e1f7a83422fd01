"""Steps made by hand, for what is read from a dump."""

from pathlib import Path

from jumar.precision.dumps.dump import Call, Dump, Phase, Role, Statistics, Value


def value(
    role: Role, *, name: str = "0", largest: float = 1.0, dtype: str = "float16", **counts: int
) -> Value:
    """A tensor of ten elements from minus to plus its largest magnitude."""
    numbers = {"nan": 0, "inf": 0, "zeros": 0, "above_fp16": 0} | counts
    numbers = {"below_normal": 0, "below_subnormal": 0} | numbers
    statistics = Statistics(count=10, min=-largest, max=largest, mean=0.0, l2=largest, **numbers)
    return Value(role=role, name=name, dtype=dtype, shape=(10,), statistics=statistics)


def call(op: str, *values: Value, layer: str = "net", phase: Phase = "forward") -> Call:
    """A call of an op."""
    return Call(kind="op", op=op, layer=layer, number=0, phase=phase, values=values, cann=op[5:])


def step(*calls: Call) -> Dump:
    """The calls of a step."""
    return Dump(where=Path("dump"), tool="test", calls=calls)
