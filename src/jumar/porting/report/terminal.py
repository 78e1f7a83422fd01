"""Prints the diff and the summary of a port, in colour on a terminal."""

import shlex
from collections.abc import Sequence
from pathlib import PurePath
from typing import IO, get_args

from rich.console import Console
from rich.text import Text as Line

from jumar.porting.edits import FileStatus, Finding, Language, Severity, TreeReport
from jumar.porting.report.showing import one_line, visible
from jumar.porting.report.unified import diff_bytes, diff_lines
from jumar.porting.report.words import Words, words

FINDINGS_SHOWN = 10
_RULES_SHOWN = 8
_PLACES_SHOWN = 6

_DIFF_STYLES = {"-": "red", "+": "green", "@": "cyan"}
_SEVERITY_STYLES: dict[Severity, str] = {
    "blocking": "bold red",
    "accuracy": "bold yellow",
    "speed": "bold blue",
    "look": "bold",
}


def is_coloured(console: Console) -> bool:
    """Return whether to use colours: the console is a terminal and NO_COLOR is not set."""
    return console.is_terminal and not console.no_color


def print_diff(report: TreeReport, console: Console) -> None:
    """Print the unified diff of every ported file.

    Without colours it is written unchanged, so that it can be piped into `patch -p1`. In a
    terminal, characters that would hide or move others are spelt out.
    """
    if not is_coloured(console):
        _write_patch(report, console.file)
        return
    for file in report.files:
        in_head = True
        for line in diff_lines(file):
            in_head = in_head and not line.startswith("@@")
            style = "bold" if in_head else _DIFF_STYLES.get(line[0], "")
            _print(console, Line(visible(line.rstrip("\r\n")), style=style))
        if not in_head:
            _print(console, Line(""))


def _write_patch(report: TreeReport, out: IO[str]) -> None:
    """Write the diffs unchanged; rich would drop carriage returns, the line endings of Windows."""
    out.flush()
    buffer = getattr(out, "buffer", None)
    for file in report.files:
        if buffer is not None:
            buffer.write(diff_bytes(file))
        else:
            out.writelines(diff_lines(file))
    out.flush()


def print_summary(
    report: TreeReport,
    console: Console,
    language: Language = "en",
    *,
    next_command: str = "",
    findings_shown: int = FINDINGS_SHOWN,
) -> None:
    """Print the counts, the first findings, and the suggested next command.

    Args:
        report: The outcome of the port.
        console: The console to print to.
        language: Language of the sentences.
        next_command: The command to suggest; without it, the last line is omitted.
        findings_shown: Maximum number of findings to show, identical ones counting as one; the
            line after them counts the remaining places.
    """
    labels = words(language)
    lines = [_files_line(report, labels)]
    lines += _counts_lines(report, labels)
    lines += _finding_lines(report, labels, language, findings_shown)
    if next_command:
        lines.append(Line.assemble((labels.next_step + labels.colon, "bold"), next_command))
    coloured = is_coloured(console)
    for line in lines:
        _print(console, line if coloured else Line(line.plain))


def command_to_write(report: TreeReport) -> str:
    """Return the command that writes the tree, for a port that only showed the diff."""
    root = PurePath(report.root)
    # `.` and `..` have no name to extend, and a folder within the tree would be ported next time.
    target = (
        root.with_name(f"{root.stem}-npu{root.suffix}") if root.name.strip(".") else "../ported"
    )
    return one_line(shlex.join(["jumar", "port", *report.options, str(root), "--to", str(target)]))


def _print(console: Console, line: Line) -> None:
    console.print(line, soft_wrap=True, highlight=False, markup=False, emoji=False)


def _files_line(report: TreeReport, labels: Words) -> Line:
    counts = [
        f"{labels.statuses[status]} {report.count(status):,}"
        for status in get_args(FileStatus)
        if report.count(status)
    ]
    counts += [f"{labels.added} {len(report.added):,}"] if report.added else []
    return _counted(labels.count(labels.files, len(report.files)), counts)


def _counts_lines(report: TreeReport, labels: Words) -> list[Line]:
    lines: list[Line] = []
    for name, counts in (
        (labels.edits, report.edits_by_rule()),
        (labels.findings, report.findings_by_rule()),
        (labels.kept, report.kept_by_rule()),
    ):
        # Unlike Counter.most_common, this sorts equal counts by name.
        ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
        rules = [f"{one_line(rule)} {number:,}" for rule, number in ranked[:_RULES_SHOWN]]
        rules += ["…"] if len(ranked) > _RULES_SHOWN else []
        head = labels.count(name, counts.total())
        lines.append(_counted(head, rules))
    return lines


def _counted(head: str, shares: Sequence[str]) -> Line:
    """Return a total followed by its parts."""
    return Line.assemble((head, "bold"), f"  {' · '.join(shares)}" if shares else "")


def _finding_lines(report: TreeReport, labels: Words, language: Language, limit: int) -> list[Line]:
    """List the findings, worst first, with identical ones merged and their locations joined."""
    groups: dict[tuple[str, str, str, str], list[tuple[str, Finding]]] = {}
    for file, finding in report.findings_by_severity():
        key = (
            finding.severity,
            finding.rule,
            finding.reason.in_language(language),
            finding.todo.in_language(language),
        )
        groups.setdefault(key, []).append((f"{file.path}:{finding.place}", finding))
    if not groups:
        return []
    lines = [Line(""), Line(labels.first, style="bold")]
    for group in list(groups.values())[:limit]:
        lines += _finding(group, labels, language)
    num_remaining = sum(len(group) for group in list(groups.values())[limit:])
    if num_remaining:
        lines.append(Line("  " + labels.more.format(count=f"{num_remaining:,}")))
    return [*lines, Line("")]


def _finding(group: list[tuple[str, Finding]], labels: Words, language: Language) -> list[Line]:
    (first_place, finding), *other_places = group
    lines = [
        Line.assemble(
            "  ",
            (labels.severities[finding.severity], _SEVERITY_STYLES[finding.severity]),
            "  ",
            (one_line(first_place), "cyan"),
            f"  {one_line(finding.rule)}  ",
            (_shortened(one_line(finding.code)), "dim"),
        )
    ]
    if other_places:
        places = [one_line(place) for place, _ in other_places[:_PLACES_SHOWN]]
        places += ["…"] if len(other_places) > _PLACES_SHOWN else []
        also = labels.also.format(count=f"{len(other_places):,}") + labels.colon
        lines.append(Line.assemble(f"    {also}", (", ".join(places), "cyan")))
    return [
        *lines,
        Line(f"    {one_line(finding.reason.in_language(language))}"),
        Line(f"    → {one_line(finding.todo.in_language(language))}"),
    ]


def _shortened(code: str, limit: int = 80) -> str:
    return code if len(code) <= limit else f"{code[: limit - 1]}…"
