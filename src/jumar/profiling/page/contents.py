"""Parts of the page other than the timeline and op table: facts, steps, advice, comparison."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import polars as pl

from jumar.ground.text import Language
from jumar.profiling.comparison import PART_TITLES, Comparison, Edit, edit_table, tables
from jumar.profiling.listing import Listing
from jumar.profiling.profile import Profile
from jumar.profiling.showing import shown
from jumar.profiling.texts import texts_in
from jumar.profiling.views import Impossible, Options
from jumar.profiling.views.step_split import step_split

MAX_STEPS: Final = 60
MAX_CHANGES: Final = 300

PART_COLUMNS: Final = {
    "computing": "computing_ns",
    "uncovered": "communication_not_overlapped_ns",
    "preparing": "preparing_ns",
    "copying": "copying_ns",
    "free": "free_ns",
}
"""The column of each part of a step, by the name of the part's colour."""


@dataclass(frozen=True, kw_only=True)
class StepBar:
    """A bar of a step; each segment is a name, start and width in %, and a time in ms."""

    name: str
    total: str
    segments: tuple[tuple[str, float, float, str], ...]


@dataclass(frozen=True, kw_only=True)
class PartBar:
    """A part of a comparison as a bar from the middle: to the left if faster, else to the right."""

    title: str
    before: str
    after: str
    delta: str
    start: float
    width: float
    faster: bool


def ms(nanoseconds: float, steps: int = 1) -> str:
    """Nanoseconds as milliseconds per step, with three decimal places and no sign for 0."""
    return f"{round(nanoseconds / steps / 1e6, 3) + 0.0:.3f}"


def profile_facts(profile: Profile, language: Language) -> list[tuple[str, str]]:
    """The names and values in the header of the page."""
    texts = texts_in(language)
    values = {
        "source": profile.source,
        "producer": profile.producer,
        "device": profile.kind,
        "chip": profile.chip or texts["not_named"],
        "ops": f"{profile.ops.height:,}",
        "calls": f"{profile.host.height:,}",
        "ranks": ", ".join(map(str, profile.ranks[:16])),
    }
    return [(texts[name], shown(value, 400)) for name, value in values.items() if value]


def step_bars(profile: Profile, language: Language) -> list[StepBar]:
    """A bar for each step; none if the ops have no times."""
    try:
        table = step_split(profile).head(MAX_STEPS)
    except Impossible:
        return []
    texts = texts_in(language)
    rows = list(table.iter_rows(named=True))
    parts_of_steps = [
        {name: int(row[part] or 0) for name, part in PART_COLUMNS.items()} for row in rows
    ]
    longest = max((sum(parts.values()) for parts in parts_of_steps), default=1) or 1
    has_ranks = table["rank"].n_unique() > 1
    bars: list[StepBar] = []
    for row, parts in zip(rows, parts_of_steps, strict=True):
        left, segments = 0.0, list[tuple[str, float, float, str]]()
        for name, length in parts.items():
            width = 100 * length / longest
            if length:
                segments.append((name, round(left, 3), round(width, 3), ms(length)))
            left += width
        name = texts["rank_step" if has_ranks else "step"].format(
            rank=row["rank"], step=row["step"]
        )
        bars.append(StepBar(name=name, total=ms(sum(parts.values())), segments=tuple(segments)))
    return bars


def advice_rows(table: pl.DataFrame) -> list[dict[str, object]]:
    """The rows of the to-do list, with escaped texts."""
    return [
        {field: _safe(value) for field, value in row.items()} for row in table.iter_rows(named=True)
    ]


def _safe(value: object) -> object:
    if isinstance(value, str):
        return shown(value, 500)
    return [shown(line, 300) for line in value] if isinstance(value, list) else value


def comparison_tables(
    comparison: Comparison, edits: Sequence[Edit], language: Language
) -> list[Listing]:
    """The tables of a comparison, except its parts, which are drawn as bars."""
    options = Options(top=MAX_CHANGES, language=language)
    _, *other_tables = tables(comparison, options, chains=False)
    return [edit_table(comparison, edits, language), *other_tables] if edits else other_tables


def part_bars(comparison: Comparison, language: Language) -> list[PartBar]:
    """A bar for each part of a comparison."""
    widest = max((abs(part.delta_ns) for part in comparison.parts), default=1) or 1
    bars: list[PartBar] = []
    for part in comparison.parts:
        width = round(50 * abs(part.delta_ns) / widest, 3)
        faster = part.delta_ns < 0
        bars.append(
            PartBar(
                title=PART_TITLES[part.name].in_language(language),
                before=ms(part.before_ns, comparison.steps),
                after=ms(part.after_ns, comparison.steps),
                delta=f"{round(part.delta_ns / comparison.steps / 1e6, 3) + 0.0:+.3f}",
                start=50 - width if faster else 50,
                width=width,
                faster=faster,
            )
        )
    return bars
