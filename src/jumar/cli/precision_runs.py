"""`jumar precision runs`."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from jumar.cli.options import JsonFlag
from jumar.ground.text import counted, print_plain

if TYPE_CHECKING:
    from jumar.runs.parting import CheckpointsApart, Parting


def runs(first: Path, second: Path, /, *, top: int = 10, json_: JsonFlag = False) -> int:
    """Show where two runs diverge: at which step, in which losses and weights.

    The exit code is 1 if they differ.

    Parameters
    ----------
    first
        The reference's run directory, such as that of a float32 run.
    second
        The other run directory.
    top
        Number of weights to list for each checkpoint; 0 for all.
    json_
        Print JSON.
    """
    from jumar.runs.parting import parting

    apart = parting(first, second)
    if json_:
        print(json.dumps(_to_json(apart), indent=1))
    else:
        print_plain("\n".join(_lines(apart, top)))
    return 0 if apart.is_equal else 1


def _lines(apart: "Parting", top: int) -> Iterator[str]:
    if not apart.numbers:
        yield f"metrics: all {counted(apart.compared, 'number')} equal"
    else:
        number = apart.numbers[0]
        yield (
            f"metrics: {len(apart.numbers)} of {counted(apart.compared, 'number')} differ, first "
            f"{number.kind} {number.name} at step {number.step}: {number.first:.7g} and "
            f"{number.second:.7g}"
        )
        worst = max(apart.numbers, key=lambda each: each.relative)
        yield (
            f"  most: {worst.kind} {worst.name} at step {worst.step}: {worst.first:.7g} and "
            f"{worst.second:.7g}, {worst.relative:.2%}"
        )
    if not apart.checkpoints:
        yield "weights: no checkpoint of the same step"
    for each in apart.checkpoints:
        yield from _checkpoint_lines(each, top)


def _checkpoint_lines(apart: "CheckpointsApart", top: int) -> Iterator[str]:
    total = apart.equal + len(apart.weights)
    if not apart.weights:
        yield f"step {apart.step}: all {counted(total, 'weight')} equal"
    else:
        yield (
            f"step {apart.step}: {len(apart.weights)} of {counted(total, 'weight')} differ; "
            "relative error, weight"
        )
        ranked = sorted(apart.weights, key=lambda each: -each.error)
        for weight in ranked[: top or None]:
            yield f"  {weight.error:9.2e}  {weight.name}"
        if top and len(ranked) > top:
            yield f"  {counted(len(ranked) - top, 'other weight')} with smaller errors"
    if apart.unpaired:
        shown = ", ".join(apart.unpaired[:4]) + (", ..." if len(apart.unpaired) > 4 else "")
        yield f"  in one run only, or of another shape ({len(apart.unpaired)}): {shown}"


def _to_json(apart: "Parting") -> dict[str, object]:
    return {
        "equal": apart.is_equal,
        "compared": apart.compared,
        "numbers": [vars(each) for each in apart.numbers],
        "checkpoints": [
            {
                "step": each.step,
                "equal": each.equal,
                "weights": [vars(weight) for weight in each.weights],
                "unpaired": each.unpaired,
            }
            for each in apart.checkpoints
        ],
    }
