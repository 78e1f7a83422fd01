"""The effect of low precision on an op type."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from jumar.precision.searching.attribution import OpEffect
from jumar.precision.searching.candidates import Candidate


@dataclass(frozen=True, kw_only=True)
class Effect:
    """The effect of computing only one op type in low precision.

    Attributes:
        candidate: The op type.
        calls: Forward calls per step.
        error: Norm of the error of its results, relative to their norm.
        loss_change: Change of the loss by that error, to first order.
        largest: Largest magnitude of the inputs and outputs of its ops.
        overflows: Number of elements of its results that are not finite in low precision.
        vanishing: Fraction of the elements of its results that become zero.
        gradient_error: Norm of the change of all gradients, relative to their norm, including the
            effect on the backward pass; infinite if a gradient is not finite.
        layers: Its layers, those with the largest change of the loss first.
    """

    candidate: Candidate
    calls: int
    error: float
    loss_change: float
    largest: float
    overflows: int
    vanishing: float
    gradient_error: float
    layers: Sequence[OpEffect]

    @property
    def is_out_of_range(self) -> bool:
        """Whether the op type alone makes the loss or a gradient infinite."""
        return not math.isfinite(self.gradient_error)


def effect_of(candidate: Candidate, rows: Sequence[OpEffect], gradient_error: float) -> Effect:
    """Combine the measurements of a candidate's ops.

    Args:
        candidate: The op type.
        rows: Measurements of its ops in each layer.
        gradient_error: See `Effect`.
    """
    elements = sum(row.elements for row in rows)
    weights = [row.elements / elements if elements else 0.0 for row in rows]
    return Effect(
        candidate=candidate,
        calls=sum(row.calls for row in rows),
        error=math.hypot(
            *(row.error * weight**0.5 for row, weight in zip(rows, weights, strict=True))
        ),
        loss_change=math.hypot(*(row.loss_change for row in rows)),
        largest=max(row.largest for row in rows),
        overflows=sum(row.overflows for row in rows),
        vanishing=sum(row.vanishing for row in rows) / elements if elements else 0.0,
        gradient_error=gradient_error,
        layers=tuple(sorted(rows, key=lambda row: -row.loss_change)),
    )


def effect_from_json(row: Mapping[str, Any]) -> Effect:
    """Return an effect from the JSON of its `asdict`, in which null means infinite."""
    candidate, error = row["candidate"], row["gradient_error"]
    return Effect(
        candidate=Candidate(
            name=candidate["name"], types=tuple(candidate["types"]), ops=tuple(candidate["ops"])
        ),
        calls=row["calls"],
        error=row["error"],
        loss_change=row["loss_change"],
        largest=row["largest"],
        overflows=row["overflows"],
        vanishing=row["vanishing"],
        gradient_error=math.inf if error is None else error,
        layers=tuple(OpEffect(**layer) for layer in row["layers"]),
    )
