"""`jumar precision diverge`."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from jumar.cli.options import DeviceOption, ImportOption, JsonFlag, SetOption
from jumar.cli.output import progress_printer
from jumar.ground.errors import UserError
from jumar.ground.paths import is_file
from jumar.ground.text import counted, print_plain

if TYPE_CHECKING:
    from jumar.runs.diverging import Divergence, Measured

_MAX_NAMES = 4


def diverge(
    first: Annotated[Path, Parameter(name="A")],
    second: Annotated[Path | None, Parameter(name="B")] = None,
    /,
    *,
    set_a: Annotated[SetOption, Parameter(name="--set-a")] = (),
    set_b: Annotated[SetOption, Parameter(name="--set-b")] = (),
    to: Path | None = None,
    hashes: Path | None = None,
    first_step: Annotated[int | None, Parameter(name="--first")] = None,
    steps: int = 0,
    json_: JsonFlag = False,
    device: DeviceOption = "auto",
    import_: ImportOption = (),
) -> int:
    """Find the first step and op at which two runs that should be equal differ.

    Their common checkpoints narrow it down to an interval. It is replayed with a hash of the state
    after each step, and the first differing step once more with a hash of every tensor. Each run is
    replayed on this machine with its own settings and number of ranks; the runs do not change. The
    exit code is 1 if the runs differ.

    For runs on two machines, use `jumar precision diverge RUN --hashes FILE` on each, then
    `jumar precision diverge FILE FILE`.

    Parameters
    ----------
    first
        A run directory, or a file written by --hashes.
    second
        The run or file to compare with.
    set_a
        Change a field in the replays of A, for example `--set-a threads.intra_op=1`.
    set_b
        Change a field in the replays of B; may be repeated.
    to
        Folder for dumps of the step; by default the next free `dumps/diverge-N`.
    hashes
        Replay only A, and write the hashes of its steps to this file.
    first_step
        With --hashes, the first step, counted from 0; by default the step of the second-to-last
        checkpoint.
    steps
        With --hashes, the number of steps; 0 for all up to the last checkpoint.
    """
    from jumar.runs.diverging import find_divergence
    from jumar.runs.hash_files import compare_hashes, write_hashes

    say = progress_printer(as_json=json_)
    if hashes is not None:
        if second is not None or set_b:
            raise UserError("--hashes applies to a single run", todo="Omit B and --set-b.")
        count = write_hashes(
            first,
            hashes,
            say,
            first=first_step,
            steps=steps,
            assignments=set_a,
            imports=import_,
            device=device,
        )
        print_plain(f"{counted(count, 'step')} hashed: {hashes}")
        return 0
    if second is None:
        raise UserError(
            "the second run is missing", where="B", todo="Name two runs, or one with --hashes."
        )
    if is_file(first) and is_file(second):
        report = compare_hashes((first, second))
    else:
        report = find_divergence(
            (first, second),
            say,
            assignments=(set_a, set_b),
            imports=import_,
            device=device,
            to=to,
        )
    if json_:
        print(json.dumps(_to_json(report), indent=1, default=str))
    else:
        print_plain("\n".join(_lines(report)))
    return 0 if report.is_equal else 1


def _lines(report: "Divergence") -> Iterator[str]:
    if report.equal:
        yield f"equal up to step {report.equal[-1]} ({len(report.equal)} compared)"
    if report.unequal is not None:
        yield f"the checkpoints of step {report.unequal} differ"
    for name, value_a, value_b in (*report.settings, *report.machines):
        yield f"  {name}: {value_a} in A, {value_b} in B"
    if report.step is not None:
        parts = ", ".join(report.parts)
        yield f"first unequal: step {report.step}, counted from 0; differences after it: {parts}"
        yield from _op_lines(report)
    yield from _verdict(report)
    if any(report.replays):
        yield f"replays: {report.replays[0]} of A, {report.replays[1]} of B"
    if report.dump is not None:
        yield f"dumps: {report.dump}"


def _op_lines(report: "Divergence") -> Iterator[str]:
    from jumar.precision.comparing.comparison import call_name
    from jumar.precision.comparing.tables import unequal_text

    if report.op is None:
        if report.ranks[0] != report.ranks[1]:
            yield "  ops can only be compared between runs with the same number of ranks"
        elif report.dump is not None:
            yield "  none of its ops differ: the difference arises after the update"
        return
    cann = report.op.pair.before.cann
    rank = f"rank {report.rank}, " if report.ranks[0] > 1 else ""
    yield f"  {rank}{unequal_text(report.op)}" + (f" ({cann})" if cann else "")
    if report.op.unpaired is not None:
        yield f"  before it, in one run only: {call_name(report.op.unpaired)}"
    for row in report.measured:
        yield f"  {row.value.role} {row.value.name}: {_size(row)}"


def _size(row: "Measured") -> str:
    difference = row.difference
    if difference.remark:
        return difference.remark
    if difference.is_exact and row.value.dtype == row.partner.dtype:
        return "equal"
    largest = "" if difference.largest is None else f", at most {difference.largest:.3g}"
    return f"relative error {difference.lower:.3g}{largest}"


def _verdict(report: "Divergence") -> Iterator[str]:
    for name in report.unrepeatable:
        yield f"{name} is not reproducible: the same step has a different result the second time"
    for name, parts in report.not_reproduced.items():
        suffix = f" and {len(parts) - _MAX_NAMES} more" if len(parts) > _MAX_NAMES else ""
        yield (
            f"{name}'s replay does not reproduce its own checkpoint of step {report.unequal}: "
            f"{', '.join(parts[:_MAX_NAMES])}{suffix}"
        )
    if report.is_equal:
        yield "no divergence" + (": both replays are equal" if any(report.replays) else "")
        return
    if report.step is None:
        yield "both replays are equal, so the difference is not due to the recipes but to another"
        yield "machine, version or device, or to a checkpoint changed afterwards."
    if report.not_reproduced or report.step is None:
        first = report.equal[-1] if report.equal else 0
        yield "To compare the machines, run on each, then compare the two files:"
        yield (
            f"  jumar precision diverge RUN --hashes FILE --first {first} "
            f"--steps {(report.unequal or first + 1) - first}"
        )
    elif not report.replays[0]:
        yield "To find the op, run on each machine, then compare the two dumps:"
        start = f"torchrun --nproc-per-node {report.ranks[0]} -m " if report.ranks[0] > 1 else ""
        to = " --to FOLDER" if start else ""
        yield f"  {start}jumar precision dump RUN --digests --steps {report.step}{to}"


def _to_json(report: "Divergence") -> dict[str, object]:
    from jumar.precision.comparing.tables import unequal_dict

    names = ("field", "a", "b")
    return {
        "equal": report.is_equal,
        "equal_steps": list(report.equal),
        "unequal_checkpoint": report.unequal,
        "settings": [dict(zip(names, row, strict=True)) for row in report.settings],
        "machines": [dict(zip(names, row, strict=True)) for row in report.machines],
        "replays": dict(zip("AB", report.replays, strict=True)),
        "step": report.step,
        "parts": list(report.parts),
        "ranks": dict(zip("AB", report.ranks, strict=True)),
        "op": unequal_dict(report.op),
        "rank": None if report.op is None else report.rank,
        "values": [
            {
                "role": row.value.role,
                "name": row.value.name,
                "relative_error": row.difference.lower,
                "largest_error": row.difference.largest,
                "remark": row.difference.remark,
            }
            for row in report.measured
        ],
        "unlike_own_checkpoint": {
            name: list(parts) for name, parts in report.not_reproduced.items()
        },
        "does_not_repeat": list(report.unrepeatable),
        "dump": None if report.dump is None else str(report.dump),
    }
