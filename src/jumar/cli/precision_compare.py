"""`jumar precision compare`."""

import json
from pathlib import Path
from typing import TYPE_CHECKING

from jumar.cli.counts import check_top
from jumar.cli.options import JsonFlag
from jumar.cli.output import print_table, write_beside
from jumar.ground.text import counted, print_plain

if TYPE_CHECKING:
    from jumar.precision.comparing.comparison import Comparison


def compare(
    before: Path,
    after: Path,
    /,
    *,
    truth: Path | None = None,
    step: int | None = None,
    rank: int | None = None,
    top: int = 15,
    csv: Path | None = None,
    json_: JsonFlag = False,
    page: Path | None = None,
) -> int:
    """Compare two dumps of one step and name the first op whose error rounding does not explain.

    Reads dumps of jumar, msprobe, ptdbg and CANN. The exit code is 1 if an op is to blame.

    Parameters
    ----------
    before
        Folder or file of the reference, such as fp32 on a CPU.
    after
        Folder or file of the candidate.
    truth
        A more precise dump of the same step; errors then count only if the candidate differs more
        from it than the reference.
    step
        The step to compare, if the folders contain several.
    rank
        The rank to compare, if the folders contain several.
    top
        Number of calls to show; 0 for all.
    csv
        Also write all values to this CSV file.
    page
        Also write an HTML page with the error along the network.
    """
    from jumar.precision.comparing.compare import compare_dumps
    from jumar.precision.comparing.tables import as_csv, as_dict
    from jumar.precision.dumps.opening import open_dump

    check_top(top)
    first, second = (open_dump(path, step=step, rank=rank) for path in (before, after))
    third = None if truth is None else open_dump(truth, step=step, rank=rank)
    comparison = compare_dumps(first, second, third)
    if json_:
        print(json.dumps(as_dict(comparison), indent=2, ensure_ascii=False))
    else:
        _print(comparison, top)
    if csv is not None:
        write_beside(csv, as_csv(comparison))
    if page is not None:
        from jumar.precision.comparing.page import page as render

        write_beside(page, render(comparison))
    return int(bool(comparison.offenders))


def _print(comparison: "Comparison", top: int) -> None:
    from jumar.precision.comparing.tables import error_of, shown, summary, unequal_text

    for name, dump in (("before", comparison.before), ("after", comparison.after)):
        kind = "tensors" if dump.tensors is not None else "statistics"
        print_plain(
            f"{name + ':':<8}{dump.where} ({dump.tool}, {kind}, {counted(len(dump.calls), 'call')})"
        )
    share = 100 * comparison.flagged / max(comparison.rows, 1)
    print_plain(
        f"paired: {counted(len(comparison.calls), 'call')} with"
        f" {counted(comparison.rows, 'value')}; {comparison.flagged} flagged ({share:.1f} %)"
    )
    if comparison.first_unequal is not None:
        print_plain(f"first unequal by hashes: {unequal_text(comparison.first_unequal)}")
    elif comparison.hashed:
        print_plain(f"all {counted(comparison.hashed, 'hashed value')} equal")
    for notice in comparison.notices:
        print_plain(f"note:   {notice}")
    print()
    if not comparison.offenders:
        print_plain("No op is to blame: rounding explains all errors.")
    for position, offender in enumerate(comparison.offenders[: top or None], 1):
        print_plain(f"{position}. {offender.name}: {offender.reason}")
        details = [
            f"error {shown(error_of(offender))}",
            f"{shown(offender.ratio)} times what rounding explains",
        ]
        if offender.added is not None:
            details += [f"adds {shown(offender.added)}", f"inherits {shown(offender.inherited)}"]
        print_plain(f"   {', '.join(details)}")
    calls = sorted(comparison.calls, key=lambda call: (call.verdict != "offender", -call.ratio))
    print()
    print_table(summary(calls[: top or None]))
