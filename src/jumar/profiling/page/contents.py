"""The rest of the page, besides timeline and op table: facts, steps, views, comparison."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import polars as pl

from jumar.ground.text import Language
from jumar.profiling.comparison import TITLES, Comparison, Edit, edit_table, tables
from jumar.profiling.listing import Listing
from jumar.profiling.profile import Profile
from jumar.profiling.showing import shown
from jumar.profiling.views import Impossible, Options
from jumar.profiling.views.step_split import step_split
from jumar.profiling.words import words

MOST_STEPS: Final = 60
MOST_CHANGES: Final = 300

PARTS: Final = {
    "computing": "computing_ns",
    "uncovered": "communication_not_overlapped_ns",
    "preparing": "preparing_ns",
    "copying": "copying_ns",
    "free": "free_ns",
}
"""The parts of a step by the name of their colour, and their column."""


@dataclass(frozen=True, kw_only=True)
class StepBar:
    """One step: its parts with start and length in percent of the longest step, and in ms."""

    name: str
    total: str
    pieces: tuple[tuple[str, float, float, str], ...]


@dataclass(frozen=True, kw_only=True)
class PartBar:
    """A part of a comparison as a bar from the middle: left is faster, right is slower."""

    title: str
    before: str
    after: str
    delta: str
    start: float
    width: float
    faster: bool


def ms(nanoseconds: float, steps: int = 1) -> str:
    """Milliseconds with three decimal places; 0 has no sign."""
    return f"{round(nanoseconds / steps / 1e6, 3) + 0.0:.3f}"


def facts(profile: Profile, language: Language) -> list[tuple[str, str]]:
    """The header of the page."""
    say = words(language)
    values = {
        "source": profile.source,
        "producer": profile.producer,
        "device": profile.kind,
        "chip": profile.chip or say["not_said"],
        "ops": f"{profile.ops.height:,}",
        "calls": f"{profile.host.height:,}",
        "ranks": ", ".join(map(str, profile.ranks[:16])),
    }
    return [(say[name], shown(value, 400)) for name, value in values.items() if value]


def step_bars(profile: Profile, language: Language) -> list[StepBar]:
    """The steps with their parts; none if ops have no times."""
    try:
        table = step_split(profile).head(MOST_STEPS)
    except Impossible:
        return []
    say = words(language)
    rows = list(table.iter_rows(named=True))
    lengths = [{name: int(row[part] or 0) for name, part in PARTS.items()} for row in rows]
    longest = max((sum(parts.values()) for parts in lengths), default=1) or 1
    several = table["rank"].n_unique() > 1
    bars: list[StepBar] = []
    for row, parts in zip(rows, lengths, strict=True):
        at, pieces = 0.0, list[tuple[str, float, float, str]]()
        for name, length in parts.items():
            width = 100 * length / longest
            if length:
                pieces.append((name, round(at, 3), round(width, 3), ms(length)))
            at += width
        name = say["rank_step" if several else "step"].format(rank=row["rank"], step=row["step"])
        bars.append(StepBar(name=name, total=ms(sum(parts.values())), pieces=tuple(pieces)))
    return bars


def advice(table: pl.DataFrame) -> list[dict[str, object]]:
    """The rows of the to-do list, as escaped texts."""
    return [
        {field: _safe(value) for field, value in row.items()} for row in table.iter_rows(named=True)
    ]


def _safe(value: object) -> object:
    if isinstance(value, str):
        return shown(value, 500)
    return [shown(line, 300) for line in value] if isinstance(value, list) else value


def compared_tables(
    compared: Comparison, edits: Sequence[Edit], language: Language
) -> list[Listing]:
    """The tables of a comparison; its parts are drawn as bars."""
    options = Options(top=MOST_CHANGES, language=language)
    _, *rest = tables(compared, options, chains=False)
    return [edit_table(compared, edits, language), *rest] if edits else rest


def part_bars(compared: Comparison, language: Language) -> list[PartBar]:
    """The parts of a comparison, which add up to the difference."""
    widest = max((abs(part.delta_ns) for part in compared.parts), default=1) or 1
    bars: list[PartBar] = []
    for part in compared.parts:
        width = round(50 * abs(part.delta_ns) / widest, 3)
        faster = part.delta_ns < 0
        bars.append(
            PartBar(
                title=TITLES[part.name].in_language(language),
                before=ms(part.before_ns, compared.steps),
                after=ms(part.after_ns, compared.steps),
                delta=f"{round(part.delta_ns / compared.steps / 1e6, 3) + 0.0:+.3f}",
                start=50 - width if faster else 50,
                width=width,
                faster=faster,
            )
        )
    return bars
