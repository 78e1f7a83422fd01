"""`jumar precision runs`."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from jumar.cli.options import JsonFlag
from jumar.ground.text import counted, print_plain

if TYPE_CHECKING:
    from jumar.runs.run_differences import CheckpointDifference, RunDifferences


def runs(first: Path, second: Path, /, *, top: int = 10, json_: JsonFlag = False) -> int:
    """Show where two runs diverge: at which step, in which losses and weights.

    The exit code is 1 if they differ.

    Parameters
    ----------
    first
        The run directory of the reference, such as a float32 run.
    second
        The run directory to compare with it.
    top
        Number of weights to list for each checkpoint; 0 for all.
    """
    from jumar.runs.run_differences import compare_runs

    comparison = compare_runs(first, second)
    if json_:
        print(json.dumps(_to_json(comparison), indent=1))
    else:
        print_plain("\n".join(_lines(comparison, top)))
    return 0 if comparison.is_equal else 1


def _lines(comparison: "RunDifferences", top: int) -> Iterator[str]:
    if not comparison.numbers:
        yield f"metrics: all {counted(comparison.compared, 'number')} equal"
    else:
        number = comparison.numbers[0]
        yield (
            f"metrics: {len(comparison.numbers)} of {counted(comparison.compared, 'number')} "
            f"differ, first {number.kind} {number.name} at step {number.step}: {number.first:.7g} "
            f"and {number.second:.7g}"
        )
        worst = max(comparison.numbers, key=lambda number: number.relative)
        yield (
            f"  most: {worst.kind} {worst.name} at step {worst.step}: {worst.first:.7g} and "
            f"{worst.second:.7g}, {worst.relative:.2%}"
        )
    if not comparison.checkpoints:
        yield "weights: no checkpoint of the same step"
    for checkpoint in comparison.checkpoints:
        yield from _checkpoint_lines(checkpoint, top)


def _checkpoint_lines(comparison: "CheckpointDifference", top: int) -> Iterator[str]:
    total = comparison.equal + len(comparison.weights)
    if not comparison.weights:
        yield f"step {comparison.step}: all {counted(total, 'weight')} equal"
    else:
        yield (
            f"step {comparison.step}: {len(comparison.weights)} of {counted(total, 'weight')} "
            "differ; relative error, weight"
        )
        sorted_weights = sorted(comparison.weights, key=lambda weight: -weight.error)
        for weight in sorted_weights[: top or None]:
            yield f"  {weight.error:9.2e}  {weight.name}"
        if top and len(sorted_weights) > top:
            yield f"  {counted(len(sorted_weights) - top, 'other weight')} with smaller errors"
    if comparison.unpaired:
        count = len(comparison.unpaired)
        names_text = ", ".join([*comparison.unpaired[:4], *(["..."] if count > 4 else [])])
        yield f"  in one run only, or of different shapes ({count}): {names_text}"


def _to_json(comparison: "RunDifferences") -> dict[str, object]:
    return {
        "equal": comparison.is_equal,
        "compared": comparison.compared,
        "numbers": [vars(number) for number in comparison.numbers],
        "checkpoints": [
            {
                "step": checkpoint.step,
                "equal": checkpoint.equal,
                "weights": [vars(weight) for weight in checkpoint.weights],
                "unpaired": checkpoint.unpaired,
            }
            for checkpoint in comparison.checkpoints
        ],
    }
