"""CSV files as tables of text: what is in a field is decided column by column afterwards."""

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import polars as pl

from jumar.profiling.reading.opening import as_utf8


@contextmanager
def scanned(path: Path) -> Generator[pl.LazyFrame, None, None]:
    """The fields of a CSV file as text, read when the frame is collected.

    Lines of another length than the header are cut or filled: a capture that was killed ends
    in the middle of a line.
    """
    with as_utf8(path) as readable:
        yield pl.scan_csv(
            readable,
            infer_schema=False,
            truncate_ragged_lines=True,
            encoding="utf8-lossy",
            low_memory=True,
            raise_if_empty=False,
        )


def read_text(path: Path) -> pl.DataFrame:
    """The whole CSV file as text."""
    with scanned(path) as frame:
        return frame.collect()
