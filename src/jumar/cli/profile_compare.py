"""`jumar profile compare`."""

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jumar.cli.counts import check_top
from jumar.cli.options import JsonFlag
from jumar.cli.output import write_beside
from jumar.cli.profile_lists import list_name
from jumar.cli.profile_tables import print_listing, print_title, refuse_own_files
from jumar.ground.errors import EXIT_CODE, UserError
from jumar.ground.text import Language, Text, counted, print_aside
from jumar.profiling.showing import shown

if TYPE_CHECKING:
    from rich.console import Console

    from jumar.profiling.comparison import Comparison, Edit, PreparedProfile
    from jumar.profiling.profile import Profile
    from jumar.profiling.views import Options


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
    lang: Language = "en",
) -> int:
    """Explain why a step takes more or less time than before, op by op.

    The parts add up exactly to the difference. With more than two profiles, each is compared with
    the first. The exit code is 2 if no edit for --mixlist would save time.

    Parameters
    ----------
    before
        Folder or file of the first profile.
    after
        Folder or file of the second profile.
    more
        More profiles.
    top
        Number of groups of ops to show; 0 for all.
    mixlist
        Write the proposed edits to this file, for `--set precision.modify_mixlist=FILE`.
    csv
        Also write all groups of ops to this CSV file.
    page
        Also write an HTML page of the second profile with the comparison.
    lang
        Language of titles, reasons and page.
    """
    from jumar.profiling import read
    from jumar.profiling.comparison import compare_prepared
    from jumar.profiling.views import Options

    check_top(top)
    if more and (mixlist or csv or page):
        raise UserError(
            "can only be written for two profiles",
            where="--mixlist, --csv, --page",
            todo="Name exactly two profiles.",
        )

    refuse_own_files([before, after], files=[csv, page, mixlist])
    first = _prepared(read(before))
    profile = read(after)
    pairs = [compare_prepared(first, _prepared(profile))]
    pairs += [compare_prepared(first, _prepared(read(path))) for path in more]
    edits = [_proposed_edits(pair) for pair in pairs]
    if json_:
        rows = [
            _as_dict(pair, pair_edits, lang) for pair, pair_edits in zip(pairs, edits, strict=True)
        ]
        print(json.dumps(rows if more else rows[0], indent=2, ensure_ascii=False))
    else:
        _print(pairs, edits[0], Options(top=top, language=lang))
    if csv is not None:
        from jumar.profiling.writing import without_formulas

        write_beside(csv, without_formulas(pairs[0].changes).write_csv())
    if page is not None:
        from jumar.profiling.page import page as render

        text = render(profile, comparison=pairs[0], edits=edits[0], options=Options(language=lang))
        write_beside(page, text)
    return _write_mixlist(mixlist, pairs[0], edits[0]) if mixlist is not None else 0


def _prepared(profile: "Profile") -> "PreparedProfile":
    from jumar.profiling.comparison import prepare
    from jumar.profiling.views import Impossible

    try:
        return prepare(profile)
    except Impossible as error:
        raise UserError(f"cannot be compared: it {error}", where=profile.source) from error


def _proposed_edits(pair: "Comparison") -> tuple["Edit", ...]:
    """Return the edits proposed for a pair of precision modes; none for other profiles."""
    if not pair.changes_dtypes:
        return ()
    from jumar.profiling.comparison import propose

    return propose(pair, list_name)


def _write_mixlist(path: Path, pair: "Comparison", edits: tuple["Edit", ...]) -> int:
    if not edits:
        reason = (
            "no edit would save 0.2 % of a step"
            if pair.changes_dtypes
            else "no op changed its dtype, so this is not a pair of precision modes"
        )
        print_aside(f"jumar: {path} is not written: {reason}")
        return EXIT_CODE
    from jumar.profiling.comparison import as_mixlist

    write_beside(path, as_mixlist(edits))
    return 0


def _ms(nanoseconds: int, steps: int) -> float:
    return round(nanoseconds / steps / 1e6, 3) + 0.0


def _as_dict(pair: "Comparison", edits: tuple["Edit", ...], language: Language) -> dict[str, Any]:
    """Return the comparison as JSON, with nanoseconds over all compared steps."""
    return {
        "before": _profile_dict(pair.before, pair.before_ns),
        "after": _profile_dict(pair.after, pair.after_ns),
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
                "to": edit.target_list,
                "gain_ns": edit.gain_ns,
                "why": edit.reason(pair.steps).in_language(language),
            }
            for edit in edits
        ],
        "notes": [note.in_language(language) for note in pair.notes],
    }


def _profile_dict(profile: "PreparedProfile", total: int) -> dict[str, Any]:
    step_durations = [step.duration_ns for step in profile.steps]
    return {
        "source": profile.source,
        "kind": profile.kind,
        "chip": profile.chip,
        "rank": profile.rank,
        "total_ns": total,
        "steps_ns": step_durations,
    }


def _print(pairs: "list[Comparison]", edits: tuple["Edit", ...], options: "Options") -> None:
    from rich.console import Console

    from jumar.profiling.comparison import tables

    console = Console(file=sys.stdout, highlight=False, markup=False)
    if len(pairs) > 1:
        _print_many(pairs, console, options.language)
        return
    pair = pairs[0]
    _print_header(pair, console, options.language)
    for listing in tables(pair, options):
        print_listing(listing, console, options.language)
    if pair.changes_dtypes:
        _print_edits(pair, edits, console, options.language)


def _print_notes(pair: "Comparison", console: "Console", language: Language, indent: str) -> None:
    from jumar.profiling.texts import TEXTS

    for note in pair.notes:
        text = shown(note.in_language(language), 300)
        console.print(f"{indent}{TEXTS['note'].in_language(language)}{text}", soft_wrap=True)


def _print_header(pair: "Comparison", console: "Console", language: Language) -> None:
    from jumar.profiling.texts import texts_in

    texts = texts_in(language)
    for name, profile, total in (
        ("before", pair.before, pair.before_ns),
        ("after", pair.after, pair.after_ns),
    ):
        step_durations = [step.duration_ns / 1e6 for step in profile.steps]
        spread = (
            f" ({min(step_durations):.3f} to {max(step_durations):.3f})"
            if len(step_durations) > 1
            else ""
        )
        line = texts[name].format(
            duration=f"{_ms(total, pair.steps):.3f}",
            spread=spread if language == "en" else spread.replace(" to ", " ~ "),
            source=shown(profile.source, 200),
            device=f"{profile.kind}, {shown(profile.chip, 48)}" if profile.chip else profile.kind,
            rank=profile.rank,
        )
        console.print(line, soft_wrap=True)
    line = texts["change"].format(
        delta=f"{_ms(pair.delta_ns, pair.steps):+.3f}",
        ratio=f"{pair.before_ns / max(pair.after_ns, 1):.2f}",
        steps=counted(pair.steps, "step") if language == "en" else pair.steps,
    )
    console.print(line, soft_wrap=True)
    _print_notes(pair, console, language, "")


def _print_edits(
    pair: "Comparison", edits: tuple["Edit", ...], console: "Console", language: Language
) -> None:
    from jumar.profiling.comparison import edit_table
    from jumar.profiling.texts import texts_in

    texts = texts_in(language)
    print_title(edit_table(pair, edits, language).title.in_language(language), console)
    step_durations = [step.duration_ns for step in pair.after.steps]
    for edit in edits:
        # The measured difference may be within the variation between steps.
        is_within_noise = edit.gain_ns < (max(step_durations) - min(step_durations)) * pair.steps
        console.print(
            f"  {_ms(edit.gain_ns, pair.steps):8.3f}  {edit.target_list}: {shown(edit.name, 48)}; "
            f"{edit.reason(pair.steps).in_language(language)}"
            f"{texts['varies'] if is_within_noise else ''}",
            soft_wrap=True,
        )
    if not edits:
        console.print(f"  {texts['no_edits']}")


def _print_many(pairs: "list[Comparison]", console: "Console", language: Language) -> None:
    """Compare every profile with the first: step times, and the change by part."""
    import polars as pl

    from jumar.profiling.columns import column
    from jumar.profiling.comparison import PART_TITLES
    from jumar.profiling.listing import Listing
    from jumar.profiling.texts import texts_in

    texts = texts_in(language)
    first_source = shown(pairs[0].before.source, 200)
    console.print(texts["against_first"].format(before=first_source), soft_wrap=True)
    numbered_pairs = [(str(number), pair) for number, pair in enumerate(pairs, start=2)]
    for name, pair in numbered_pairs:
        console.print(f"  {name}: {shown(pair.after.source, 200)}", soft_wrap=True)
        _print_notes(pair, console, language, "     ")
    titles = [texts["step_before"], texts["step_after"], texts["step_change"]]
    titles += [title.in_language(language) for title in PART_TITLES.values()]
    columns: dict[str, Sequence[str | float]] = {"": titles}
    for name, pair in numbered_pairs:
        parts = dict.fromkeys(PART_TITLES, 0)
        for change in pair.parts:
            parts[change.name] += change.delta_ns
        durations = [pair.before_ns, pair.after_ns, pair.delta_ns, *parts.values()]
        columns[name] = [_ms(duration, pair.steps) for duration in durations]
    table = pl.DataFrame(columns)
    print_listing(
        Listing(
            title=Text(
                en="Change from the first (ms per step)",
                zh="相对第一份的迭代耗时变化（每迭代 ms）",
            ),
            columns=[column(name, name) for name in table.columns],
            table=table,
        ),
        console,
        language,
    )
