"""The page of a profile as HTML."""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

import polars as pl

from jumar.ground.pages import page_source, page_template, policy_hash
from jumar.ground.text import Language, counted
from jumar.profiling.comparison import Comparison, Edit
from jumar.profiling.page import contents
from jumar.profiling.page.clock import clock_of
from jumar.profiling.page.labels import Labels, labels
from jumar.profiling.page.places import places
from jumar.profiling.page.timeline import timeline
from jumar.profiling.profile import Profile
from jumar.profiling.showing import inside_script, shown
from jumar.profiling.views import VIEWS, Options, answers
from jumar.profiling.views.chips import peak_rates
from jumar.profiling.views.step_split import contradictions
from jumar.profiling.words import missing_lines, words

_PACKAGE: Final = "jumar.profiling.page"
_MOST_NOTICES: Final = 30
MOST_ROWS: Final = 500
"""Of a table; one with a row a step or a collective has tens of thousands."""
LONG_PROFILE: Final = 300_000
"""Ops beyond which a page leaves out the views that take seconds for a million."""

_SCRIPTS: Final = ("tables", "timeline", "marking", "searching", "call_trees")
"""Files of `scripts/` in the order in which they run."""

_USED: Final = (
    *("rank", "stream", "name", "type", "core", "start_ns", "duration_ns", "launch_ns"),
    *("input_shapes", "input_types", "output_types", "module"),
)


def page(
    profile: Profile,
    *,
    compared: Comparison | None = None,
    edits: Sequence[Edit] = (),
    options: Options | None = None,
) -> str:
    """One HTML page: head, steps, to-do list, comparison, timeline, ops, and every other view.

    It needs no network, and its policy lets nothing run but its own script. Every text of the
    profile is escaped, whatever it holds. The page has a bounded number of boxes and groups:
    the timeline has levels, and small groups of the op table are merged.

    Args:
        profile: The profile to show.
        compared: Its comparison with an earlier profile, of which it is the second one.
        edits: Edits of modify_mixlist that the comparison proposes.
        options: Rows of rankings, chip table and language.
    """
    options = options or Options()
    language = options.language
    say = words(language)
    style = page_source(_PACKAGE, "page.css")
    script = _script()
    groups, data = _drawn(profile, options)
    is_long = profile.ops.height > LONG_PROFILE
    left_out = {
        one.name: say["takes_long"].format(name=one.name, ops=LONG_PROFILE)
        for one in VIEWS.values()
        if one.slow and is_long
    }
    given = answers(profile, [one for one in VIEWS.values() if one.name not in left_out], options)
    listed = [one for one in VIEWS.values() if one.name in given.tables]
    known = peak_rates(profile, given.tables, options)
    rates = f"{say['rates']}{shown(known, 300)}" if known else ""
    return page_template(_PACKAGE).render(
        say=say,
        title=say["title"].format(source=shown(profile.source, 120)),
        style=style,
        script=script,
        style_hash=policy_hash(style),
        script_hash=policy_hash(script),
        facts=contents.facts(profile, language),
        contradictions=[line.in_language(language) for line in contradictions(profile)],
        notices=missing_lines(profile, language)[:_MOST_NOTICES],
        parts=contents.PARTS,
        bars=contents.step_bars(profile, language) if groups else (),
        language=language,
        rates=rates,
        advice=[contents.advice(given.tables[one.name]) for one in listed if one.advice],
        views=[
            (
                one.listing(given.tables[one.name].head(MOST_ROWS)),
                _cut(one.name, given.tables[one.name].height, say),
                rates if one.uses_rates else "",
            )
            for one in listed
            if not one.advice
        ],
        impossible=left_out | {name: shown(why, 300) for name, why in given.impossible.items()},
        compared=_against(compared, language) if compared else "",
        notes=[shown(note.in_language(language), 300) for note in compared.notes]
        if compared
        else (),
        part_bars=contents.part_bars(compared, language) if compared else (),
        compared_tables=contents.compared_tables(compared, edits, language) if compared else (),
        before=shown(compared.before.source, 200) if compared else "",
        groups=groups,
        data=inside_script(data),
    )


def _cut(name: str, rows: int, say: Mapping[str, str]) -> str:
    """What to know about a table of which the page shows only a part."""
    return "" if rows <= MOST_ROWS else say["cut"].format(shown=MOST_ROWS, rows=rows, name=name)


def _against(compared: Comparison, language: Language) -> str:
    """The comparison's conclusion."""
    lengths = {
        "before": compared.before_ns,
        "after": compared.after_ns,
        "delta": compared.delta_ns,
    }
    steps = counted(compared.steps, "step") + " of each" if language == "en" else compared.steps
    values = {name: contents.ms(length, compared.steps) for name, length in lengths.items()}
    return words(language)["compared"].format(**values, steps=steps)


def _drawn(profile: Profile, options: Options) -> tuple[Labels | None, dict[str, Any]]:
    """The groups of ops, and the data that the page's script draws."""
    # Filtering all fifty columns of a million ops takes another half of a gigabyte.
    ops = profile.ops.select(_USED).filter(
        pl.col("start_ns").is_not_null() & pl.col("duration_ns").is_not_null()
    )
    if ops.is_empty():
        return None, {"labels": {}, "timeline": None}
    groups = labels(ops)
    clock = clock_of(ops, profile.host)
    return groups, {
        "labels": groups.rows,
        "timeline": timeline(ops, groups, profile, clock, options.language),
        "places": places(profile, options, clock),
        "say": words(options.language),
    }


@lru_cache
def _script() -> str:
    """The page's script: its files in order, as one function, so that they share their names."""
    texts = [page_source(_PACKAGE, f"scripts/{name}.js") for name in _SCRIPTS]
    return '"use strict";\n(() => {\n' + "\n".join(texts) + "})();\n"
