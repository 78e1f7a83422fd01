"""Environment variables that a capture recorded."""

from pathlib import Path

import polars as pl

from jumar.profiling.reading.events import load_object
from jumar.profiling.reading.part import Part


def read_metadata(path: Path, shown: str, kind: str) -> Part:
    """`profiler_metadata.json` of torch_npu; additions by users are not read."""
    table = variables(load_object(path).get("ENV_VARIABLES"))
    return Part(file=shown, kind=kind, statistics={"environment": table} if table.height else {})


def variables(recorded: object) -> pl.DataFrame:
    """`variable` and `value` of a JSON object, empty if not set.

    Args:
        recorded: The object; anything else has no variables.
    """
    pairs = recorded.items() if isinstance(recorded, dict) else ()
    rows = [(str(name), "" if value is None else str(value)) for name, value in pairs]
    schema = {"variable": pl.String(), "value": pl.String()}
    return pl.DataFrame(rows, schema=schema, orient="row")
