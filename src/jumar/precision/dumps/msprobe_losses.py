"""Count what a dump contains and msprobe's format cannot hold."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from jumar.precision.dumps.dump import Dump, Statistics
from jumar.precision.dumps.msprobe_writing import is_written, names_node, written_values

LEFT_OUT: Final = {
    "update_calls": "ops of the optimizer's update; only forward and backward passes have a place",
    "states": "tensors of the optimizer's state",
    "changes": "updates of parameters",
    "parameters": "values of parameters before the update",
    "tensors": "tensors; only their statistics are written",
    "statistics": "tensors without statistics; their dtype and shape are written",
    "counts": "counts of zeros and of elements outside float16's range",
    "infinities": "signs of infinities; both inf and -inf are written",
    "hashes": "hashes other than CRC-32",
    "layers": "layers of ops, which have a place only next to calls of layers",
    "facts": "facts of the header, such as the device and the precision mode",
}
"""What is not written, in words, by the names in `Coverage.left_out`."""
_COUNTS: Final = ("zeros", "above_fp16", "below_normal", "below_subnormal")
_OWN_FACTS: Final = frozenset({"task", "level"})
"""Facts of msprobe's own header, which is written anew."""


@dataclass(frozen=True, kw_only=True)
class Coverage:
    """What `write_msprobe` writes of a dump.

    Attributes:
        calls: Number of calls that are written.
        values: Number of their tensors whose statistics are written.
        left_out: Number of things that are not written, by their kind in `LEFT_OUT`, without kinds
            of which there are none.
    """

    calls: int
    values: int
    left_out: Mapping[str, int]


def coverage(dump: Dump, stored: Collection[str]) -> Coverage:
    """Count what is written of a dump, and what is not.

    Args:
        dump: The dump.
        stored: The names of the tensors that have been written.
    """
    calls = [call for call in dump.calls if is_written(call)]
    values = [value for call in calls for value in written_values(call)]
    of_parameters = Counter(
        value.role for call in dump.calls if call.kind == "parameter" for value in call.values
    )
    has_modules = any(call.kind == "module" for call in calls)
    lost_layers = [
        call
        for call in calls
        if call.kind == "op" and call.layer and not (has_modules or names_node(call))
    ]
    rows = [value.statistics for value in values if value.statistics is not None]
    numbers = {
        "update_calls": len(dump.calls) - len(calls),
        "states": of_parameters["state"],
        "changes": of_parameters["change"],
        "parameters": of_parameters["parameter"],
        "tensors": _number(
            dump.tensors is not None and value.tensor and value.tensor not in stored
            for value in values
        ),
        "statistics": len(values) - len(rows),
        "counts": _number(map(_has_counts, rows)),
        "infinities": _number(row.inf and not row.nan for row in rows),
        "hashes": _number(
            value.digest and not value.digest.startswith("crc32:") for value in values
        ),
        "layers": len(lost_layers),
        "facts": len(set(dump.facts) - _OWN_FACTS),
    }
    return Coverage(
        calls=len(calls),
        values=len(values),
        left_out={kind: number for kind, number in numbers.items() if number},
    )


def _has_counts(row: Statistics) -> bool:
    return bool(row.nan or row.inf) or any(getattr(row, name) is not None for name in _COUNTS)


def _number(facts: Iterable[object]) -> int:
    return sum(map(bool, facts))
