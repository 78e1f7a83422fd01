"""The measured peak rates in jumar's own recordings on a CPU."""

from pathlib import Path
from typing import Final

import polars as pl

from jumar.profiling.reading.events import BrokenJson
from jumar.profiling.reading.file_content import FileContent

_MAX_BYTES: Final = 1 << 20


def read_chip_table(path: Path, display_name: str, kind: str) -> FileContent:
    """Read the text of the file; `views/chips.py` parses it."""
    with path.open("rb") as file:
        text = file.read(_MAX_BYTES + 1)
    if len(text) > _MAX_BYTES:
        raise BrokenJson("larger than 1 MiB, so not a chip table")
    rows = pl.DataFrame({"json": [text.decode("utf-8", "replace")]})
    return FileContent(file=display_name, kind=kind, statistics={"chips": rows})
