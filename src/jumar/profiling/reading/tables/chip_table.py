"""The rates of the machine, which our capture of a CPU writes next to its tables."""

from pathlib import Path
from typing import Final

import polars as pl

from jumar.profiling.reading.events import BrokenJson
from jumar.profiling.reading.part import Part

_LARGEST: Final = 1 << 20


def read_chip_table(path: Path, shown: str, kind: str) -> Part:
    """The file unchanged; its user parses it."""
    with path.open("rb") as file:
        text = file.read(_LARGEST + 1)
    if len(text) > _LARGEST:
        raise BrokenJson("a table of chips is smaller than 1 MB")
    rows = pl.DataFrame({"json": [text.decode("utf-8", "replace")]})
    return Part(file=shown, kind=kind, statistics={"chips": rows})
