"""Measure how far the values of a step are from overflow and underflow in float16."""

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace

from jumar.precision.dumps.dump import Call, Dump, Phase, Value

LARGEST = 65504.0
"""The largest finite number of float16."""


@dataclass(frozen=True, kw_only=True)
class HeadRoom:
    """The largest magnitude of an op's outputs in a layer.

    Attributes:
        op: The op.
        cann: The equivalent CANN op type; empty if unknown.
        layer: Path of the layer.
        phase: Forward or backward.
        largest: The largest magnitude of the finite output elements.
        above: Number of output elements that exceed float16's largest number.
        dtype: The dtype of the output with the largest magnitude.
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
        """Number of doublings until the largest output overflows; negative if it already does."""
        return math.log2(LARGEST / self.largest)


@dataclass(frozen=True, kw_only=True)
class Vanishing:
    """Gradients of a layer that float16 cannot represent.

    Attributes:
        layer: Path of the layer.
        elements: Number of nonzero gradient elements that its ops compute in the backward pass.
        lost: Number of these that are below 2**-24 and would become 0.
        coarse: Number of the others that are below 2**-14, where precision decreases.
    """

    layer: str
    elements: int
    lost: int
    coarse: int

    @property
    def share_lost(self) -> float:
        """The fraction of the elements that would become 0."""
        return self.lost / self.elements


def head_room(dump: Dump) -> list[HeadRoom]:
    """Return the head room of each op in each layer, smallest first.

    Args:
        dump: The step, with statistics of its ops.
    """
    smallest: dict[tuple[str, str, Phase], HeadRoom] = {}
    num_above: Counter[tuple[str, str, Phase]] = Counter()
    for call in dump.calls:
        if call.kind != "op":
            continue
        for value in _floats(call):
            largest, exceeding = _largest(value)
            key = (call.op, call.layer, call.phase)
            num_above[key] += exceeding
            previous = smallest.get(key)
            if largest and (previous is None or largest > previous.largest):
                smallest[key] = HeadRoom(
                    op=call.op,
                    cann=call.cann,
                    layer=call.layer,
                    phase=call.phase,
                    largest=largest,
                    above=0,
                    dtype=value.dtype,
                )
    rows = [replace(row, above=num_above[key]) for key, row in smallest.items()]
    return sorted(rows, key=lambda row: (row.doublings, row.layer, row.op))


def vanishing(dump: Dump) -> list[Vanishing]:
    """Return layers with gradients that float16 rounds to 0 at the dump's loss scale, worst first.

    Args:
        dump: The step, with counts of its ops' elements.
    """
    sums: dict[str, list[int]] = {}
    for call in dump.calls:
        if call.kind == "op" and call.phase == "backward":
            for value in _floats(call):
                statistics = value.statistics
                assert statistics is not None
                if statistics.below_subnormal is None or statistics.below_normal is None:
                    continue
                row = sums.setdefault(call.layer, [0, 0, 0])
                row[0] += statistics.count - (statistics.zeros or 0)
                row[1] += statistics.below_subnormal
                row[2] += statistics.below_normal - statistics.below_subnormal
    rows = [
        Vanishing(layer=layer, elements=elements, lost=num_lost, coarse=coarse)
        for layer, (elements, num_lost, coarse) in sums.items()
        if num_lost or coarse
    ]
    return sorted(rows, key=lambda row: (-row.share_lost, -row.coarse / row.elements, row.layer))


def _floats(call: Call) -> Iterable[Value]:
    return (
        value
        for value in call.of("output")
        if "float" in value.dtype and value.statistics is not None
    )


def _largest(value: Value) -> tuple[float, int]:
    """Return the largest finite magnitude, and the number of elements beyond float16's range."""
    statistics = value.statistics
    assert statistics is not None
    magnitudes = [
        abs(extreme)
        for extreme in (statistics.min, statistics.max)
        if extreme is not None and math.isfinite(extreme)
    ]
    return max(magnitudes, default=0.0), statistics.above_fp16 or 0
