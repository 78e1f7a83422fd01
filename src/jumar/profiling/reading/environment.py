"""Environment variables recorded with a capture."""

from pathlib import Path

import polars as pl

from jumar.profiling.reading.events import load_object
from jumar.profiling.reading.file_content import FileContent


def read_metadata(path: Path, display_name: str, kind: str) -> FileContent:
    """Read torch_npu's `profiler_metadata.json`; entries added by users are ignored."""
    table = variables(load_object(path).get("ENV_VARIABLES"))
    return FileContent(
        file=display_name, kind=kind, statistics={"environment": table} if table.height else {}
    )


def variables(recorded: object) -> pl.DataFrame:
    """A table of `variable` and `value`; an unset variable has an empty value.

    Args:
        recorded: The JSON object of variables; anything else yields no rows.
    """
    pairs = recorded.items() if isinstance(recorded, dict) else ()
    rows = [(str(name), "" if value is None else str(value)) for name, value in pairs]
    schema = {"variable": pl.String(), "value": pl.String()}
    return pl.DataFrame(rows, schema=schema, orient="row")
