"""The differences between two runs: losses per log line, scores, weights per checkpoint."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from jumar.ground.errors import UserError
from jumar.ground.paths import missing
from jumar.training.checkpoint import Checkpoint
from jumar.training.checkpoint_parts import PartedTensors
from jumar.training.checkpoint_retention import list_checkpoints
from jumar.training.run_directory import RunDirectory

_TIMINGS = ("fps", "step_ms", "data_ms", "elapsed_s", "seconds")
"""Fields of a record that differ between any two runs."""


@dataclass(frozen=True, kw_only=True)
class ValueDifference:
    """A recorded value that differs between both runs.

    Attributes:
        step: The step of the record.
        kind: `train` or `evaluation`.
        name: Name of the value.
        first: The value in the first run.
        second: The value in the second run.
    """

    step: int
    kind: str
    name: str
    first: float
    second: float

    @property
    def relative(self) -> float:
        """The difference relative to the first value; NaN if either is NaN."""
        if self.first == self.second:
            return 0.0
        return abs(self.second - self.first) / abs(self.first) if self.first else math.inf


@dataclass(frozen=True, kw_only=True)
class WeightDifference:
    """A weight that differs; the error is the norm of the difference over the first run's norm."""

    name: str
    error: float


@dataclass(frozen=True, kw_only=True)
class CheckpointDifference:
    """The differences between the weights of both runs in a checkpoint of the same step.

    Attributes:
        step: The step.
        equal: Number of bit-identical weights.
        weights: The other weights.
        unpaired: Names of weights that only one run has, or whose shapes differ.
    """

    step: int
    equal: int
    weights: Sequence[WeightDifference]
    unpaired: Sequence[str]


@dataclass(frozen=True, kw_only=True)
class RunDifferences:
    """The differences between two runs.

    Attributes:
        compared: Number of recorded values that both runs have.
        numbers: The values that differ, in the order of steps.
        checkpoints: The differences for each step at which both have a checkpoint.
    """

    compared: int
    numbers: Sequence[ValueDifference]
    checkpoints: Sequence[CheckpointDifference]

    @property
    def is_equal(self) -> bool:
        """Whether the runs are equal, as far as is known."""
        return not self.numbers and not any(
            checkpoint.weights or checkpoint.unpaired for checkpoint in self.checkpoints
        )


def compare_runs(first: Path, second: Path) -> RunDifferences:
    """Compare two runs.

    Raises:
        UserError: One is not a run, or they have neither a step of the metrics nor a checkpoint in
            common.
    """
    runs = [RunDirectory(path) for path in (first, second)]
    for run in runs:
        if not run.exists:
            raise missing(run.path, "run directory")
    numbers = [dict(_numbers(run.read_metrics())) for run in runs]
    common = [key for key in numbers[0] if key in numbers[1]]
    checkpoints = [
        {checkpoint.step: checkpoint for checkpoint in list_checkpoints(run.checkpoints)}
        for run in runs
    ]
    steps = sorted(checkpoints[0].keys() & checkpoints[1].keys())
    if not common and not steps:
        raise UserError(
            "they have no log line, evaluation or checkpoint of the same step",
            where=f"{first} and {second}",
            todo="Train both for the same steps, with the same training.log_every.",
        )
    differing = [
        ValueDifference(
            step=step, kind=kind, name=name, first=numbers[0][key], second=numbers[1][key]
        )
        for key in common
        for step, kind, name in (key,)
        if not _same(numbers[0][key], numbers[1][key])
    ]
    return RunDifferences(
        compared=len(common),
        numbers=differing,
        checkpoints=[_weights(checkpoints[0][step], checkpoints[1][step]) for step in steps],
    )


def _numbers(
    records: Sequence[Mapping[str, Any]],
) -> Iterator[tuple[tuple[int, str, str], float]]:
    for record in records:
        if record.get("kind") == "device":
            continue  # the load of the machine, not a result
        terms = record.get("terms")
        fields = {**record, **(terms if isinstance(terms, dict) else {})}
        for name, value in fields.items():
            is_number = isinstance(value, int | float) and not isinstance(value, bool)
            if is_number and name not in (*_TIMINGS, "step", "epoch"):
                yield (int(record["step"]), str(record.get("kind", "")), name), float(value)


def _same(first: float, second: float) -> bool:
    return first == second or (math.isnan(first) and math.isnan(second))


def _weights(first: Checkpoint, second: Checkpoint) -> CheckpointDifference:
    sides = [PartedTensors(checkpoint.model_file(ema=False)) for checkpoint in (first, second)]
    shapes = [side.shapes for side in sides]
    common = [name for name, shape in shapes[0].items() if shapes[1].get(name) == shape]
    weights: list[WeightDifference] = []
    for name in common:
        tensor, other_tensor = (side.read(name) for side in sides)
        if not torch.equal(tensor, other_tensor):
            weights.append(WeightDifference(name=name, error=_error(tensor, other_tensor)))
    names = {**shapes[0], **shapes[1]}
    return CheckpointDifference(
        step=first.step,
        equal=len(common) - len(weights),
        weights=weights,
        unpaired=[name for name in names if name not in common],
    )


def _error(first: torch.Tensor, second: torch.Tensor) -> float:
    first, second = first.double(), second.double()
    norm = first.norm().item()
    difference = (second - first).norm().item()
    return difference / norm if norm else math.inf
