"""What two runs moved apart by rounding is no fault of the layer that takes it."""

import math
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from jumar.precision.comparing.compare import compare_dumps
from jumar.precision.comparing.drift import Drift, drift_of, layer_and_ancestors
from jumar.precision.dumps.dump import Call, Dump, Role, Statistics, Value
from tests.precision.comparing.test_compare import Step, random

LEARNING_RATE = 1e-3


def training(moved: torch.Tensor | float, *, step: int, kind: str = "op") -> Dump:
    """A linear layer in some step, whose weight differs from another run's by `moved`."""
    weight, data = random(64, 64, seed=1), random(32, 64, seed=2)
    own, given = weight + moved, Step(step)
    output = data @ own.t()
    if kind == "op":
        given.call("aten.mm.default", [data, own.t()], output, layer="dense")
    else:
        given.call("Linear", [data], output, layer="dense", kind="module")
    change = LEARNING_RATE * random(64, 64, seed=3)
    values = (
        given._value("parameter", "0", own.t() if kind == "op" else own),
        given._value("change", "0", change),
    )
    given.calls.append(
        Call(
            kind="parameter",
            op="dense.weight",
            layer="dense",
            number=0,
            phase="update",
            values=values,
        )
    )
    return given.dump(tensors=False)


def blamed(moved: torch.Tensor | float, *, step: int, kind: str = "op") -> list[str]:
    compared = compare_dumps(
        training(0.0, step=step, kind=kind), training(moved, step=step, kind=kind)
    )
    return [each.call.op for each in compared.offenders]


def test_weight_that_moved_less_than_its_updates_is_not_a_finding() -> None:
    moved = 1.5 * LEARNING_RATE * random(64, 64, seed=4)
    assert blamed(moved, step=3) == []
    assert blamed(moved, step=3, kind="module") == []


def test_drift_at_step_0_is_zero() -> None:
    moved = 1.5 * LEARNING_RATE * random(64, 64, seed=4)
    assert blamed(moved, step=0) == ["aten.mm.default"]
    assert blamed(moved, step=0, kind="module") == ["Linear"]


def test_entirely_wrong_weight_is_named_even_in_a_later_step() -> None:
    moved = random(64, 64, seed=5)
    assert blamed(moved, step=3) == ["aten.mm.default"]
    assert blamed(moved, step=3, kind="module") == ["Linear"]


def update(layer: str, *values: Value) -> Call:
    return Call(
        kind="parameter",
        op=f"{layer}.w",
        layer=layer,
        number=0,
        phase="update",
        values=values,
    )


def of_size(role: Role, rms: float, *shape: int) -> Value:
    count = math.prod(shape)
    numbers = Statistics(count=count, l2=rms * math.sqrt(count))
    return Value(role=role, name="0", dtype="float32", shape=shape, statistics=numbers)


def test_drift_is_the_number_of_updates_times_the_steps_own() -> None:
    calls = (
        update("a.b", of_size("parameter", 2.0, 4), of_size("change", 0.1, 4)),
        update("a.b", of_size("parameter", 1.0, 4), of_size("change", 0.2, 4)),
        update("a.c", of_size("parameter", 1.0, 2, 10), of_size("change", 0.3, 2, 10)),
        update("only", of_size("change", 0.3, 5)),
        update("odd", of_size("parameter", 1.0, 5), of_size("change", math.inf, 5)),
        replace(update("op", of_size("parameter", 1.0, 5), of_size("change", 9.0, 5)), kind="op"),
    )
    dump = Dump(where=Path("memory"), tool="test", step=3, calls=calls)
    drift = drift_of(dump)
    assert drift.parameters == pytest.approx(
        {("a.b", (4,)): 0.6, ("a.c", (2, 10)): 0.9, ("only", (5,)): 0.9}
    )
    # Sums of squares of the changes, 0.2 in a.b, 1.8 in a.c, 0.45 in only; of parameters 20 each.
    assert drift.layers == pytest.approx(
        {
            "": 3 * math.sqrt(2.45 / 45),
            "a": 3 * math.sqrt(2 / 40),
            "a.b": 0.3,
            "a.c": 0.9,
        }
    )
    for step in (0, None):
        assert drift_of(replace(dump, step=step)) == Drift()


def test_layer_belongs_to_all_its_ancestors() -> None:
    assert layer_and_ancestors("a.b.c") == ["", "a", "a.b", "a.b.c"]
    assert layer_and_ancestors("") == [""]
