"""Tables of a profile in the terminal, as CSV files, and as JSON."""

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jumar.ground.errors import UserError
from jumar.ground.files import write_text
from jumar.ground.paths import is_file, is_folder, resolved
from jumar.ground.tables import aligned_lines
from jumar.ground.text import Language
from jumar.profiling.showing import shown

if TYPE_CHECKING:
    import polars as pl
    from rich.console import Console

    from jumar.profiling.listing import Listing
    from jumar.profiling.profile import Profile
    from jumar.profiling.views import Answers

_MAX_CELL_WIDTH = 48
"""Maximum number of characters in a cell; kernel names and lists of shapes can have thousands."""

_PLAIN_WIDTH = 40


def print_title(text: str, console: "Console") -> None:
    """Print the heading of a table or list."""
    console.print(f"\n{text}", style="bold", soft_wrap=True)


def print_listing(listing: "Listing", console: "Console", language: Language) -> None:
    """Print a table with its title, with rules on a terminal and aligned by spaces elsewhere."""
    from jumar.profiling.texts import texts_in

    print_title(listing.title.in_language(language), console)
    if listing.table.is_empty():
        console.print(f"  {texts_in(language)['nothing']}")
        return
    # English headings are also the column names in JSON and CSV.
    heads = (
        [column.name for column in listing.visible_columns]
        if language == "en"
        else listing.headings(language)
    )
    if console.is_terminal:
        _print_lined(listing, heads, console)
    else:
        _print_aligned(listing, heads, console)


def _print_lined(listing: "Listing", heads: list[str], console: "Console") -> None:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table as RichTable
    from rich.text import Text as Cell

    rich_table = RichTable(box=SIMPLE_HEAD, pad_edge=False)
    for head, is_number in zip(heads, listing.numeric, strict=True):
        rich_table.add_column(
            head, justify="right" if is_number else "left", overflow="ellipsis", no_wrap=True
        )
    for row in listing.cells(_MAX_CELL_WIDTH):
        rich_table.add_row(*map(Cell, row))
    console.print(rich_table)


def _print_aligned(listing: "Listing", heads: list[str], console: "Console") -> None:
    rows = [heads, *listing.cells(_PLAIN_WIDTH)]
    numeric = [column for column, is_number in enumerate(listing.numeric) if is_number]
    for line in aligned_lines(rows, numeric=numeric):
        console.file.write(f"  {line}\n")


def print_advice(table: "pl.DataFrame", console: "Console", language: Language) -> None:
    """Print the to-do list: each saving with its evidence and the change to make."""
    from rich.text import Text as Line

    from jumar.profiling.texts import texts_in

    texts = texts_in(language)
    if table.is_empty():
        console.print(f"  {texts['no_advice']}")
    for row in table.iter_rows(named=True):
        head = f"  {row['win_ms']:10.3f} ms {row['share_%']:5.1f} %  {shown(row['what'], 400)}"
        lines = [Line(head, style="bold")]
        lines += [Line(f"{'':23}- {shown(line, 400)}") for line in row["evidence"]]
        field = f" (--set {row['setting']}=...)" if row["setting"] else ""
        lines.append(Line(f"{'':23}{texts['try']}{shown(row['change'], 400)}{field}"))
        if row["view"]:
            lines.append(Line(f"{'':23}{texts['see'].format(view=row['view'])}", "dim"))
        for line in lines:
            console.print(line, soft_wrap=True)


def plain_rows(table: "pl.DataFrame") -> list[dict[str, Any]]:
    """Return the rows for JSON, with null for infinity and NaN."""
    return [
        {
            name: None if isinstance(value, float) and not math.isfinite(value) else value
            for name, value in row.items()
        }
        for row in table.iter_rows(named=True)
    ]


def as_json(profile: "Profile", answered: "Answers", *, peak_rates: str) -> str:
    """Return all tables of a profile as JSON, with the source of the peak rates."""
    from jumar.profiling.views.step_split import contradictions

    content = {
        "source": profile.source,
        "producer": profile.producer,
        "kind": profile.kind,
        "chip": profile.chip,
        "peak_rates": peak_rates or None,
        "ranks": list(profile.ranks),
        "ops": profile.ops.height,
        "contradictions": [line.en for line in contradictions(profile)],
        "missing": [
            {"file": gap.file, "what": gap.what, "needed_for": list(gap.needed_for)}
            for gap in profile.missing
        ],
        "views": {name: plain_rows(table) for name, table in answered.tables.items()},
        "cut": answered.row_counts,
        "impossible": answered.impossible,
    }
    return json.dumps(content, indent=2, ensure_ascii=False)


def refuse_own_files(
    sources: Sequence[Path], *, files: Sequence[Path | None] = (), folder: Path | None = None
) -> None:
    """Refuse to overwrite the files of a profile, or to add tables to its folder.

    Args:
        sources: The files and folders of the profile.
        files: The files to write; a table in a source folder would become part of the profile.
        folder: The folder for tables.

    Raises:
        UserError: A file is refused; the message names the first.
    """
    source_paths = [resolved(source) for source in sources]
    targets = [file for file in files if file is not None]
    for target in targets:
        target_path = resolved(target)
        is_inside = any(path in target_path.parents for path in source_paths)
        if target_path in source_paths or (is_inside and _is_profile(target)):
            raise UserError(
                "would overwrite a file of the profile",
                where=str(target),
                todo="Choose another name.",
            )
    tables = [file for file in targets if file.suffix.lower() == ".csv"]
    for target in [*tables, *([folder] if folder else [])]:
        target_path = resolved(target)
        if any(
            is_folder(path) and (target_path == path or path in target_path.parents)
            for path in source_paths
        ):
            raise UserError(
                "tables would be written into the folder of the profile",
                where=str(target),
                todo="Choose another folder.",
            )


def _is_profile(path: Path) -> bool:
    from jumar.profiling.reading.files.recognition import recognised

    return is_file(path) and bool(recognised(path))


def write_tables(folder: Path, tables: Mapping[str, "pl.DataFrame"]) -> Sequence[Path]:
    """Write each table as `VIEW.csv`; the items of lists are joined by ` | `."""
    import polars as pl

    from jumar.profiling.writing import without_formulas

    paths: list[Path] = []
    for name, table in tables.items():
        joined_columns = [
            pl.col(column).list.join(" | ")
            for column, kind in table.schema.items()
            if isinstance(kind, pl.List)
        ]
        path = folder / f"{name}.csv"
        write_text(path, without_formulas(table.with_columns(joined_columns)).write_csv())
        paths.append(path)
    return paths
