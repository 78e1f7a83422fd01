"""How far the values of a step are from float16's limits, at either end."""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from jumar.precision.dumps.dump import Call, Dump, Phase, Value

LARGEST = 65504.0
"""The largest number of float16."""


@dataclass(frozen=True, kw_only=True)
class HeadRoom:
    """The largest magnitude of an op's outputs in a layer.

    Attributes:
        op: The op.
        cann: The CANN op type that does the same; empty if unknown.
        layer: Path of the layer.
        phase: Forward or backward.
        largest: The largest magnitude of its finite outputs.
        above: How many outputs exceed float16's largest number.
        dtype: Of the output with the largest magnitude.
    """

    op: str
    cann: str
    layer: str
    phase: Phase
    largest: float
    above: int
    dtype: str

    @property
    def doublings(self) -> float:
        """How often the largest output can double before it overflows; below 0 it already does."""
        return math.log2(LARGEST / self.largest)


@dataclass(frozen=True, kw_only=True)
class Vanishing:
    """Gradients of a layer that float16 cannot represent.

    Attributes:
        layer: Path of the layer.
        elements: Nonzero elements of the gradients that its ops compute in the backward pass.
        lost: How many of them are below 2**-24 and would become 0.
        coarse: How many of the others are below 2**-14, where precision is lost bit by bit.
    """

    layer: str
    elements: int
    lost: int
    coarse: int

    @property
    def share_lost(self) -> float:
        """The fraction that would become 0."""
        return self.lost / self.elements


def head_room(dump: Dump) -> list[HeadRoom]:
    """The head room of each op in each layer, the least first.

    Args:
        dump: The step, with statistics of its ops.
    """
    tightest: dict[tuple[str, str, Phase], HeadRoom] = {}
    num_above: Counter[tuple[str, str, Phase]] = Counter()
    for call in dump.calls:
        if call.kind != "op":
            continue
        for value in _floats(call):
            largest, exceeding = _largest(value)
            key = (call.op, call.layer, call.phase)
            num_above[key] += exceeding
            before = tightest.get(key)
            if largest and (before is None or largest > before.largest):
                tightest[key] = HeadRoom(
                    op=call.op,
                    cann=call.cann,
                    layer=call.layer,
                    phase=call.phase,
                    largest=largest,
                    above=0,
                    dtype=value.dtype,
                )
    rows = [replace(row, above=num_above[key]) for key, row in tightest.items()]
    return sorted(rows, key=lambda row: (row.doublings, row.layer, row.op))


def vanishing(dump: Dump) -> list[Vanishing]:
    """Layers whose gradients, at the loss scale of the dump, float16 rounds to 0; the worst first.

    Args:
        dump: The step, with counts of its ops' elements.
    """
    sums: dict[str, list[int]] = {}
    for call in dump.calls:
        if call.kind == "op" and call.phase == "backward":
            for value in _floats(call):
                numbers = value.statistics
                assert numbers is not None
                if numbers.below_subnormal is None or numbers.below_normal is None:
                    continue
                row = sums.setdefault(call.layer, [0, 0, 0])
                row[0] += numbers.count - (numbers.zeros or 0)
                row[1] += numbers.below_subnormal
                row[2] += numbers.below_normal - numbers.below_subnormal
    rows = [
        Vanishing(layer=layer, elements=elements, lost=num_lost, coarse=coarse)
        for layer, (elements, num_lost, coarse) in sums.items()
        if num_lost or coarse
    ]
    return sorted(rows, key=lambda row: (-row.share_lost, -row.coarse / row.elements, row.layer))


def _floats(call: Call) -> Iterable[Value]:
    return (
        value
        for value in call.values
        if value.role == "output" and "float" in value.dtype and value.statistics is not None
    )


def _largest(value: Value) -> tuple[float, int]:
    """The largest finite magnitude, and how many elements exceed float16's."""
    numbers = value.statistics
    assert numbers is not None
    ends: Sequence[float] = [
        abs(end) for end in (numbers.min, numbers.max) if end is not None and math.isfinite(end)
    ]
    return max(ends, default=0.0), numbers.above_fp16 or 0
