"""Renders a port report as one self-contained HTML page."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import get_args

from jumar.ground.pages import page_source, page_template, policy_hash
from jumar.porting.edits import (
    Confidence,
    FileReport,
    FileStatus,
    Finding,
    Kept,
    Language,
    Severity,
    TreeReport,
)
from jumar.porting.report.aligning import Cell
from jumar.porting.report.folding import Folded, Shown, side_by_side
from jumar.porting.report.showing import code_and_prose, one_line, visible
from jumar.porting.report.words import words

MAX_WHOLE_FILE_LINES = 2_000
"""Of a longer file, the page contains only the lines around edits and findings."""
PAGE_CHARACTERS = 6_000_000
"""Approximate limit on the characters of differences; the page notes which ones are left out. A
browser opens a page of this size in a second or two."""
MAX_FINDINGS = 2_000
MAX_FILES = 5_000
MAX_KEPT = 1_000
_PACKAGE = "jumar.porting.report"
_MAX_OPEN_FILES = 12
_CHARACTERS_PER_ROW = 150
_MAX_LINE_LENGTH = 400
_MAX_UNCHANGED_LENGTH = 160


@dataclass(frozen=True, kw_only=True)
class FileView:
    """A file with its two sides; `left_out` if they would not fit on the page."""

    key: str
    report: FileReport
    blocks: Sequence[Shown | Folded]
    whole: bool
    left_out: bool


@dataclass(frozen=True, kw_only=True)
class FindingView:
    """A listed finding; `link` is the id of its note in the differences, empty if left out."""

    path: str
    found: Finding
    link: str


def render(report: TreeReport, language: Language = "en") -> str:
    """Return the page as HTML, with embedded style and script and no external links.

    The template engine escapes every text of the report, and the page's policy allows only the
    script that filters the page.
    """
    views = _with_differences(report)
    style, script = (page_source(_PACKAGE, name) for name in ("page.css", "page.js"))
    findings = list(report.findings_by_severity())
    view_of = {id(view.report): view for view in views}
    kept = [(file.path, kept) for file in report.files for kept in file.kept]
    page = page_template(_PACKAGE).render(
        report=report,
        say=words(language),
        language=language,
        style=style,
        script=script,
        style_hash=policy_hash(style),
        script_hash=policy_hash(script),
        statuses=get_args(FileStatus),
        severities=get_args(Severity),
        confidences=get_args(Confidence),
        edits=report.edits_by_rule(),
        found=report.findings_by_rule(),
        kept=report.kept_by_rule(),
        rules=sorted({*report.edits_by_rule(), *report.findings_by_rule(), *report.kept_by_rule()}),
        findings=_grouped(
            [
                _finding_view(file, finding, view_of.get(id(file)))
                for file, finding in findings[:MAX_FINDINGS]
            ]
        ),
        findings_left_out=max(0, len(findings) - MAX_FINDINGS),
        views=views,
        files_open=len(views) <= _MAX_OPEN_FILES,
        others=[file for file in report.files if not file.edits][:MAX_FILES],
        others_left_out=max(0, sum(not file.edits for file in report.files) - MAX_FILES),
        kept_places=sorted(kept, key=_by_rule)[:MAX_KEPT],
        kept_left_out=max(0, len(kept) - MAX_KEPT),
        is_fold=_is_fold,
        pieces=_pieces,
        visible=visible,
        one_line=one_line,
        code_and_prose=code_and_prose,
    )
    return f"{page}\n"


def _by_rule(pair: tuple[str, Kept]) -> tuple[str, str, object]:
    return pair[1].rule, pair[0], pair[1].place


def _with_differences(report: TreeReport) -> list[FileView]:
    """Return the files with edits: all changes first, then unchanged lines while space remains."""
    budget = PAGE_CHARACTERS
    views: list[FileView] = []
    for number, file in enumerate(report.files):
        if not file.edits:
            continue
        key = f"f{number}"
        blocks = side_by_side(file, key) if budget > 0 else []
        size = sum(_size_of_rows(block) for block in blocks if isinstance(block, Shown))
        left_out = size > budget or not blocks
        budget -= 0 if left_out else size
        views.append(
            FileView(
                key=key,
                report=file,
                blocks=[] if left_out else blocks,
                whole=False,
                left_out=left_out,
            )
        )
    for index, view in enumerate(views):
        size = sum(_size_of_fold(block) for block in view.blocks if isinstance(block, Folded))
        if size <= budget and view.report.before.count("\n") <= MAX_WHOLE_FILE_LINES:
            views[index] = replace(view, whole=True)
            budget -= size
    return views


def _size_of_rows(block: Shown) -> int:
    return sum(
        _CHARACTERS_PER_ROW * (1 + 2 * len(noted_row.notes))
        + sum(
            min(_MAX_LINE_LENGTH, len(cell.text))
            for cell in (noted_row.row.left, noted_row.row.right)
            if cell is not None
        )
        for noted_row in block.rows
    )


def _size_of_fold(block: Folded) -> int:
    return _CHARACTERS_PER_ROW + sum(len(line) + 1 for line in block.lines)


def _finding_view(file: FileReport, finding: Finding, view: FileView | None) -> FindingView:
    link = ""
    if view is not None and not view.left_out:
        number = next(i for i, candidate in enumerate(file.findings) if candidate is finding)
        link = f"{view.key}-d{number}"
    return FindingView(path=file.path, found=finding, link=link)


def _grouped(views: Sequence[FindingView]) -> list[list[FindingView]]:
    """Group identical findings, since a sentence repeated fifty times would hide the others."""
    groups: dict[object, list[FindingView]] = {}
    for view in views:
        finding = view.found
        content = (finding.rule, finding.reason, finding.todo)
        rating = (finding.severity, finding.confidence, finding.source)
        groups.setdefault((content, rating), []).append(view)
    return list(groups.values())


def _is_fold(block: Shown | Folded) -> bool:
    return isinstance(block, Folded)


def _pieces(cell: Cell) -> Iterator[tuple[str, str]]:
    """Yield the parts of a line as class and text; long parts are shortened in the middle."""
    is_long = len(cell.text) > _MAX_LINE_LENGTH
    # A line that changed entirely is marked as a line; marking all its parts would distract.
    is_whole = all(part.changed for part in cell.parts)
    for part in cell.parts:
        kind = "changed" if part.changed and not is_whole else ""
        limit = _MAX_LINE_LENGTH if part.changed else _MAX_UNCHANGED_LENGTH
        if not is_long or len(part.text) <= limit:
            yield kind, visible(part.text)
            continue
        half = limit // 2
        yield kind, visible(part.text[:half])
        yield "cut", f"{len(part.text) - 2 * half:,}"
        yield kind, visible(part.text[-half:])
