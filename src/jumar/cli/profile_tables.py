"""Tables of a profile in the terminal, as CSV files, and as JSON."""

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jumar.ground.errors import UserError
from jumar.ground.files import write_text
from jumar.ground.paths import is_file, is_folder, resolved
from jumar.ground.text import counted, plain_text

if TYPE_CHECKING:
    import polars as pl
    from rich.console import Console

    from jumar.profiling.profile import Profile

_LONGEST = 48
"""Letters of a cell; names of kernels and lists of shapes have thousands."""

_PLAIN_WIDTH = 40


def shown(value: object, longest: int = _LONGEST) -> str:
    """A cell as text in one line; what would move or hide other letters is spelt out."""
    if value is None:
        return ""
    if isinstance(value, float):
        if not math.isfinite(value):
            return ""
        # Adding 0 turns the "-0" of a rounding difference into "0".
        return f"{round(value, 3) + 0.0:.3f}".rstrip("0").rstrip(".")
    text = plain_text(str(value))
    return text if len(text) <= longest else text[: longest - 1] + "…"


def print_table(table: "pl.DataFrame", console: "Console") -> None:
    """Print a table: with lines in a terminal, aligned by blanks elsewhere."""
    if table.is_empty():
        console.print("  none", highlight=False)
        return
    # A column without any value says nothing and takes the room of those that do.
    kept = [name for name in table.columns if table[name].null_count() < table.height]
    table = table.select(kept)
    right = [table[name].dtype.is_numeric() for name in kept]
    rows = [[shown(value) for value in row] for row in table.iter_rows()]
    if console.is_terminal:
        from rich.box import SIMPLE_HEAD
        from rich.table import Table
        from rich.text import Text

        lined = Table(box=SIMPLE_HEAD, pad_edge=False)
        for name, is_number in zip(kept, right, strict=True):
            lined.add_column(
                name, justify="right" if is_number else "left", overflow="ellipsis", no_wrap=True
            )
        for row in rows:
            lined.add_row(*(Text(cell) for cell in row))
        console.print(lined)
        return
    cut = [[shown(cell, _PLAIN_WIDTH) for cell in row] for row in rows]
    widths = [max(len(name), *(len(row[index]) for row in cut)) for index, name in enumerate(kept)]
    for row in [list(kept), *cut]:
        cells = [
            cell.rjust(width) if is_number else cell.ljust(width)
            for cell, width, is_number in zip(row, widths, right, strict=True)
        ]
        console.file.write("  " + "  ".join(cells).rstrip() + "\n")


def print_todo(table: "pl.DataFrame", console: "Console") -> None:
    """Print the to-do list: each win with its evidence and what to change."""
    from rich.text import Text

    if table.is_empty():
        console.print("  nothing that is worth a thousandth of a step", highlight=False)
    for row in table.iter_rows(named=True):
        head = f"  {row['win_ms']:10.3f} ms {row['share_%']:5.1f} %  {shown(row['what'], 400)}"
        lines = [Text(head, style="bold")]
        lines += [Text(f"{'':23}- {shown(line, 400)}") for line in row["evidence"]]
        field = f" (--set {row['setting']}=...)" if row["setting"] else ""
        lines.append(Text(f"{'':23}try: {shown(row['change'], 400)}{field}"))
        if row["view"]:
            lines.append(Text(f"{'':23}see: --view {row['view']}", style="dim"))
        for line in lines:
            console.print(line, soft_wrap=True)


def head(profile: "Profile") -> list[str]:
    """What was read, in a few lines."""
    ranks = profile.ranks
    of = f" of {len(ranks)} ranks" if len(ranks) > 1 else ""
    chip = f", {shown(profile.chip)}" if profile.chip else ""
    lines = [
        f"{shown(profile.source, 200)}: {profile.producer}, {profile.kind}{chip}; "
        f"{counted(profile.ops.height, 'op')}{of}, {counted(profile.host.height, 'host call')}"
    ]
    for gap in profile.missing:
        needed = f" (needed for {', '.join(gap.needed_for)})" if gap.needed_for else ""
        lines.append(f"missing: {shown(gap.file, 200)}: {shown(gap.what, 300)}{needed}")
    return lines


def plain_rows(table: "pl.DataFrame") -> list[dict[str, Any]]:
    """The rows for JSON, which has no infinities."""
    return [
        {
            name: None if isinstance(value, float) and not math.isfinite(value) else value
            for name, value in row.items()
        }
        for row in table.iter_rows(named=True)
    ]


def as_json(
    profile: "Profile",
    tables: Mapping[str, "pl.DataFrame"],
    impossible: Mapping[str, str],
    *,
    peak_rates: str,
) -> str:
    """All tables of a profile as JSON, with the source of the peak rates that they use."""
    told = {
        "source": profile.source,
        "producer": profile.producer,
        "kind": profile.kind,
        "chip": profile.chip,
        "peak_rates": peak_rates or None,
        "ranks": list(profile.ranks),
        "ops": profile.ops.height,
        "missing": [
            {"file": gap.file, "what": gap.what, "needed_for": list(gap.needed_for)}
            for gap in profile.missing
        ],
        "views": {name: plain_rows(table) for name, table in tables.items()},
        "impossible": dict(impossible),
    }
    return json.dumps(told, indent=2, ensure_ascii=False)


def refuse_own_files(
    sources: Sequence[Path], *, files: Sequence[Path | None] = (), folder: Path | None = None
) -> None:
    """Refuse to write over or among what a profile is read from.

    Args:
        sources: The files and folders that are read.
        files: What is to be written; a table in a folder that is read would be a part of the
            profile from then on.
        folder: Where tables are to be written.

    Raises:
        UserError: Names the first that is refused.
    """
    read = [resolved(source) for source in sources]
    written = [file for file in files if file is not None]
    for target in written:
        place = resolved(target)
        is_inside = any(one in place.parents for one in read)
        if place in read or (is_inside and _is_profile(target)):
            raise UserError(
                "is a file that is read, and is not overwritten",
                where=str(target),
                todo="Choose another name.",
            )
    tables = [file for file in written if file.suffix.lower() == ".csv"]
    for target in [*tables, *([folder] if folder else [])]:
        place = resolved(target)
        if any(is_folder(one) and (place == one or one in place.parents) for one in read):
            raise UserError(
                "tables would be written into the profile that they are made of",
                where=str(target),
                todo="Choose a folder outside of it.",
            )


def _is_profile(path: Path) -> bool:
    from jumar.profiling.reading.files.recognition import recognised

    return is_file(path) and bool(recognised(path))


def write_tables(folder: Path, tables: Mapping[str, "pl.DataFrame"]) -> Sequence[Path]:
    """Write each table as `VIEW.csv`; lists are joined by ` | `."""
    import polars as pl

    written: list[Path] = []
    for name, table in tables.items():
        joined = [
            pl.col(column).list.join(" | ")
            for column, kind in table.schema.items()
            if isinstance(kind, pl.List)
        ]
        path = folder / f"{name}.csv"
        write_text(path, table.with_columns(joined).write_csv())
        written.append(path)
    return written
