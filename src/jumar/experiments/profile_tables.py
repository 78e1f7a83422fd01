"""Tables of a run's profile for the page of the run."""

from pathlib import Path
from typing import Final

from jumar.experiments.run_reading import Run
from jumar.ground.errors import UserError
from jumar.ground.text import plain_text
from jumar.report.content import PageTable

_VIEWS: Final = ("todo", "steps", "types")
_MAX_ROWS: Final = 8
_MAX_CELL_LENGTH: Final = 160
_MAX_BYTES: Final = 200 * 2**20
"""Larger profiles take minutes to read; `jumar profile` can write a page for them."""


def profile_tables(run: Run) -> list[PageTable]:
    """Return advice on a run's speed, a breakdown of its steps, and its most expensive op types.

    Without a profile there are no tables. For an unreadable or large profile there is one with the
    reason.
    """
    folder = run.directory / "profile"
    if not folder.is_dir():
        return []
    command = f"jumar profile show {folder}"
    size = sum(path.stat().st_size for path in folder.iterdir() if path.is_file())
    if size > _MAX_BYTES:
        return [_unread(f"{size / 2**20:.0f} MiB, too large for this page", command)]
    try:
        return _read(folder, command)
    except UserError as error:
        return [_unread(error.what, command)]


def _unread(reason: str, command: str) -> PageTable:
    return PageTable(title="Profile", header=("not shown", "command"), rows=[(reason, command)])


def _read(folder: Path, command: str) -> list[PageTable]:
    from jumar.profiling import read  # polars takes a while to import, and few runs need it
    from jumar.profiling.views import VIEWS, Options, answers

    result = answers(read([folder]), [VIEWS[name] for name in _VIEWS], Options(top=_MAX_ROWS))
    tables: list[PageTable] = []
    for name, table in result.tables.items():
        notes = [f"The whole table: {command} --view {name} --top 0"]
        if name == "todo":
            table = table.select("win_ms", "share_%", "what", "change")
        listing = VIEWS[name].listing(table.head(_MAX_ROWS))
        numeric = [index for index, is_number in enumerate(listing.numeric) if is_number]
        page_table = PageTable(
            title=f"Profile: {listing.title.en}",
            header=listing.headings("en"),
            rows=[[plain_text(cell) for cell in row] for row in listing.cells(_MAX_CELL_LENGTH)],
            numeric=numeric,
            notes=notes,
        )
        tables.append(page_table)
    return [table for table in tables if table.rows]
