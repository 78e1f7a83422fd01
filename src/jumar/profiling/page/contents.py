"""What stands on the page besides timeline and op table: facts, steps, advice, comparison."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import polars as pl

from jumar.profiling.advice.todo import todo_table
from jumar.profiling.comparison import TITLES, Comparison, cancelling_chains, side_of
from jumar.profiling.page.plain import plain, short_types
from jumar.profiling.profile import Profile
from jumar.profiling.views.step_split import step_split
from jumar.profiling.views.view import Impossible

MOST_STEPS: Final = 60
MOST_CHANGES: Final = 300
MOST_CHAINS: Final = 30

PARTS: Final = (
    ("computing", "computing"),
    ("uncovered", "communication, not hidden"),
    ("preparing", "before the first op"),
    ("free", "free"),
)
"""The parts of a step by the name of their colour."""


@dataclass(frozen=True, kw_only=True)
class Bar:
    """One step: its parts with start and length in percent of the longest step, and in ms."""

    name: str
    total: str
    pieces: tuple[tuple[str, float, float, str], ...]


@dataclass(frozen=True, kw_only=True)
class Table:
    """A table of texts; `numeric` are the columns that stand on the right."""

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    numeric: frozenset[int]
    note: str = ""


@dataclass(frozen=True, kw_only=True)
class Change:
    """A part of a comparison as a bar from the middle: left is faster, right is slower."""

    title: str
    before: str
    after: str
    delta: str
    start: float
    width: float
    faster: bool


def ms(nanoseconds: float, steps: int = 1) -> str:
    """Milliseconds with three digits, where 0 has no sign."""
    return f"{round(nanoseconds / steps / 1e6, 3) + 0.0:.3f}"


def times(count: int, steps: int) -> str:
    """How often a step; with digits only where it is not the same in each."""
    return str(count // steps) if count % steps == 0 else f"{count / steps:.2f}"


def facts(profile: Profile) -> list[tuple[str, str]]:
    """The head of the page."""
    found = [
        ("Source", profile.source),
        ("Written by", profile.producer),
        ("Device", profile.kind),
        ("Chip", profile.chip or "not said"),
        ("Ops", f"{profile.ops.height:,}"),
        ("Host calls", f"{profile.host.height:,}"),
        ("Ranks", ", ".join(map(str, profile.ranks[:16]))),
    ]
    return [(name, plain(value, 400)) for name, value in found if value]


def notices(profile: Profile) -> list[str]:
    """What is missing, and for what it would be needed."""
    return [
        plain(
            f"{gap.file}: {gap.what}"
            + (f" (needed for {', '.join(gap.needed_for)})" if gap.needed_for else ""),
            400,
        )
        for gap in profile.missing[:30]
    ]


def bars(profile: Profile) -> tuple[Bar, ...]:
    """The steps with their parts; an empty tuple where ops have no times."""
    try:
        table = step_split(profile).head(MOST_STEPS)
    except Impossible:
        return ()
    rows = list(table.iter_rows(named=True))
    lengths = [
        {
            "computing": int(row["computing_ns"]),
            "uncovered": int(row["communication_not_overlapped_ns"]),
            "preparing": int(row["preparing_ns"] or 0),
            "free": int(row["free_ns"]),
        }
        for row in rows
    ]
    longest = max((sum(parts.values()) for parts in lengths), default=1) or 1
    several = table["rank"].n_unique() > 1
    found: list[Bar] = []
    for row, parts in zip(rows, lengths, strict=True):
        at, pieces = 0.0, list[tuple[str, float, float, str]]()
        for name, _ in PARTS:
            width = 100 * parts[name] / longest
            if parts[name]:
                pieces.append((name, round(at, 3), round(width, 3), ms(parts[name])))
            at += width
        name = f"rank {row['rank']}, step {row['step']}" if several else f"step {row['step']}"
        found.append(Bar(name=name, total=ms(sum(parts.values())), pieces=tuple(pieces)))
    return tuple(found)


def todo(profile: Profile) -> list[dict[str, object]] | None:
    """The to-do list; None where it is impossible."""
    try:
        table = todo_table(profile)
    except Impossible:
        return None
    return [
        {
            "win": f"{row['win_ms']:.3f}",
            "share": f"{row['share_%']:.1f}",
            "what": plain(row["what"], 400),
            "evidence": [plain(line, 300) for line in row["evidence"]],
            "change": plain(row["change"], 500),
            "setting": plain(row["setting"]),
            "estimate": bool(row["estimate"]),
        }
        for row in table.iter_rows(named=True)
    ]


def chains(profile: Profile) -> Table | None:
    """Casts and format changes that undo each other."""
    try:
        side = side_of(profile, steps=3)
    except Impossible:
        return None
    table = cancelling_chains(side).head(MOST_CHAINS)
    if table.is_empty():
        return None
    steps = len(side.steps)
    return Table(
        title="Casts and format changes that undo each other",
        header=("ms a step", "times a step", "ops", "shape", "from and to", "by way of", "module"),
        rows=tuple(
            (
                ms(row["saved_ns"], steps),
                times(row["count"], steps),
                *(plain(row[name], 120) for name in ("what", "shape", "of", "by_way_of", "module")),
            )
            for row in table.iter_rows(named=True)
        ),
        numeric=frozenset((0, 1)),
        note="Found by shape, dtype and layout of what one op gives and the next one takes. Where "
        "another op computes with what lies between, only the way back counts.",
    )


def part_bars(compared: Comparison) -> tuple[Change, ...]:
    """The parts of a comparison, from which the difference adds up."""
    widest = max((abs(part.delta_ns) for part in compared.parts), default=1) or 1
    found: list[Change] = []
    for part in compared.parts:
        width = round(50 * abs(part.delta_ns) / widest, 3)
        faster = part.delta_ns < 0
        found.append(
            Change(
                title=TITLES[part.name],
                before=ms(part.before_ns, compared.steps),
                after=ms(part.after_ns, compared.steps),
                delta=f"{round(part.delta_ns / compared.steps / 1e6, 3) + 0.0:+.3f}",
                start=50 - width if faster else 50,
                width=width,
                faster=faster,
            )
        )
    return tuple(found)


def changes(compared: Comparison) -> Table:
    """The groups of ops with the largest changes."""
    steps = compared.steps
    moved = compared.changes.filter(pl.col("delta_ns") != 0)
    header = (
        "change",
        "before",
        "after",
        "times before",
        "times after",
        "part",
        "op",
        "dtypes before",
        "dtypes after",
        "shapes",
        "module",
    )
    rows = tuple(
        (
            ms(row["delta_ns"], steps),
            ms(row["before_ns"], steps),
            ms(row["after_ns"], steps),
            times(row["before_count"], steps),
            times(row["after_count"], steps),
            TITLES[row["part"]],
            *(
                plain(text, 100)
                for text in (
                    row["type"],
                    short_types(row["before"]),
                    short_types(row["after"]),
                    row["shapes"],
                    row["module"],
                )
            ),
        )
        for row in moved.head(MOST_CHANGES).iter_rows(named=True)
    )
    said = [place for place in range(len(header)) if place < 6 or any(row[place] for row in rows)]
    return Table(
        title="Ops by change (ms a step)",
        header=tuple(header[place] for place in said),
        rows=tuple(tuple(row[place] for place in said) for row in rows),
        numeric=frozenset(range(5)),
        note=_left_out(moved.height),
    )


def _left_out(count: int) -> str:
    rest = count - MOST_CHANGES
    return f"{rest:,} groups with smaller changes are left out here." if rest > 0 else ""


def edit_rows(compared: Comparison, edits: Sequence[object]) -> Table | None:
    """Proposed edits of modify_mixlist."""
    from jumar.profiling.comparison import Edit

    found = [edit for edit in edits if isinstance(edit, Edit)]
    if not found:
        return None
    return Table(
        title="Edits of modify_mixlist (estimates)",
        header=("ms a step", "op", "add to", "why"),
        rows=tuple(
            (
                ms(edit.gain_ns, compared.steps),
                plain(edit.name),
                edit.to,
                edit.why(compared.steps),
            )
            for edit in found
        ),
        numeric=frozenset((0,)),
    )
