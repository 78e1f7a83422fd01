"""The page of a profile as HTML."""

import base64
import hashlib
from collections.abc import Sequence
from functools import lru_cache
from importlib.resources import files
from typing import Any, Final

import polars as pl
from jinja2 import Environment, StrictUndefined, Template

from jumar.profiling.comparison import Comparison, Edit
from jumar.profiling.page import contents
from jumar.profiling.page.labels import Labels, labels
from jumar.profiling.page.plain import inside_script, plain
from jumar.profiling.page.timeline import timeline
from jumar.profiling.profile import Profile

_USED: Final = (
    *("rank", "stream", "name", "type", "core", "start_ns", "duration_ns"),
    *("input_shapes", "input_types", "output_types", "module"),
)


def page(
    profile: Profile,
    *,
    compared: Comparison | None = None,
    edits: Sequence[Edit] = (),
) -> str:
    """One HTML page: head, steps, to-do list, comparison, timeline, ops.

    It needs no network, and its policy lets nothing run but its own script. Every text of the
    profile is escaped, whatever it holds. The page has a bounded number of boxes and groups:
    the timeline has levels, and small groups of the op table are put together.

    Args:
        profile: What the page shows.
        compared: Its comparison with an earlier profile, of which it is the second one.
        edits: Edits of modify_mixlist that the comparison proposes.
    """
    folder = files("jumar.profiling.page")
    style = folder.joinpath("page.css").read_text(encoding="utf-8")
    script = folder.joinpath("page.js").read_text(encoding="utf-8")
    groups, data = _drawn(profile)
    return _template().render(
        title=f"Profile of {plain(profile.source, 120)}",
        style=style,
        script=script,
        style_hash=_hash(style),
        script_hash=_hash(script),
        facts=contents.facts(profile),
        notices=contents.notices(profile),
        parts=contents.PARTS,
        bars=contents.bars(profile) if groups else (),
        todo=contents.todo(profile) if groups else None,
        chains=contents.chains(profile) if groups else None,
        compared=compared,
        before=plain(compared.before.source, 200) if compared else "",
        ms=contents.ms,
        plain=plain,
        part_bars=contents.part_bars(compared) if compared else (),
        changes=contents.changes(compared) if compared else None,
        edits=contents.edit_rows(compared, edits) if compared else None,
        groups=groups,
        data=inside_script(data),
    )


def _drawn(profile: Profile) -> tuple[Labels | None, dict[str, Any]]:
    """The groups of ops, and what the script of the page draws."""
    # Filtering all fifty columns of a million ops takes another half of a gigabyte.
    ops = profile.ops.select(_USED).filter(
        pl.col("start_ns").is_not_null() & pl.col("duration_ns").is_not_null()
    )
    if ops.is_empty():
        return None, {"labels": {}, "timeline": None}
    groups = labels(ops)
    return groups, {"labels": groups.rows, "timeline": timeline(ops, groups, profile)}


@lru_cache
def _template() -> Template:
    text = files("jumar.profiling.page").joinpath("page.html.jinja").read_text(encoding="utf-8")
    environment = Environment(
        autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=StrictUndefined
    )
    return environment.from_string(text)


def _hash(text: str) -> str:
    """The name under which the page's policy allows a style or script."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
