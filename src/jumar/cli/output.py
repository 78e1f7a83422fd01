"""What commands print and write besides their result."""

import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from jumar.ground.files import write_text
from jumar.ground.tables import aligned_lines
from jumar.ground.text import print_aside, print_at_once, print_plain


def progress_printer(*, as_json: bool) -> Callable[[str], None]:
    """Return a function that prints a line of progress; beside JSON, to standard error."""
    return partial(print_at_once, file=sys.stderr if as_json else sys.stdout)


def write_beside(path: Path, text: str) -> None:
    """Write a file that an option asks for in addition, and name it on standard error.

    Raises:
        UserError: It cannot be written.
    """
    write_text(path, text)
    print_aside(f"written: {path}")


def print_table(rows: Sequence[dict[str, str]], columns: Sequence[str] | None = None) -> None:
    """Print a table with aligned columns, by default those that are not empty."""
    if not rows:
        return
    if columns is None:
        columns = [name for name in rows[0] if any(row[name] for row in rows)]
    for line in aligned_lines([columns, *([row[name] for name in columns] for row in rows)]):
        print_plain(line)
