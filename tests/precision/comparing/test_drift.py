"""What two trainings moved apart by rounding is no fault of the layer that takes it."""

import torch

from jumar.precision.comparing.compare import compare_dumps
from jumar.precision.dumps.dump import Call, Dump
from tests.precision.comparing.test_compare import Step, random

LEARNING_RATE = 1e-3


def training(moved: torch.Tensor | float, *, step: int, kind: str = "op") -> Dump:
    """A linear layer in some step, whose weight differs from another training's by `moved`."""
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


def test_a_weight_that_moved_less_than_its_updates_is_no_finding() -> None:
    moved = 1.5 * LEARNING_RATE * random(64, 64, seed=4)
    assert blamed(moved, step=3) == []
    assert blamed(moved, step=3, kind="module") == []


def test_at_step_0_nothing_has_moved_yet() -> None:
    moved = 1.5 * LEARNING_RATE * random(64, 64, seed=4)
    assert blamed(moved, step=0) == ["aten.mm.default"]
    assert blamed(moved, step=0, kind="module") == ["Linear"]


def test_a_weight_that_is_wrong_altogether_is_named_in_a_later_step_too() -> None:
    moved = random(64, 64, seed=5)
    assert blamed(moved, step=3) == ["aten.mm.default"]
    assert blamed(moved, step=3, kind="module") == ["Linear"]
