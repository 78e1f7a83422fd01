"""Writing a report beside its place, then renaming it."""

import os
import tempfile
from pathlib import Path

from jumar.ground.errors import UserError
from jumar.porting.check.result import CheckResult
from jumar.porting.check.show import as_json, as_markdown


def write_report(result: CheckResult, path: Path) -> None:
    """Write a report: JSON where the name ends in `.json`, else Markdown.

    Raises:
        UserError: It cannot be written there.
    """
    text = as_json(result) if path.suffix == ".json" else as_markdown(result)
    try:
        descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        try:
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                file.write(text)
            Path(name).chmod(0o644)
            Path(name).replace(path)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise
    except OSError as error:
        raise UserError(
            f"'{path}' cannot be written: {error.strerror}",
            where="--report",
            todo="Name a file in a folder that is there and that you may write to.",
        ) from error
