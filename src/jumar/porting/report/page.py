"""The page of a port: one self-contained HTML file."""

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
from jumar.porting.report.showing import code_and_prose, lines_of, one_line, visible
from jumar.porting.report.words import words

LINES_KEPT_WHOLE = 2_000
"""Lines; the page shows only those around edits and findings of a longer file."""
PAGE_CHARACTERS = 6_000_000
"""About this many characters of differences fit on a page; what follows is left out, and the
page says so. A browser opens a page of that size in a second or two."""
MAX_FINDINGS = 2_000
MAX_FILES = 5_000
MAX_KEPT = 1_000
_PACKAGE = "jumar.porting.report"
_FILES_OPEN = 12
_CHARACTERS_A_ROW = 150
_LONG_LINE = 400
_LONG_PART = 160


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
    """A finding of the list; `link` leads to it in the differences, if it is on the page."""

    path: str
    found: Finding
    link: str


def render(report: TreeReport, language: Language = "en") -> str:
    """The page as HTML, with its style and script inside and no address of anything outside.

    The template engine escapes every text of the report, and the page's policy lets only the script
    run that filters the page.
    """
    views = _with_differences(report)
    style, script = (page_source(_PACKAGE, name) for name in ("page.css", "page.js"))
    findings = list(report.with_findings())
    keys = {id(view.report): view for view in views}
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
                _finding_view(file, finding, keys.get(id(file)))
                for file, finding in findings[:MAX_FINDINGS]
            ]
        ),
        findings_left_out=max(0, len(findings) - MAX_FINDINGS),
        views=views,
        files_open=len(views) <= _FILES_OPEN,
        others=[file for file in report.files if not file.edits][:MAX_FILES],
        others_left_out=max(0, sum(not file.edits for file in report.files) - MAX_FILES),
        kept_places=sorted(kept, key=_by_rule)[:MAX_KEPT],
        kept_left_out=max(0, len(kept) - MAX_KEPT),
        is_fold=_is_fold,
        pieces=_pieces,
        lines_of=lines_of,
        visible=visible,
        one_line=one_line,
        code_and_prose=code_and_prose,
    )
    return f"{page}\n"


def _by_rule(pair: tuple[str, Kept]) -> tuple[str, str, object]:
    return pair[1].rule, pair[0], pair[1].place


def _with_differences(report: TreeReport) -> list[FileView]:
    """The files with edits: the changes in each, then unchanged lines if there is room."""
    left = PAGE_CHARACTERS
    views: list[FileView] = []
    for number, file in enumerate(report.files):
        if not file.edits:
            continue
        key = f"f{number}"
        blocks = side_by_side(file, key) if left > 0 else []
        size = sum(_size_of_rows(block) for block in blocks if isinstance(block, Shown))
        left_out = size > left or not blocks
        left -= 0 if left_out else size
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
        if size <= left and view.report.before.count("\n") <= LINES_KEPT_WHOLE:
            views[index] = replace(view, whole=True)
            left -= size
    return views


def _size_of_rows(block: Shown) -> int:
    return sum(
        _CHARACTERS_A_ROW * (1 + 2 * len(noted_row.notes))
        + sum(
            min(_LONG_LINE, len(cell.text))
            for cell in (noted_row.row.left, noted_row.row.right)
            if cell is not None
        )
        for noted_row in block.rows
    )


def _size_of_fold(block: Folded) -> int:
    return _CHARACTERS_A_ROW + sum(len(line) + 1 for line in block.lines)


def _finding_view(file: FileReport, finding: Finding, view: FileView | None) -> FindingView:
    link = ""
    if view is not None and not view.left_out:
        number = next(i for i, candidate in enumerate(file.findings) if candidate is finding)
        link = f"{view.key}-d{number}"
    return FindingView(path=file.path, found=finding, link=link)


def _grouped(views: Sequence[FindingView]) -> list[list[FindingView]]:
    """Identical findings grouped: a sentence repeated fifty times hides the others."""
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
    """The parts of a line as class and text; for a very long line, those around its changes."""
    is_long = len(cell.text) > _LONG_LINE
    # A line that changed entirely is marked as a line; marking each character would distract.
    is_whole = all(part.changed for part in cell.parts)
    for part in cell.parts:
        kind = "changed" if part.changed and not is_whole else ""
        limit = _LONG_LINE if part.changed else _LONG_PART
        if not is_long or len(part.text) <= limit:
            yield kind, visible(part.text)
            continue
        half = limit // 2
        yield kind, visible(part.text[:half])
        yield "cut", f"{len(part.text) - 2 * half:,}"
        yield kind, visible(part.text[-half:])
