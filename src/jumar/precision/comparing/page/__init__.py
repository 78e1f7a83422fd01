"""The HTML page of a comparison: the error along the network, with details of every call."""

from typing import Any, Final

from jumar.ground.pages import page_source, page_template, policy_hash
from jumar.ground.text import counted
from jumar.precision.comparing.comparison import Compared, Comparison, Row
from jumar.precision.comparing.tables import error_of, shown
from jumar.profiling.showing import json_for_script
from jumar.profiling.showing import shown as safe

_MAX_OFFENDERS: Final = 100
_VERDICTS: Final = ("agrees", "inherited", "offender")


def page(comparison: Comparison) -> str:
    """Return a self-contained HTML page, whose security policy allows only its own script.

    All text from a dump is escaped.

    Args:
        comparison: The comparison to show.
    """
    style, script = (page_source(__name__, name) for name in ("page.css", "page.js"))
    sides = [
        (name, str(dump.where), dump.tool, counted(len(dump.calls), "call"))
        for name, dump in (("before", comparison.before), ("after", comparison.after))
    ]
    return page_template(__name__).render(
        style=style,
        script=script,
        style_hash=policy_hash(style),
        script_hash=policy_hash(script),
        sides=[[safe(text) for text in side] for side in sides],
        paired=counted(len(comparison.calls), "call"),
        values=counted(comparison.rows, "value"),
        flagged=f"{comparison.flagged} ({comparison.flagged / max(comparison.rows, 1):.1%})",
        notices=[safe(notice, 400) for notice in comparison.notices],
        offenders=[
            (call.position, safe(call.name), safe(call.reason), shown(call.ratio))
            for call in comparison.offenders[:_MAX_OFFENDERS]
        ],
        data=json_for_script([_call(call) for call in comparison.calls]),
    )


def _call(compared: Compared) -> list[Any]:
    """Return a call as data for the script, compact because there may be thousands."""
    error = error_of(compared)
    return [
        safe(compared.call.layer),
        safe(compared.call.op),
        compared.call.number,
        compared.call.phase,
        _VERDICTS.index(compared.verdict),
        # Non-finite errors are drawn at the top.
        1e30 if error is not None and error > 1e30 else error,
        [shown(compared.ratio), shown(compared.added), shown(compared.inherited)],
        safe(compared.reason),
        [_row(row) for row in compared.rows],
    ]


def _row(row: Row) -> list[Any]:
    difference = row.difference
    return [
        f"{row.value.role} {safe(row.value.name)}",
        safe(row.value.dtype)
        if row.value.dtype == row.partner.dtype
        else safe(f"{row.value.dtype} / {row.partner.dtype}"),
        "x".join(map(str, row.value.shape)),
        shown(difference.lower if difference else None),
        shown(difference.cosine if difference else None),
        shown(difference.largest if difference else None),
        shown(row.ratio),
        _VERDICTS.index(row.verdict),
    ]
