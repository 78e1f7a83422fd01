"""What low precision does to each op type, one at a time."""

import math

import pytest

from jumar.ground.errors import UserError
from jumar.precision.searching.effects import Effect
from jumar.runs.observed_steps import SourceRequest
from jumar.runs.precision_effects import keeping_costs, measure_effects

EMULATED = ("precision.mode=allow_mix_precision", "precision.emulate_fp16=true")
TINY = ("model.depth=3", "model.width=4", "data.batch_size=32", "threads.intra_op=1")
SCALED = ("precision.loss_scale=fixed", "precision.loss_scale.init_loss_scale=4096")


def request(what: str, *assignments: str) -> SourceRequest:
    imports = ("tests.cli.small_recipe",)
    return SourceRequest(what=what, assignments=assignments, imports=imports, device="cpu")


def measured(what: str, *assignments: str) -> dict[str, Effect]:
    rows = measure_effects(request(what, *assignments))
    errors = [row.gradient_error for row in rows]
    assert errors == sorted(errors, reverse=True), "ranked by the change of the gradients"
    return {row.candidate.name: row for row in rows}


@pytest.mark.parametrize("settings", [EMULATED, (*EMULATED, *SCALED)], ids=["plain", "scaled"])
def test_healthy_network_changes_by_rounding(settings: tuple[str, ...]) -> None:
    rows = measured("small", *settings)
    assert {"Conv2D", "MatMul"} <= set(rows)
    assert 0 < rows["Conv2D"].gradient_error < 0.05
    assert all(row.error < 2.0**-9 for row in rows.values())


def test_out_of_range_loss_is_detected_despite_finite_gradients() -> None:
    """ViDeNN's loss is a sum over all pixels."""
    rows = measured("videnn-spatial", *EMULATED, *TINY)
    assert rows["ReduceSum"].largest > 65504
    assert rows["ReduceSum"].is_out_of_range
    assert math.isfinite(rows["Conv2D"].gradient_error)


def test_keeping_an_op_type_has_a_cost() -> None:
    asked = request("small", "precision.mode=allow_mix_precision_bf16")
    every = [row.candidate for row in measure_effects(asked)]
    costs = keeping_costs(asked, every, ("Conv2D", "MatMul"))
    assert set(costs) == {"Conv2D", "MatMul"}
    assert all(math.isfinite(cost) for cost in costs.values())


def test_mode_without_op_lists_is_refused() -> None:
    with pytest.raises(UserError, match="has no op lists"):
        measure_effects(request("small", "precision.mode=force_fp16"))
