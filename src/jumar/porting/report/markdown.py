"""A report as Markdown."""

import re
from collections.abc import Iterator
from typing import get_args

from jumar.porting.edits import Edit, FileReport, FileStatus, Finding, Language, TreeReport
from jumar.porting.report.showing import code_and_prose, lines_of, moved_location, one_line, visible
from jumar.porting.report.words import Words, words

_SPECIAL = re.compile(r"[\\*\[\]<>|~#$&`]|(?<![^\W_])_|_(?![^\W_])")
"""Underscores within words are not escaped, so that names such as loss_scale stay readable."""


def markdown(report: TreeReport, language: Language = "en", *, list_kept: bool = False) -> str:
    """Return the report as a Markdown document.

    Args:
        report: The outcome of the port.
        language: Language of sentences and headings.
        list_kept: Whether to list the code left on purpose rather than count it.
    """
    labels = words(language)
    lines = [
        *_head(report, labels),
        *_counts_by_rule(report, labels),
        *_findings(report, labels, language),
        *_edits(report, labels, language),
        *_kept(report, labels, language, list_kept),
    ]
    return "\n".join(lines) + "\n"


def code(text: str) -> str:
    """Return a code span on one line, which may contain any backticks."""
    text = one_line(text)
    if not text.strip():
        return ""
    fence = "`" * (_longest_run(text) + 1)
    space = " " if text.startswith(("`", " ")) or text.endswith(("`", " ")) else ""
    return f"{fence}{space}{text}{space}{fence}"


def code_cell(text: str) -> str:
    """Return a code span for a table, where a pipe would end the cell even within the span."""
    return code(text).replace("|", "\\|")


def prose(text: str) -> str:
    """Return a sentence of a rule with text between backticks as code, the rest as plain text."""
    return "".join(
        code(part) or " " if is_code else _SPECIAL.sub(r"\\\g<0>", one_line(part))
        for is_code, part in code_and_prose(text)
    )


def _longest_run(text: str) -> int:
    return max((len(run) for run in re.findall("`+", text)), default=0)


def _head(report: TreeReport, labels: Words) -> Iterator[str]:
    yield f"# {prose(labels.title.format(root=report.root))}"
    yield ""
    options = code(" ".join(report.options)) if report.options else labels.default_options
    yield f"- {labels.options}{labels.colon}{options}"
    if report.version:
        yield f"- {labels.version}{labels.colon}{prose(report.version)}"
    yield f"- {labels.count(labels.edits, report.edits_by_rule().total())}"
    yield f"- {labels.count(labels.findings, report.findings_by_rule().total())}"
    yield f"- {labels.count(labels.kept, report.kept_by_rule().total())}"
    if report.added:
        yield f"- {labels.added}{labels.colon}{', '.join(code(path) for path in report.added)}"
    yield ""
    yield f"| {labels.files} | | |"
    yield "|---|---:|---|"
    for status in get_args(FileStatus):
        meaning = labels.status_meanings[status]
        yield f"| {labels.statuses[status]} | {report.count(status):,} | {meaning} |"
    yield ""


def _counts_by_rule(report: TreeReport, labels: Words) -> Iterator[str]:
    edits, findings, kept = (
        report.edits_by_rule(),
        report.findings_by_rule(),
        report.kept_by_rule(),
    )
    rules = sorted({*edits, *findings, *kept})
    if not rules:
        return
    yield f"## {labels.by_rule}"
    yield ""
    yield f"| {labels.rule} | {labels.edits} | {labels.findings} | {labels.kept} |"
    yield "|---|---:|---:|---:|"
    for rule in rules:
        yield f"| {code_cell(rule)} | {edits[rule]:,} | {findings[rule]:,} | {kept[rule]:,} |"
    yield ""


def _findings(report: TreeReport, labels: Words, language: Language) -> Iterator[str]:
    yield f"## {labels.first}"
    yield ""
    last_severity = ""
    for file, finding in report.findings_by_severity():
        if finding.severity != last_severity:
            last_severity = finding.severity
            meaning = labels.severity_meanings[finding.severity]
            yield f"### {labels.severities[finding.severity]} ({meaning})"
            yield ""
        yield from _finding(file, finding, labels, language)
    if not last_severity:
        yield labels.no_findings
        yield ""


def _finding(
    file: FileReport, finding: Finding, labels: Words, language: Language
) -> Iterator[str]:
    location = moved_location(file.path, finding.place, finding.place_after, labels.removed)
    yield f"- **{code(location)}** {code(finding.code)}  "
    yield f"  {prose(finding.reason.in_language(language))}  "
    yield f"  **{labels.todo}**{labels.colon}{prose(finding.todo.in_language(language))}  "
    yield f"  {_because(finding, labels)}"
    yield ""


def _because(item: Edit | Finding, labels: Words) -> str:
    return (
        f"{labels.rule}{labels.colon}{code(item.rule)} · "
        f"{labels.confidence}{labels.colon}{labels.confidences[item.confidence]} · "
        f"{labels.source}{labels.colon}{prose(item.source)}"
    )


def _edits(report: TreeReport, labels: Words, language: Language) -> Iterator[str]:
    yield f"## {labels.every_edit}"
    yield ""
    files = [file for file in report.files if file.edits]
    for file in files:
        yield f"### {code(file.path)}"
        yield ""
        if file.note is not None:
            yield prose(file.note.in_language(language))
            yield ""
        for edit in file.edits:
            yield from _edit(edit, labels, language)
    if not files:
        yield labels.no_edits
        yield ""
    without_edits = [file for file in report.files if file.note is not None and not file.edits]
    if without_edits:
        yield f"## {labels.files_without_edits}"
        yield ""
        for file in without_edits:
            note = prose(file.note.in_language(language)) if file.note is not None else ""
            yield f"- {code(file.path)} ({labels.statuses[file.status]}): {note}"
        yield ""


def _edit(edit: Edit, labels: Words, language: Language) -> Iterator[str]:
    location = str(edit.place)
    if edit.place_after != edit.place:
        location += f" → {edit.place_after if edit.place_after is not None else labels.removed}"
    yield f"**{location}** {prose(edit.reason.in_language(language))}  "
    yield _because(edit, labels)
    yield ""
    changed_lines = [
        *(f"-{_shown(line)}" for line in lines_of(edit.before)),
        *(f"+{_shown(line)}" for line in lines_of(edit.after)),
    ]
    fence = "`" * max(3, _longest_run("\n".join(changed_lines)) + 1)
    yield f"{fence}diff"
    yield from changed_lines
    yield fence
    yield ""


def _shown(line: str) -> str:
    return visible(line.rstrip("\r\n"))


def _kept(report: TreeReport, labels: Words, language: Language, list_kept: bool) -> Iterator[str]:
    counts = report.kept_by_rule()
    if not counts:
        return
    yield f"## {labels.kept[0].upper()}{labels.kept[1:]}"
    yield ""
    yield f"{labels.kept_meaning}{'' if list_kept else ' ' + labels.kept_unlisted}"
    yield ""
    for rule, number in sorted(counts.items()):
        yield f"- {code(rule)}: {number:,}"
        if not list_kept:
            continue
        for file in report.files:
            for entry in file.kept:
                if entry.rule == rule:
                    location = f"{file.path}:{entry.place}"
                    reason = prose(entry.reason.in_language(language))
                    yield f"  - {code(location)} {code(entry.code)} {reason}"
    yield ""
