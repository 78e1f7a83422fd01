"""The HTML page of a noise measurement: a chart of sensitivity along the network, and tables."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from jumar.ground.pages import page_source, page_template, policy_hash
from jumar.ground.text import counted
from jumar.precision.sensitivity.measuring import Moved, Sensitivity
from jumar.precision.sensitivity.tables import shown
from jumar.profiling.showing import shown as safe

_WIDTH, _HEIGHT = 1400, 380
_LEFT, _TOP, _BOTTOM = 60, 12, 40
_MIN_DECADES: Final = 2
_MAX_ROWS: Final = 200


@dataclass(frozen=True, kw_only=True)
class _Dot:
    """A row in the chart."""

    x: float
    y: float
    title: str
    is_backward: bool


def page(result: Sensitivity, *, what: str, step: int) -> str:
    """Return a self-contained HTML page without a script.

    Args:
        result: The measurement.
        what: The recipe or run.
        step: The step, counted from 0.
    """
    style = "".join(
        page_source(package, "page.css")
        for package in ("jumar.precision.comparing.page", "jumar.precision.sensitivity.page")
    )
    ranked = result.ranked
    return page_template(__name__).render(
        style=style,
        style_hash=policy_hash(style),
        what=safe(what),
        step=step,
        dtype=result.settings.dtype,
        loss=f"{result.loss:.6g}",
        together=[shown(change) for change in result.together],
        rows_of=counted(len(ranked), "row"),
        passes=counted(result.passes, "pass"),
        rows=[_cells(row) for row in ranked[:_MAX_ROWS]],
        rest=max(0, len(ranked) - _MAX_ROWS),
        layers=_sums(result.summed("layer"), "outside all layers"),
        types=_sums(result.summed("cann"), "no CANN type"),
        **_chart(result.rows),
    )


def _chart(rows: Sequence[Moved]) -> Mapping[str, Any]:
    """Return dots and grid lines: rows in the order of execution, by their change of gradients."""
    logs = [math.log10(row.gradient) if 0 < row.gradient < math.inf else None for row in rows]
    finite_logs = [exponent for exponent in logs if exponent is not None] or [-3.0]
    high = math.ceil(max(finite_logs))
    low = min(math.floor(min(finite_logs)), high - _MIN_DECADES)
    width = max(_WIDTH, _LEFT + 20 + 7 * len(rows))

    def y(log: float) -> float:
        return round(_TOP + (high - log) * (_HEIGHT - _TOP - _BOTTOM) / (high - low), 1)

    def x(position: int) -> float:
        return round(_LEFT + 10 + position * (width - _LEFT - 20) / max(len(rows) - 1, 1), 1)

    dots = [
        _Dot(
            x=x(position),
            y=y(high if row.gradient == math.inf else low if log is None else log),
            title=safe(f"{_name(row)}: gradient {shown(row.gradient)}, loss {shown(row.loss)}"),
            is_backward=row.phase == "backward",
        )
        for position, (row, log) in enumerate(zip(rows, logs, strict=True))
    ]
    return {
        "width": width,
        "height": _HEIGHT,
        "left": _LEFT,
        "lines": [(y(log), f"1e{log}") for log in range(low, high + 1)],
        "dots": dots,
    }


def _name(row: Moved) -> str:
    layer = f"{row.layer}: " if row.layer else ""
    return f"{layer}{row.op or 'all ops'} {row.phase}"


def _cells(row: Moved) -> list[str]:
    texts = (row.layer, row.op, row.cann, row.phase, str(row.calls))
    return [shown(row.gradient), shown(row.loss), *map(safe, texts)]


def _sums(sums: Mapping[str, tuple[float, float]], unnamed: str) -> list[tuple[str, str, str]]:
    return [
        (shown(gradient), shown(loss), safe(name or unnamed))
        for name, (loss, gradient) in [*sums.items()][:_MAX_ROWS]
    ]
