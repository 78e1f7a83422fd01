"""The report as Markdown: a table for each kind of row, and what could not be measured."""

from collections.abc import Mapping, Sequence
from typing import Any

from on_accelerator.measuring import Row
from on_accelerator.records import Record

_HEADS = {
    "rate": "rate, per second",
    "samples_s": "samples/s",
    "steps_s": "steps/s",
    "ms": "ms a step",
    "ms_range": "smallest to largest",
    "memory_mib": "memory, MiB",
    "of_best_peer": "speed / best peer",
    "of_peak": "share of matrix peak",
    "of_roofline": "share of roofline",
    "times_bare": "times a bare step",
    "times_plain": "times a plain step",
}


def markdown(
    machine: Mapping[str, Any],
    titles: Mapping[str, str],
    parts: Mapping[str, Sequence[Record]],
) -> str:
    """The report, in the form of docs/results.md.

    Args:
        machine: What was measured on.
        titles: The heading of each part.
        parts: The records of each part.
    """
    lines = ["# On an accelerator", "", f"{machine['description']}; {machine['date']}.", ""]
    lines += [f"Host: {machine['host']}; Python {machine['python']}; jumar {machine['jumar']}.", ""]
    lines += ["```console", f"$ {machine['command']}", "```", ""]
    for name, records in parts.items():
        if records:
            lines += [f"## {titles[name]}", "", *_tables(records), *_without_rows(records)]
    return "\n".join(lines).rstrip("\n") + "\n"


def _tables(records: Sequence[Record]) -> list[str]:
    """A table for each set of columns, in the order in which they come."""
    kinds: dict[tuple[str, ...], list[Row]] = {}
    for record in records:
        for row in record.rows:
            kinds.setdefault(tuple(row), []).append(row)
    lines: list[str] = []
    for names, rows in kinds.items():
        # Memory on a CPU, or a share without a peak.
        columns = [each for each in names if any(row[each] is not None for row in rows)]
        lines.append("| " + " | ".join(_HEADS.get(each, each) for each in columns) + " |")
        lines.append("|---" * len(columns) + "|")
        lines += ["| " + " | ".join(_cell(row[each]) for each in columns) + " |" for row in rows]
        lines.append("")
    return lines


def _without_rows(records: Sequence[Record]) -> list[str]:
    odd = [record for record in records if record.state != "measured"]
    lines = [
        f"- {record.measurement}: {record.state}{f', {record.reason}' if record.reason else ''}"
        for record in odd
    ]
    return [*(line.replace("\n", " ") for line in lines), ""] if lines else []


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:.4g}" if abs(value) < 10_000 else f"{value:.0f}"
    return str(value).replace("|", "\\|").replace("\n", " ")
