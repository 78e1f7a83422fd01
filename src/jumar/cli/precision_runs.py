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

    comparison = parting(first, second)
    if json_:
        print(json.dumps(_to_json(comparison), indent=1))
    else:
        print_plain("\n".join(_lines(comparison, top)))
    return 0 if comparison.is_equal else 1


def _lines(comparison: "Parting", top: int) -> Iterator[str]:
    if not comparison.numbers:
        yield f"metrics: all {counted(comparison.compared, 'number')} equal"
    else:
        number = comparison.numbers[0]
        yield (
            f"metrics: {len(comparison.numbers)} of {counted(comparison.compared, 'number')} "
            "differ, first "
            f"{number.kind} {number.name} at step {number.step}: {number.first:.7g} and "
            f"{number.second:.7g}"
        )
        worst = max(comparison.numbers, key=lambda each: each.relative)
        yield (
            f"  most: {worst.kind} {worst.name} at step {worst.step}: {worst.first:.7g} and "
            f"{worst.second:.7g}, {worst.relative:.2%}"
        )
    if not comparison.checkpoints:
        yield "weights: no checkpoint of the same step"
    for each in comparison.checkpoints:
        yield from _checkpoint_lines(each, top)


def _checkpoint_lines(comparison: "CheckpointsApart", top: int) -> Iterator[str]:
    total = comparison.equal + len(comparison.weights)
    if not comparison.weights:
        yield f"step {comparison.step}: all {counted(total, 'weight')} equal"
    else:
        yield (
            f"step {comparison.step}: {len(comparison.weights)} of {counted(total, 'weight')} "
            "differ; "
            "relative error, weight"
        )
        sorted_weights = sorted(comparison.weights, key=lambda each: -each.error)
        for weight in sorted_weights[: top or None]:
            yield f"  {weight.error:9.2e}  {weight.name}"
        if top and len(sorted_weights) > top:
            yield f"  {counted(len(sorted_weights) - top, 'other weight')} with smaller errors"
    if comparison.unpaired:
        names_text = ", ".join(comparison.unpaired[:4]) + (
            ", ..." if len(comparison.unpaired) > 4 else ""
        )
        count = len(comparison.unpaired)
        yield f"  in one run only, or of different shapes ({count}): {names_text}"


def _to_json(comparison: "Parting") -> dict[str, object]:
    return {
        "equal": comparison.is_equal,
        "compared": comparison.compared,
        "numbers": [vars(each) for each in comparison.numbers],
        "checkpoints": [
            {
                "step": each.step,
                "equal": each.equal,
                "weights": [vars(weight) for weight in each.weights],
                "unpaired": each.unpaired,
            }
            for each in comparison.checkpoints
        ],
    }
