"""`jumar precision convert`."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from jumar.cli.options import JsonFlag
from jumar.ground.tables import aligned_lines
from jumar.ground.text import counted, print_plain

if TYPE_CHECKING:
    from jumar.precision.dumps.dump import Dump
    from jumar.precision.dumps.msprobe_losses import Coverage
    from jumar.precision.dumps.msprobe_writing import Written


def convert(
    dump: Path,
    /,
    *,
    to: Path,
    tensors: Annotated[bool, Parameter(negative="--no-tensors")] = True,
    step: int | None = None,
    rank: int | None = None,
    json_: JsonFlag = False,
) -> int:
    """Convert a dump to msprobe's format, for msprobe's comparison, overflow check and viewers.

    Reads dumps of jumar, msprobe, ptdbg and CANN. If a dump contains tensors without statistics,
    they are computed. What msprobe's format cannot hold is left out and counted.

    Parameters
    ----------
    dump
        Folder or file of the dump.
    to
        Folder for the result, in a subfolder per step and rank, such as `step0/rank0`. A dump is
        never overwritten.
    tensors
        Write tensors too, if the dump contains them; --no-tensors writes only their statistics.
    step
        The step to convert, if the folder contains several.
    rank
        The rank to convert, if the folder contains several.
    """
    from jumar.precision.dumps.measured import with_statistics
    from jumar.precision.dumps.msprobe_losses import coverage
    from jumar.precision.dumps.msprobe_writing import write_msprobe
    from jumar.precision.dumps.opening import open_dump

    content = with_statistics(open_dump(dump, step=step, rank=rank))
    written = write_msprobe(to, content, with_tensors=tensors)
    covered = coverage(content, written.files)
    if json_:
        print(json.dumps(_to_json(content, written, covered), indent=1))
    else:
        _print(content, written, covered)
    return 0


def _print(dump: "Dump", written: "Written", coverage: "Coverage") -> None:
    calls = counted(len(dump.calls), "call")
    print_plain(f"read:    {dump.where} ({dump.tool}, {calls})")
    calls, values = counted(coverage.calls, "call"), counted(coverage.values, "value")
    files = f", {counted(len(written.files), 'tensor')}" if written.files else ""
    print_plain(f"written: {written.folder} ({calls} with {values}{files})")
    for notice in dump.notices:
        print_plain(f"note:    {notice}")
    if coverage.left_out:
        from jumar.precision.dumps.msprobe_losses import LEFT_OUT

        print_plain("left out:")
        rows = [[str(number), LEFT_OUT[kind]] for kind, number in coverage.left_out.items()]
        for line in aligned_lines(rows, numeric=(0,)):
            print_plain(f"  {line}")


def _to_json(dump: "Dump", written: "Written", coverage: "Coverage") -> dict[str, object]:
    return {
        "read": str(dump.where),
        "tool": dump.tool,
        "step": dump.step,
        "rank": dump.rank,
        "calls_read": len(dump.calls),
        "written": str(written.folder),
        "calls": coverage.calls,
        "values": coverage.values,
        "tensors": len(written.files),
        "left_out": dict(coverage.left_out),
        "notices": list(dump.notices),
    }
