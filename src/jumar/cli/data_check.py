"""`jumar data check`."""

import json
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from jumar.cli.counts import checked_workers
from jumar.cli.options import ImportOption, JsonFlag, SetOption
from jumar.data.checking.kinds import Kind
from jumar.ground.text import counted, plain_text, print_plain

if TYPE_CHECKING:
    from jumar.data.checking.findings import Finding, Place
    from jumar.runs.check_data import DataCheck

_MAX_SHOWN = 3
"""Number of places that the table shows for each finding; --json has all."""
_MAX_LENGTH = 80


def check(
    data: str,
    /,
    *,
    eval_: Annotated[str, Parameter(name="--eval", metavar="PATH")] = "",
    kind: Kind | None = None,
    set_: SetOption = (),
    import_: Annotated[
        ImportOption,
        Parameter(help="Import a Python module that registers recipes or sources; repeatable."),
    ] = (),
    json_: Annotated[JsonFlag, Parameter(help="Print everything as JSON.")] = False,
    all_: Annotated[bool, Parameter(name="--all")] = False,
    workers: int | None = None,
) -> int:
    """Read a whole data set and list broken, duplicate and odd items.

    Broken: not decodable, truncated or empty. Duplicate: the same bytes, the same content in
    another encoding, or images that look the same, within a part, in training and evaluation, and
    with different labels. Odd: sizes far from the median, images of a different kind, small
    classes, classes missing in one part.

    The exit code is 0 without findings, 1 with findings, and 2 if the path cannot be used.

    Parameters
    ----------
    data
        A folder, zip, file or glob, or a recipe whose data is checked.
    eval_
        Evaluation data, if it is not in the same folder.
    kind
        Kind of data; by default taken from its file names, or from the recipe.
    set_
        Change a field of the recipe; repeatable.
    all_
        Show all places of each finding instead of the first three.
    workers
        Number of threads; by default one per processor.
    """
    from jumar.runs.check_data import check_data, data_to_check
    from jumar.training.progress import Console

    checked_data = data_to_check(
        data, eval_path=eval_, kind=kind, assignments=set_, imports=import_
    )
    console = Console(silent=json_)
    threads = checked_workers(workers, "threads")
    with console.bar("items", 1) as bar:
        result = check_data(checked_data, workers=threads, progress=bar.show_with_total)
    if json_:
        print(json.dumps(_as_json(result), indent=2, ensure_ascii=False))
    else:
        for line in _lines(result, limit=None if all_ else _MAX_SHOWN):
            print_plain(line)
    return 1 if result.findings else 0


def _lines(result: "DataCheck", *, limit: int | None) -> list[str]:
    sizes = ", ".join(f"{counted(size, 'item')} in {part}" for part, size in result.sizes.items())
    lines = [f"{result.kind}: {sizes}", *(f"note: {plain_text(text)}" for text in result.notices)]
    for finding in result.findings:
        lines.append("")
        lines.append(f"{finding.kind}: {finding.what} ({_count_of(finding)})")
        for group in finding.groups[:limit]:
            places = list(map(_place_text, group[:limit]))
            if limit is not None and len(group) > limit:
                places.append(f"... and {len(group) - limit} more")
            lines.append("  " + "\n    = ".join(places))
        if limit is not None and finding.count > limit:
            lines.append(f"  ... and {finding.count - limit} more (--all, --json)")
    if not result.findings:
        lines.append("no broken, duplicate or odd items")
    return lines


def _count_of(finding: "Finding") -> str:
    places = sum(map(len, finding.groups))
    if places == finding.count:
        return str(places)
    return f"{counted(finding.count, 'group')} of {counted(places, 'item')}"


def _place_text(place: "Place") -> str:
    detail = f" ({plain_text(_shortened(place.detail))})" if place.detail else ""
    return f"{place.part}: {plain_text(place.where)}{detail}"


def _shortened(text: str) -> str:
    return text if len(text) <= _MAX_LENGTH else text[: _MAX_LENGTH - 1] + "…"


def _as_json(result: "DataCheck") -> dict[str, object]:
    return {
        "kind": result.kind,
        "items": result.sizes,
        "notices": list(result.notices),
        "findings": [
            {
                "kind": finding.kind,
                "what": finding.what,
                "groups": [[place._asdict() for place in group] for group in finding.groups],
            }
            for finding in result.findings
        ],
    }
