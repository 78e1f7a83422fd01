"""Format sensitivities for a terminal, a CSV file and JSON."""

from collections.abc import Mapping, Sequence
from typing import Any

from jumar.ground.json_text import finite_or_text
from jumar.precision import csv_rows
from jumar.precision.sensitivity.measuring import Moved, Sensitivity


def as_dict(result: Sensitivity) -> dict[str, Any]:
    """Return the whole result for JSON, rows in the order of execution, with infinity as text."""
    return {
        **vars(result.settings),
        "loss": result.loss,
        "gradient_norm": result.gradient,
        "together": _pair(*result.together),
        "floor": _pair(*result.floor),
        "passes": result.passes,
        "seconds": result.seconds,
        "rows": [_row(row) for row in result.rows],
        "layers": {name: _pair(*changes) for name, changes in result.summed("layer").items()},
        "ops": {name: _pair(*changes) for name, changes in result.summed("op").items()},
    }


def as_csv(result: Sensitivity) -> str:
    """Return the rows as CSV, in the order of execution."""
    rows = [{"place": position, **_row(row)} for position, row in enumerate(result.rows)]
    return csv_rows.as_csv(rows)


def summary(rows: Sequence[Moved]) -> list[dict[str, str]]:
    """Return one row of texts per row."""
    return [
        {
            "gradient": shown(row.gradient),
            "loss": shown(row.loss),
            "layer": row.layer,
            "op": row.op + (f" #{row.number}" if row.number else ""),
            "CANN type": row.cann,
            "phase": row.phase,
            "calls": str(row.calls),
        }
        for row in rows
    ]


def shown(number: float) -> str:
    """Format a relative change."""
    return f"{number:.2e}"


def _row(row: Moved) -> dict[str, Any]:
    return {
        "layer": row.layer,
        "op": row.op,
        "cann": row.cann,
        "phase": row.phase,
        "number": row.number,
        "calls": row.calls,
        "elements": row.elements,
        **_pair(row.loss, row.gradient),
    }


def _pair(loss: float, gradient: float) -> Mapping[str, float | str | None]:
    return {"loss_change": finite_or_text(loss), "gradient_change": finite_or_text(gradient)}
