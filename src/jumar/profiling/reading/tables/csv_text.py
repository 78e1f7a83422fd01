"""CSV files as tables of text: what is in a field is decided column by column afterwards."""

import warnings
from collections.abc import Callable, Generator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path

import polars as pl

from jumar.profiling.reading.files.opening import as_utf8


@contextmanager
def scanned(
    path: Path, *, typed: Callable[[str], pl.DataType | None] = lambda _: None
) -> Generator[pl.LazyFrame, None, None]:
    """The fields of a CSV file as text, read when the frame is collected.

    Lines of another length than the header are cut or filled: a capture that was killed ends
    in the middle of a line.

    Args:
        path: The file.
        typed: What columns are read as by their name, where it is not text: a float, which is null
            where the field holds no number, or categories.
    """
    with as_utf8(path) as readable:
        frame = _lazy(readable, {})
        found = {name: typed(name) for name in frame.collect_schema().names()}
        kinds = {name: kind for name, kind in found.items() if kind is not None}
        with _one_coding(), _no_row_lost():
            yield _lazy(readable, kinds) if kinds else frame


@contextmanager
def _no_row_lost() -> Generator[None, None, None]:
    """Raise where polars only warns that rows are missing, as it does where fields may be null."""
    with warnings.catch_warnings(record=True) as found:
        warnings.filterwarnings("always", message="CSV malformed")
        yield
    for one in found:
        if str(one.message).startswith("CSV malformed"):
            raise pl.exceptions.ComputeError(str(one.message))
        warnings.warn_explicit(one.message, one.category, one.filename, one.lineno)


def _one_coding() -> AbstractContextManager[object]:
    """What makes releases before 1.32 give the categories of all parts of a file the same codes."""
    release = tuple(int(part) for part in pl.__version__.split(".")[:2])
    if release < (1, 32):
        return pl.StringCache()  # pyright: ignore[reportDeprecated]
    return nullcontext()


def _lazy(path: Path, kinds: Mapping[str, pl.DataType]) -> pl.LazyFrame:
    return pl.scan_csv(
        path,
        infer_schema=False,
        schema_overrides=kinds,
        ignore_errors=bool(kinds),
        truncate_ragged_lines=True,
        encoding="utf8-lossy",
        low_memory=True,
        raise_if_empty=False,
    )


def read_text(path: Path) -> pl.DataFrame:
    """The whole CSV file as text."""
    with scanned(path) as frame:
        return frame.collect()
