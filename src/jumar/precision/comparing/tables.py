"""Format a comparison for a terminal, a CSV file and JSON."""

from collections.abc import Mapping, Sequence
from typing import Any

from jumar.ground.json_text import finite_or_text
from jumar.precision import csv_rows
from jumar.precision.comparing.comparison import Compared, Comparison, Row, call_name
from jumar.precision.comparing.unequal import Unequal
from jumar.precision.dumps.dump import Call, Dump


def as_dict(comparison: Comparison) -> dict[str, Any]:
    """Return the whole comparison for JSON, with infinity and NaN as text."""
    first = comparison.first_difference
    return {
        "before": _dump(comparison.before),
        "after": _dump(comparison.after),
        "paired": len(comparison.calls),
        "only_before": [call_name(call) for call in comparison.only_before],
        "only_after": [call_name(call) for call in comparison.only_after],
        "rows": comparison.rows,
        "flagged": comparison.flagged,
        "first_difference": first.name if first is not None else None,
        "hashed": comparison.hashed,
        "first_unequal": unequal_dict(comparison.first_unequal),
        "offenders": [_call(call) for call in comparison.offenders],
        "calls": [
            {**_call(call), "values": [_row(row) for row in call.rows]} for call in comparison.calls
        ],
        "notices": list(comparison.notices),
    }


def as_csv(comparison: Comparison) -> str:
    """Return the comparison as CSV, one line per value, in the order of execution."""
    rows = [
        {**_named(compared.call), "place": compared.position, **_row(row)}
        for compared in comparison.calls
        for row in compared.rows
    ]
    return csv_rows.as_csv(rows)


def summary(calls: Sequence[Compared]) -> list[dict[str, str]]:
    """Return one row of texts per call."""
    return [
        {
            "place": str(compared.position),
            "layer": compared.call.layer,
            "op": compared.call.op + (f" #{compared.call.number}" if compared.call.number else ""),
            "phase": compared.call.phase,
            "error": shown(error_of(compared)),
            "explained": f"{shown(compared.ratio)} x",
            "added": shown(compared.added),
            "inherited": shown(compared.inherited),
            "verdict": compared.verdict,
        }
        for compared in calls
    ]


def error_of(compared: Compared) -> float | None:
    """Return the largest relative error of a call's outputs."""
    errors = [
        row.difference.lower
        for row in compared.rows
        if row.ratio is not None and row.difference is not None
    ]
    return max(errors, default=None)


def shown(number: float | None) -> str:
    """Format a number with three digits; empty if unknown."""
    return "" if number is None else f"{number:.3g}"


def unequal_text(unequal: Unequal) -> str:
    """Describe the first unequal call and its unequal values in one line."""
    differing = ", ".join(
        f"{value.role} {value.name}"
        + (f" ({value.dtype} and {partner.dtype})" if value.dtype != partner.dtype else "")
        for value, partner in unequal.values[:4]
    )
    inputs = "its inputs are equal" if unequal.inputs_equal else "its inputs already differ"
    return f"{call_name(unequal.pair.before)}: {inputs}; unequal: {differing}"


def unequal_dict(unequal: Unequal | None) -> Mapping[str, Any] | None:
    """Return the first unequal call for JSON."""
    if unequal is None:
        return None
    return {
        **_named(unequal.pair.before),
        "inputs_equal": unequal.inputs_equal,
        "values": [f"{value.role} {value.name}" for value, _ in unequal.values],
        "only_in_one": call_name(unequal.unpaired) if unequal.unpaired else None,
    }


def _dump(dump: Dump) -> Mapping[str, Any]:
    return {
        "path": str(dump.where),
        "tool": dump.tool,
        "step": dump.step,
        "rank": dump.rank,
        "calls": len(dump.calls),
        "tensors": dump.tensors is not None,
    }


def _named(call: Call) -> dict[str, Any]:
    return {
        "layer": call.layer,
        "op": call.op,
        "number": call.number,
        "phase": call.phase,
        "cann": call.cann,
    }


def _call(compared: Compared) -> dict[str, Any]:
    return {
        "place": compared.position,
        "name": compared.name,
        **_named(compared.call),
        "verdict": compared.verdict,
        "reason": compared.reason,
        "error": finite_or_text(error_of(compared)),
        "ratio": finite_or_text(compared.ratio),
        "added": finite_or_text(compared.added),
        "inherited": finite_or_text(compared.inherited),
        "baseline_error": finite_or_text(compared.baseline),
    }


def _row(row: Row) -> dict[str, Any]:
    difference = row.difference
    return {
        "role": row.value.role,
        "name": row.value.name,
        "dtype_before": row.value.dtype,
        "dtype_after": row.partner.dtype,
        "shape": "x".join(map(str, row.value.shape)),
        "verdict": row.verdict,
        "ratio": finite_or_text(row.ratio),
        "error": finite_or_text(difference.lower if difference else None),
        "error_at_most": finite_or_text(difference.upper if difference else None),
        "cosine": finite_or_text(difference.cosine if difference else None),
        "max_absolute": finite_or_text(difference.largest if difference else None),
        "max_relative": finite_or_text(difference.relative if difference else None),
        "remark": difference.remark if difference else "not comparable",
        **{
            f"{name}_{side}": finite_or_text(getattr(value.statistics, name, None))
            for side, value in (("before", row.value), ("after", row.partner))
            for name in ("min", "max", "mean", "l2")
        },
    }
