"""Save reports to disk: the suffix decides the format, and no file is left half written."""

from pathlib import Path

from jumar.ground.errors import UserError
from jumar.ground.files import write_text
from jumar.porting.edits import Language, TreeReport
from jumar.porting.report.json_report import dumps
from jumar.porting.report.markdown import markdown

SUFFIXES = (".md", ".json", ".html")


def report_suffix(path: Path) -> str:
    """Return the format that a file name requests; called early, before hours of work.

    Raises:
        UserError: The format is unknown.
    """
    suffix = path.suffix.lower()
    if suffix not in SUFFIXES:
        raise UserError(
            f"cannot write a report as '{path.suffix or path.name}'",
            where=str(path),
            todo=f"Use a name that ends in one of {', '.join(SUFFIXES)}.",
        )
    return suffix


def save_report(report: TreeReport, path: Path, language: Language = "en") -> None:
    """Write a report: Markdown, JSON or one HTML page, by the suffix of its name.

    Raises:
        UserError: The suffix is unknown, or the file cannot be written.
    """
    suffix = report_suffix(path)
    if suffix == ".json":
        text = dumps(report)
    elif suffix == ".md":
        text = markdown(report, language)
    else:
        # Importing Jinja takes 60 ms, which a port without a page should not spend.
        from jumar.porting.report.page import render

        text = render(report, language)
    # Undecodable bytes in file names are escaped.
    write_text(path, text, errors="backslashreplace")
