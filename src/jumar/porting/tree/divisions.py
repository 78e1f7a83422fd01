"""Finds divisions in scripts that also parse in Python 3 but belong to a Python 2 program."""

from collections.abc import Mapping
from dataclasses import replace

from jumar.porting.edits import FileReport, Finding, Place
from jumar.porting.python2.guards import survey
from jumar.porting.python2.names import python2_findings
from jumar.porting.script.module import parsed_or_none
from jumar.porting.script.project import Project
from jumar.porting.tree.imports import import_graph, ported_text, reached

_RULE = "python2-division"


def with_divisions(reports: Mapping[str, FileReport], project: Project) -> dict[str, FileReport]:
    """Add findings for the divisions in everything that a Python 2 script imports.

    A script without `print` parses in both versions. Only other Python 2 names in it, or a Python 2
    script that imports it, reveal that its divisions round down.

    Args:
        reports: The reports of all scripts of a tree, by path.
        project: The tree.
    """
    result = dict(reports)
    # A script that Python 3 cannot parse, or that uses names it lacks, only runs in Python 2.
    python2_paths = [
        path
        for path, report in reports.items()
        if any(edit.rule.startswith("python2-") for edit in report.edits)
    ]
    if not python2_paths:
        return result
    texts = {path: ported_text(report, path, project) for path, report in reports.items()}
    imports = import_graph(texts, project)
    for path in dict.fromkeys(part for start in python2_paths for part in reached(start, imports)):
        report = reports[path]
        before = report.before.removeprefix("\ufeff") or texts[path]
        tree = parsed_or_none(before.removeprefix("\ufeff"))
        if tree is None or report.status == "unreadable":
            continue
        division_findings = [
            replace(finding, place_after=_moved(finding, before, texts[path]))
            for finding in python2_findings(survey(tree), before, lambda place: place)
            if finding.rule == _RULE
        ]
        reported = {(finding.rule, finding.place) for finding in report.findings}
        new_findings = [
            finding
            for finding in division_findings
            if (finding.rule, finding.place) not in reported
        ]
        if new_findings:
            findings = sorted((*report.findings, *new_findings), key=lambda finding: finding.place)
            result[path] = replace(report, findings=tuple(findings))
    return result


def _moved(finding: Finding, before: str, after: str) -> Place | None:
    """The position of a finding's line in the ported text; None if the line is gone."""
    line = before.split("\n")[finding.place.line - 1]
    line_numbers = [number for number, text in enumerate(after.split("\n"), 1) if text == line]
    nearest = min(line_numbers, key=lambda number: abs(number - finding.place.line), default=None)
    return Place(line=nearest, column=finding.place.column) if nearest else None
