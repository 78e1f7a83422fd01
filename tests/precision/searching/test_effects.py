"""The effect on an op type is put together from its ops in their layers."""

import json
import math
from dataclasses import asdict, replace

import pytest

from jumar.precision.searching.attribution import OpEffect
from jumar.precision.searching.candidates import Candidate
from jumar.precision.searching.effects import Effect, effect_from_json, effect_of

RELU = Candidate(name="Relu", types=("Relu", "ReluV2"), ops=("relu",))
ONE = OpEffect(
    op="relu",
    layer="a",
    calls=2,
    error=0.3,
    loss_change=0.3,
    largest=5.0,
    overflows=1,
    vanishing=6,
    elements=30,
)
TWO = replace(
    ONE, layer="b", calls=3, error=0.2, loss_change=0.4, largest=7.0, overflows=4, elements=10
)


def test_errors_are_weighted_by_elements_and_add_in_quadrature() -> None:
    effect = effect_of(RELU, [ONE, TWO], 0.25)
    assert effect == Effect(
        candidate=RELU,
        calls=5,
        error=pytest.approx(math.sqrt(0.09 * 3 / 4 + 0.04 / 4)),  # type: ignore[arg-type]
        loss_change=pytest.approx(0.5),  # type: ignore[arg-type]
        largest=7.0,
        overflows=5,
        vanishing=12 / 40,
        gradient_error=0.25,
        layers=(TWO, ONE),
    )
    assert not effect.is_out_of_range
    assert effect_of(RELU, [ONE], math.inf).is_out_of_range
    assert effect_of(RELU, [ONE], math.nan).is_out_of_range


def test_ops_without_elements_have_no_share() -> None:
    empty = replace(ONE, elements=0)
    effect = effect_of(RELU, [empty, empty], 0.0)
    assert (effect.error, effect.vanishing, effect.calls) == (0.0, 0.0, 4)


@pytest.mark.parametrize("error", [0.25, math.inf])
def test_effect_round_trips_through_json(error: float) -> None:
    effect = effect_of(RELU, [ONE, TWO], error)
    row = asdict(effect)
    row["gradient_error"] = error if math.isfinite(error) else None
    assert effect_from_json(json.loads(json.dumps(row))) == effect
