"""`jumar profile compare`."""

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jumar.cli.options import JsonFlag
from jumar.ground.errors import EXIT_CODE, UserError
from jumar.ground.files import write_text
from jumar.ground.text import counted, print_plain

if TYPE_CHECKING:
    import polars as pl
    from rich.console import Console

    from jumar.profiling.comparison import Comparison, Edit, Side
    from jumar.profiling.profile import Profile


def compare(
    before: Path,
    after: Path,
    /,
    *more: Path,
    top: int = 15,
    mixlist: Path | None = None,
    csv: Path | None = None,
    json_: JsonFlag = False,
    page: Path | None = None,
) -> int:
    """Explain why a step takes longer or shorter than before, op by op.

    The parts add up exactly to the difference. With more than two profiles, each is compared with
    the first. The exit code is 2 if --mixlist was given and the profiles have no dtypes, or no
    edit would save time.

    Parameters
    ----------
    before
        Folder or file of the first profile.
    after
        Folder or file of the second one.
    more
        Further profiles.
    top
        Number of groups of ops to show; 0 for all.
    mixlist
        Write the proposed edits to this file, for `--set precision.modify_mixlist=FILE`.
    csv
        Also write all groups of ops to this CSV file.
    json_
        Print JSON.
    page
        Also write an HTML page of the second profile with the comparison.
    """
    from jumar.profiling import read
    from jumar.profiling.comparison import compare_sides

    if top < 0:
        raise UserError(f"{top} groups", where="--top", todo="Give 0 or more; 0 shows all.")
    if more and (mixlist or csv or page):
        raise UserError(
            "these files can be written for two profiles only",
            where="--mixlist, --csv, --page",
            todo="Give exactly two profiles.",
        )
    from jumar.cli.profile_tables import refuse_own_files

    refuse_own_files([before, after], files=[csv, page, mixlist])
    first = _side(read(before))
    profile = read(after)
    pairs = [compare_sides(first, _side(profile))]
    pairs += [compare_sides(first, _side(read(path))) for path in more]
    edits = [_edits(pair) for pair in pairs]
    if json_:
        rows = [_as_dict(pair, found) for pair, found in zip(pairs, edits, strict=True)]
        print(json.dumps(rows if more else rows[0], indent=2, ensure_ascii=False))
    else:
        _print(pairs, edits, top)
    if csv is not None:
        write_text(csv, pairs[0].changes.write_csv())
        print_plain(f"written: {csv}", sys.stderr)
    if page is not None:
        from jumar.profiling.page import page as render

        write_text(page, render(profile, compared=pairs[0], edits=edits[0]))
        print_plain(f"written: {page}", sys.stderr)
    return _write_mixlist(mixlist, pairs[0], edits[0]) if mixlist is not None else 0


def _side(profile: "Profile") -> "Side":
    from jumar.profiling.comparison import side_of
    from jumar.profiling.views import Impossible

    try:
        return side_of(profile)
    except Impossible as missing:
        raise UserError(f"cannot be compared: it {missing}", where=profile.source) from missing


def _edits(pair: "Comparison") -> tuple["Edit", ...]:
    """The proposals for a pair of precision modes; names are looked up only there."""
    if not pair.changes_dtypes:
        return ()
    from jumar.cli.profile_lists import list_name
    from jumar.profiling.comparison import propose

    return propose(pair, list_name)


def _write_mixlist(path: Path, pair: "Comparison", edits: tuple["Edit", ...]) -> int:
    if not edits:
        why = (
            "no edit would win 0.2 % of a step"
            if pair.changes_dtypes
            else "no op changed its dtype, so this is no pair of precision modes"
        )
        print_plain(f"jumar: {path} is not written: {why}", sys.stderr)
        return EXIT_CODE
    from jumar.profiling.comparison import as_mixlist

    write_text(path, as_mixlist(edits))
    print_plain(f"written: {path}", sys.stderr)
    return 0


def _ms(nanoseconds: int, steps: int) -> float:
    return round(nanoseconds / steps / 1e6, 3) + 0.0


def _as_dict(pair: "Comparison", edits: tuple["Edit", ...]) -> dict[str, Any]:
    """Integers are nanoseconds of all compared steps together."""
    return {
        "before": _side_dict(pair.before, pair.before_ns),
        "after": _side_dict(pair.after, pair.after_ns),
        "steps": pair.steps,
        "delta_ns": pair.delta_ns,
        "parts": [
            {
                "part": part.name,
                "before_ns": part.before_ns,
                "after_ns": part.after_ns,
                "delta_ns": part.delta_ns,
                "faster_ns": part.faster_ns,
                "slower_ns": part.slower_ns,
            }
            for part in pair.parts
        ],
        "ops": pair.changes.to_dicts(),
        "mixlist": [
            {
                "name": edit.name,
                "to": edit.to,
                "gain_ns": edit.gain_ns,
                "why": edit.why(pair.steps),
            }
            for edit in edits
        ],
        "notes": list(pair.notes),
    }


def _side_dict(side: "Side", total: int) -> dict[str, Any]:
    lasted = [step.lasted_ns for step in side.steps]
    return {
        "source": side.source,
        "kind": side.kind,
        "chip": side.chip,
        "rank": side.rank,
        "total_ns": total,
        "steps_ns": lasted,
    }


def _print(pairs: "list[Comparison]", edits: list[tuple["Edit", ...]], top: int) -> None:
    from rich.console import Console

    console = Console(file=sys.stdout, highlight=False, markup=False)
    if len(pairs) > 1:
        _print_many(pairs, console)
        return
    pair = pairs[0]
    _print_heads(pair, console)
    _title("Where the difference comes from (ms a step)", console)
    _print_table(_part_table(pair), console)
    _title("Ops by change (ms a step)", console)
    changes = pair.changes.filter(pair.changes["delta_ns"] != 0)
    _print_table(_change_table(changes.head(top) if top else changes, pair.steps), console)
    if pair.changes_dtypes:
        _print_precision(pair, edits[0], console, top)
    _print_chains(pair, console, top)


def _title(text: str, console: "Console") -> None:
    console.print(f"\n{text}", style="bold", soft_wrap=True)


def _print_table(table: "pl.DataFrame", console: "Console") -> None:
    from jumar.cli.profile_tables import print_table

    print_table(table, console)


def _print_heads(pair: "Comparison", console: "Console") -> None:
    from jumar.cli.profile_tables import shown

    for name, side, total in (
        ("before", pair.before, pair.before_ns),
        ("after", pair.after, pair.after_ns),
    ):
        lasted = [step.lasted_ns / 1e6 for step in side.steps]
        spread = f" ({min(lasted):.3f} to {max(lasted):.3f})" if len(lasted) > 1 else ""
        chip = f", {shown(side.chip)}" if side.chip else ""
        console.print(
            f"{name:7}{_ms(total, pair.steps):.3f} ms a step{spread}: {shown(side.source, 200)}"
            f" ({side.kind}{chip}, rank {side.rank})",
            soft_wrap=True,
        )
    ratio = pair.before_ns / max(pair.after_ns, 1)
    console.print(
        f"change {_ms(pair.delta_ns, pair.steps):+.3f} ms a step, {ratio:.2f} times as fast; "
        f"{counted(pair.steps, 'step')} of each",
        soft_wrap=True,
    )
    for note in pair.notes:
        console.print(f"note: {shown(note, 300)}", soft_wrap=True)


def _part_table(pair: "Comparison") -> "pl.DataFrame":
    import polars as pl

    from jumar.profiling.comparison import TITLES

    rows = [
        (
            TITLES[part.name],
            *(
                _ms(length, pair.steps)
                for length in (
                    part.before_ns,
                    part.after_ns,
                    part.delta_ns,
                    part.faster_ns,
                    part.slower_ns,
                )
            ),
        )
        for part in pair.parts
    ]
    numbers = (pair.before_ns, pair.after_ns, pair.delta_ns)
    rows.append(("total", *(_ms(length, pair.steps) for length in numbers), None, None))  # pyright: ignore[reportArgumentType]
    names = ("part", "before", "after", "change", "faster", "slower")
    return pl.DataFrame(rows, schema=list(names), orient="row")


def _change_table(changes: "pl.DataFrame", steps: int) -> "pl.DataFrame":
    import polars as pl

    return changes.select(
        "part",
        "type",
        "module",
        "shapes",
        pl.col("before").alias("dtypes before"),
        pl.col("after").alias("dtypes after"),
        (pl.col("before_count") / steps).alias("count before"),
        (pl.col("after_count") / steps).alias("count after"),
        *(
            (pl.col(f"{name}_ns") / steps / 1e6).round(3).alias(said)
            for name, said in (("before", "before"), ("after", "after"), ("delta", "change"))
        ),
    ).with_columns(
        pl.when(pl.col(name) != "").then(pl.col(name)).alias(name)
        for name in ("module", "shapes", "dtypes before", "dtypes after")
    )


def _print_precision(
    pair: "Comparison", edits: tuple["Edit", ...], console: "Console", top: int
) -> None:
    import polars as pl

    from jumar.cli.profile_tables import shown

    changed = pair.changes.filter(pl.col("part") == "dtype")
    by_type = (
        changed.group_by("type", "before", "after")
        .agg(pl.col("before_ns", "after_ns", "delta_ns").sum())
        .sort("delta_ns", "type")
    )
    tables = {
        "Ops that got faster by their dtype (ms a step)": by_type.filter(pl.col("delta_ns") < 0),
        "Ops that got slower by their dtype (ms a step)": by_type.filter(
            pl.col("delta_ns") > 0
        ).reverse(),
        "Casts that cost time (ms a step)": pair.changes.filter(pl.col("part") == "casts")
        .group_by("type")
        .agg(pl.col("before_count", "after_count", "before_ns", "after_ns", "delta_ns").sum())
        .filter(pl.col("delta_ns") > 0)
        .with_columns(pl.col("before_count", "after_count") / pair.steps)
        .sort("delta_ns", "type", descending=[True, False]),
    }
    for title, table in tables.items():
        _title(title, console)
        rows = table.with_columns(
            (pl.col(name) / pair.steps / 1e6).round(3)
            for name in ("before_ns", "after_ns", "delta_ns")
        ).rename(
            {"before": "dtypes before", "after": "dtypes after"}
            | {"before_ns": "before", "after_ns": "after", "delta_ns": "change"}
            | {"before_count": "count before", "after_count": "count after"},
            strict=False,
        )
        _print_table(rows.head(top) if top else rows, console)
    _title("Edits of modify_mixlist (estimates, ms a step)", console)
    lasted = [step.lasted_ns for step in pair.after.steps]
    for edit in edits:
        # What steps differ by anyway may be all that was measured.
        small = edit.gain_ns < (max(lasted) - min(lasted)) * pair.steps
        console.print(
            f"  {_ms(edit.gain_ns, pair.steps):8.3f}  {edit.to}: {shown(edit.name)}; "
            f"{edit.why(pair.steps)}{' (within the variation of steps)' if small else ''}",
            soft_wrap=True,
        )
    if not edits:
        console.print("  none that would win 0.2 % of a step")


def _print_chains(pair: "Comparison", console: "Console", top: int) -> None:
    import polars as pl

    from jumar.profiling.comparison import cancelling_chains

    chains = cancelling_chains(pair.after)
    if chains.is_empty():
        return
    _title("Casts and format changes that undo each other, in the second (ms a step)", console)
    table = chains.with_columns(
        (pl.col("count") / pair.steps).alias("count"),
        (pl.col("saved_ns") / pair.steps / 1e6).round(3).alias("would save"),
    ).drop("saved_ns")
    _print_table(table.head(top) if top else table, console)


def _print_many(pairs: "list[Comparison]", console: "Console") -> None:
    """Every profile against the first: step times, and the change by part."""
    import polars as pl

    from jumar.cli.profile_tables import shown
    from jumar.profiling.comparison import TITLES

    first = pairs[0].before
    console.print(f"against {shown(first.source, 200)}", soft_wrap=True)
    for number, pair in enumerate(pairs, start=2):
        console.print(f"  {number}: {shown(pair.after.source, 200)}", soft_wrap=True)
        for note in pair.notes:
            console.print(f"     note: {shown(note, 300)}", soft_wrap=True)
    rows: list[dict[str, str | float]] = [
        {"": "step before"} | {str(n): _ms(p.before_ns, p.steps) for n, p in enumerate(pairs, 2)},
        {"": "step"} | {str(n): _ms(p.after_ns, p.steps) for n, p in enumerate(pairs, 2)},
        {"": "change"} | {str(n): _ms(p.delta_ns, p.steps) for n, p in enumerate(pairs, 2)},
    ]
    for name, title in TITLES.items():
        row: dict[str, str | float] = {"": title}
        for number, pair in enumerate(pairs, start=2):
            part = next((part for part in pair.parts if part.name == name), None)
            row[str(number)] = _ms(part.delta_ns, pair.steps) if part else 0.0
        rows.append(row)
    _title("Change of a step against the first (ms a step)", console)
    _print_table(pl.DataFrame(rows), console)
