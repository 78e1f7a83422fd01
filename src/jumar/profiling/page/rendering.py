"""Renders the HTML page of a profile."""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

import polars as pl

from jumar.ground.pages import page_source, page_template, policy_hash
from jumar.ground.text import Language, counted
from jumar.profiling.comparison import Comparison, Edit
from jumar.profiling.page import contents
from jumar.profiling.page.op_groups import OpGroups, group_ops
from jumar.profiling.page.time_range import time_range_of
from jumar.profiling.page.timeline import timeline
from jumar.profiling.page.todo_intervals import todo_intervals
from jumar.profiling.profile import Profile
from jumar.profiling.showing import json_for_script, shown
from jumar.profiling.texts import missing_lines, texts_in
from jumar.profiling.views import VIEWS, Options, answers
from jumar.profiling.views.chips import peak_rates
from jumar.profiling.views.step_split import contradictions

_PACKAGE: Final = "jumar.profiling.page"
_MAX_NOTICES: Final = 30
MAX_ROWS: Final = 500
"""Maximum number of rows per table; a table of steps or collectives may have tens of thousands."""
LONG_PROFILE: Final = 300_000
"""Pages of profiles with more ops than this omit views that take seconds for a million ops."""

_SCRIPTS: Final = ("tables", "timeline", "marking", "searching", "call_trees")
"""Files in `scripts/`, in the order in which they run."""

_USED_COLUMNS: Final = (
    *("rank", "stream", "name", "type", "core", "start_ns", "duration_ns", "launch_ns"),
    *("input_shapes", "input_types", "output_types", "module"),
)


def page(
    profile: Profile,
    *,
    comparison: Comparison | None = None,
    edits: Sequence[Edit] = (),
    options: Options | None = None,
) -> str:
    """An HTML page: header, steps, to-do list, comparison, timeline, ops, and all other views.

    It needs no network, and its content security policy allows only its own script to run. All
    texts of the profile are escaped. The number of boxes is bounded by the levels of the timeline,
    and the number of rows in the op table by merging small groups.

    Args:
        profile: The profile to show.
        comparison: A comparison in which this profile is the second one.
        edits: Proposed edits of modify_mixlist.
        options: Number of rows in rankings, chip table and language.
    """
    options = options or Options()
    language = options.language
    texts = texts_in(language)
    style = page_source(_PACKAGE, "page.css")
    script = _script()
    op_groups, data = _timeline_data(profile, options)
    is_long = profile.ops.height > LONG_PROFILE
    left_out = {
        view.name: texts["takes_long"].format(name=view.name, ops=LONG_PROFILE)
        for view in VIEWS.values()
        if view.slow and is_long
    }
    answered = answers(
        profile, [view for view in VIEWS.values() if view.name not in left_out], options
    )
    shown_views = [view for view in VIEWS.values() if view.name in answered.tables]
    rate_source = peak_rates(profile, answered.tables, options)
    rates = f"{texts['rates']}{shown(rate_source, 300)}" if rate_source else ""
    return page_template(_PACKAGE).render(
        texts=texts,
        title=texts["title"].format(source=shown(profile.source, 120)),
        style=style,
        script=script,
        style_hash=policy_hash(style),
        script_hash=policy_hash(script),
        facts=contents.profile_facts(profile, language),
        contradictions=[line.in_language(language) for line in contradictions(profile)],
        notices=missing_lines(profile, language)[:_MAX_NOTICES],
        parts=contents.PART_COLUMNS,
        bars=contents.step_bars(profile, language) if op_groups else (),
        language=language,
        rates=rates,
        advice=[
            contents.advice_rows(answered.tables[view.name]) for view in shown_views if view.advice
        ],
        views=[
            (
                view.listing(answered.tables[view.name].head(MAX_ROWS)),
                _cut_note(view.name, answered.tables[view.name].height, texts),
                rates if view.uses_rates else "",
            )
            for view in shown_views
            if not view.advice
        ],
        impossible=left_out
        | {name: shown(reason, 300) for name, reason in answered.impossible.items()},
        comparison=_conclusion(comparison, language) if comparison else "",
        notes=[shown(note.in_language(language), 300) for note in comparison.notes]
        if comparison
        else (),
        part_bars=contents.part_bars(comparison, language) if comparison else (),
        comparison_tables=contents.comparison_tables(comparison, edits, language)
        if comparison
        else (),
        before=shown(comparison.before.source, 200) if comparison else "",
        op_groups=op_groups,
        data=json_for_script(data),
    )


def _cut_note(name: str, rows: int, texts: Mapping[str, str]) -> str:
    """A note for a table with more rows than the page shows; empty for others."""
    return "" if rows <= MAX_ROWS else texts["cut"].format(shown=MAX_ROWS, rows=rows, name=name)


def _conclusion(comparison: Comparison, language: Language) -> str:
    """The result of a comparison, in one sentence."""
    lengths = {
        "before": comparison.before_ns,
        "after": comparison.after_ns,
        "delta": comparison.delta_ns,
    }
    steps = counted(comparison.steps, "step") + " of each" if language == "en" else comparison.steps
    values = {name: contents.ms(length, comparison.steps) for name, length in lengths.items()}
    return texts_in(language)["compared"].format(**values, steps=steps)


def _timeline_data(profile: Profile, options: Options) -> tuple[OpGroups | None, dict[str, Any]]:
    """The groups of ops, and the data for the page's script."""
    # Filtering all fifty columns of a million ops would take another half gigabyte.
    ops = profile.ops.select(_USED_COLUMNS).filter(
        pl.col("start_ns").is_not_null() & pl.col("duration_ns").is_not_null()
    )
    if ops.is_empty():
        return None, {"labels": {}, "timeline": None}
    op_groups = group_ops(ops)
    time_range = time_range_of(ops, profile.host)
    return op_groups, {
        "labels": op_groups.rows,
        "timeline": timeline(ops, op_groups, profile, time_range, options.language),
        "todo": todo_intervals(profile, options, time_range),
        "texts": texts_in(options.language),
    }


@lru_cache
def _script() -> str:
    """The page's script: its files as one function, so that they share a scope."""
    texts = [page_source(_PACKAGE, f"scripts/{name}.js") for name in _SCRIPTS]
    return '"use strict";\n(() => {\n' + "\n".join(texts) + "})();\n"
