"""Writes the report of a check to a file."""

from pathlib import Path

from jumar.ground.files import write_text
from jumar.ground.text import Language
from jumar.porting.check.result import CheckResult
from jumar.porting.check.show import as_json, as_markdown


def write_report(result: CheckResult, path: Path, language: Language = "en") -> None:
    """Write a report: JSON if the name ends in `.json`, else Markdown.

    Raises:
        UserError: The file cannot be written.
    """
    text = as_json(result, language) if path.suffix == ".json" else as_markdown(result, language)
    write_text(path, text)
