"""`jumar precision overflow`."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jumar.cli.options import DeviceOption, ImportOption, JsonFlag, RecipeOrRun, SetOption
from jumar.ground.text import counted, print_plain

if TYPE_CHECKING:
    from jumar.precision.overflow.head_room import HeadRoom
    from jumar.runs.overflow import OverflowReport


def overflow(
    what: RecipeOrRun,
    /,
    *,
    steps: int = 20,
    first: int | None = None,
    top: int = 10,
    to: Path | None = None,
    json_: JsonFlag = False,
    set_: SetOption = (),
    device: DeviceOption = "auto",
    import_: ImportOption = (),
) -> int:
    """Name the op that overflows, or show how close ops are to overflowing.

    Trains until a loss or gradient is not finite, repeats that step with every op recorded, and
    names step, rank, layer and op with its inputs and the loss scale. If nothing overflows, lists
    the ops that are nearest to float16's largest number, 65504, and the layers whose gradients
    float16 would round to 0. The exit code is 1 if a step was not finite. A run does not change. On
    a CPU, which has no float16, add --set precision.emulate_fp16=true.

    Parameters
    ----------
    steps
        Number of steps to try.
    first
        First step to try, counted from 0; by default the step of the newest checkpoint.
    top
        Number of ops and layers to list.
    to
        Folder for the dump of the step; by default the next free `dumps/NAME-N`.
    set_
        Change a field, for example `--set precision.mode=force_fp16`; may be repeated.
    """
    from jumar.runs.overflow import OverflowRequest, find_overflow

    request = OverflowRequest(
        what=what,
        steps=steps,
        first=first,
        assignments=set_,
        imports=import_,
        to=to,
        device=device,
    )

    def show(report: "OverflowReport") -> None:
        if json_:
            print(json.dumps(_to_json(report), indent=1))
        else:
            print_plain("\n".join(_lines(report, top)))
        sys.stdout.flush()

    return find_overflow(request, show)


def _lines(report: "OverflowReport", top: int) -> Iterator[str]:
    from jumar.precision.overflow.wording import origin_lines

    scale = "none" if report.loss_scale is None else f"{report.loss_scale:g}"
    if report.is_bad:
        yield f"step {report.step}: not finite, loss scale {scale}"
    else:
        yield f"no overflow up to step {report.step}, loss scale {scale}"
    for rank, origin in sorted(report.origins.items()):
        yield from origin_lines(rank, origin)
    if report.is_bad and not report.origins:
        yield "  all recorded ops have finite outputs: the loss or the update itself overflowed"
    low = [row for row in report.head_room if row.dtype != "float32"]
    # If float16 is emulated, the results of casts are the only tensors in it.
    rows = low if any(row.cann != "Cast" for row in low) else report.head_room
    yield "nearest to 65504: doublings left, largest value, dtype, op, layer"
    yield from map(_room_line, rows[:top])
    if len(rows) > top:
        yield f"  {counted(len(rows) - top, 'other op')} with more room"
    if len(rows) < len(report.head_room):
        yield f"  {counted(len(report.head_room) - len(rows), 'op')} in float32 not listed"
    if report.vanishing:
        yield "gradients too small for 16 bits: share lost, share with few remaining bits, layer"
        for row in report.vanishing[:top]:
            coarse = row.coarse / row.elements
            yield f"  {row.share_lost:7.2%}  {coarse:7.2%}  {row.layer or 'outside all layers'}"
        if len(report.vanishing) > top:
            yield f"  {counted(len(report.vanishing) - top, 'other layer')} with smaller shares"
    yield f"dump: {report.dump}"


def _room_line(row: "HeadRoom") -> str:
    layer = row.layer or "outside all layers"
    above = f", {row.above} above" if row.above else ""
    phase = "" if row.phase == "forward" else f", {row.phase}"
    return (
        f"  {row.doublings:6.1f}  {row.largest:10.4g}{above}  {row.dtype}  "
        f"{row.cann or row.op}  {layer}{phase}"
    )


def _to_json(report: "OverflowReport") -> dict[str, Any]:
    from jumar.precision.overflow.wording import advice, described

    return {
        "step": report.step,
        "bad": report.is_bad,
        "loss_scale": report.loss_scale,
        "origins": [
            {
                "rank": rank,
                "op": origin.op.op,
                "cann": origin.op.cann,
                "layer": origin.op.layer,
                "phase": origin.op.phase,
                "number": origin.op.number,
                "made_here": origin.is_made,
                "inputs": [described(value) for value in origin.inputs],
                "values": [described(value) for value in origin.bad],
                "try": advice(origin),
            }
            for rank, origin in sorted(report.origins.items())
        ],
        "head_room": [{**vars(row), "doublings": row.doublings} for row in report.head_room],
        "vanishing": [{**vars(row), "share_lost": row.share_lost} for row in report.vanishing],
        "dump": str(report.dump),
    }
