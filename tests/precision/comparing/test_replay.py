"""An op is computed again from its recorded operands, and what rounding explains is measured."""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.nn import functional

from jumar.precision.comparing.pairing import Pair
from jumar.precision.comparing.replay import (
    Replayed,
    _arguments,
    _distance,
    _explained,
    _literal,
    _perturbed,
    _relative,
    _Side,
    _target,
    _terms,
    _verdict,
    replay,
)
from jumar.precision.dumps.dump import Call, Dump, Kind, Phase, Role, Value

ROOT = math.sqrt(2)


class Memory(dict[str, torch.Tensor]):
    def read(self, name: str) -> torch.Tensor:
        return self[name]


TENSORS = Memory()
"""All tensors of this file's dumps."""


def stored(role: Role, name: str, tensor: torch.Tensor, shape: tuple[int, ...] = ()) -> Value:
    key = str(len(TENSORS))
    TENSORS[key] = tensor
    dtype = str(tensor.dtype).removeprefix("torch.")
    return Value(role=role, name=name, dtype=dtype, shape=shape or tuple(tensor.shape), tensor=key)


def call(
    op: str,
    inputs: Mapping[str, torch.Tensor],
    *outputs: torch.Tensor,
    phase: Phase = "forward",
    kind: Kind = "op",
    number: int = 0,
    **arguments: str,
) -> Call:
    values = (
        *(stored("input", name, each) for name, each in inputs.items()),
        *(stored("output", str(place), each) for place, each in enumerate(outputs)),
    )
    given = {name.removeprefix("at"): text for name, text in arguments.items()}
    return Call(
        kind=kind,
        op=op,
        layer="net",
        number=number,
        phase=phase,
        values=values,
        arguments=given,
    )


DUMP = Dump(where=Path("memory"), tool="test", tensors=TENSORS)


def replayed(before: Call, after: Call, forward: Pair | None = None) -> Replayed | None:
    return replay(Pair(before, after), DUMP, DUMP, forward, 3.0)


def random(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


X, W, B = random(16, 8), random(4, 8, seed=1), random(4, seed=2)
OUT = functional.linear(X, W, B)
OPERANDS = {"0": X, "1": W, "bias": B}


def test_healthy_product_adds_only_rounding_error() -> None:
    result = replayed(*[call("Functional.linear", OPERANDS, OUT)] * 2)
    assert result is not None
    assert (result.is_blamed, result.is_reference_blamed, result.inherited) == (False, False, 0.0)
    assert result.ratios.keys() == {"0"}
    assert result.ratios["0"] < 3
    assert result.added < 1e-6


def test_replaying_both_sides_reveals_which_one_adds_an_error() -> None:
    good = call("Functional.linear", OPERANDS, OUT)
    bad = call("Functional.linear", OPERANDS, 1.25 * OUT)
    for pair, of_reference in (((good, bad), False), ((bad, good), True)):
        result = replayed(*pair)
        assert result is not None
        assert (result.is_blamed, result.is_reference_blamed) == (True, of_reference)
        assert result.added == pytest.approx(0.2, rel=1e-4)
        assert result.ratios["0"] > 1000
    assert replayed(bad, bad) is None  # another function than the name says
    moved = call("Functional.linear", OPERANDS | {"0": 2 * X}, 2 * (OUT - B) + B)
    result = replayed(good, moved)
    assert result is not None
    assert not result.is_blamed
    difference = (OUT - B).norm() / OUT.norm()
    assert result.inherited == pytest.approx(difference.item(), rel=1e-5)


def gradients(*outputs: torch.Tensor, incoming: torch.Tensor) -> Call:
    return call("Functional.linear", {"0": incoming}, *outputs, phase="backward", number=0)


def test_function_gradients_match_autograd() -> None:
    forward = call("Functional.linear", OPERANDS, OUT)
    both = Pair(forward, forward)
    incoming = random(16, 4, seed=3)
    given = incoming @ W, incoming.t() @ X, incoming.sum(0)
    good = gradients(*given, incoming=incoming)
    result = replayed(good, good, both)
    assert result is not None
    assert result.ratios.keys() == {"0", "1", "2"}
    assert (max(result.ratios.values()) < 3, result.is_blamed) == (True, False)
    bad = gradients(given[0], 1.5 * given[1], given[2], incoming=incoming)
    result = replayed(good, bad, both)
    assert result is not None
    assert result.is_blamed
    assert result.added == pytest.approx(1 / 3, rel=1e-4)
    assert [name for name, ratio in result.ratios.items() if ratio > 3] == ["1"]
    assert replayed(good, bad) is None
    # Only the first gradient was recorded: its operand is known by its shape.
    first = gradients(given[0], incoming=incoming)
    result = replayed(first, first, both)
    assert result is not None
    assert result.ratios.keys() == {"0"}
    other = gradients(given[1], incoming=incoming)
    assert replayed(other, other, both) is None


def test_single_gradient_may_belong_to_either_same_shaped_operand() -> None:
    square = random(8, 8), random(8, 8, seed=1)
    forward = call("Torch.matmul", {"0": square[0], "1": square[1]}, square[0] @ square[1])
    incoming = random(8, 8, seed=2)
    given = incoming @ square[1].t(), square[0].t() @ incoming
    for outputs, is_known in ((given, True), (given[:1], False)):
        backward = call("Torch.matmul", {"0": incoming}, *outputs, phase="backward")
        assert (replayed(backward, backward, Pair(forward, forward)) is not None) is is_known


@pytest.mark.parametrize(
    "odd",
    [
        call("Functional.linear", OPERANDS, OUT, kind="module"),
        call("Functional.linear", OPERANDS, OUT, number=-1),
        call("Functional.nonsense", OPERANDS, OUT),
        call("Functional.linear", {"0": X, "2": B}, OUT),
        call("Functional.linear", OPERANDS, OUT[:, :3]),
        call("Functional.linear", OPERANDS),
        call("Functional.linear", OPERANDS, OUT, at3="print(1)"),
    ],
)
def test_calls_that_cannot_be_replayed_faithfully_are_skipped(odd: Call) -> None:
    assert replayed(odd, odd) is None


def test_sampled_and_missing_tensors_are_not_replayed() -> None:
    good = call("aten.relu.default", {"0": X}, X.relu())
    assert replayed(good, good) is not None
    sample = Call(
        kind="op",
        op="aten.relu.default",
        layer="net",
        number=0,
        phase="forward",
        values=(stored("input", "0", X, (32, 8)), stored("output", "0", X.relu(), (32, 8))),
    )
    assert replayed(sample, sample) is None
    bare = Dump(where=Path("memory"), tool="test")
    for before, after in ((DUMP, bare), (bare, DUMP)):
        assert replay(Pair(good, good), before, after, None, 3.0) is None
    values = tuple(
        Value(role=value.role, name=value.name, dtype=value.dtype, shape=value.shape)
        for value in good.values
    )
    unknown = Call(
        kind="op",
        op=good.op,
        layer="net",
        number=0,
        phase="forward",
        values=values,
    )
    assert replayed(unknown, good) is None


def side(output: list[float], explained: float, exact: list[float] | None = None) -> _Side:
    given, right = torch.tensor(output), torch.tensor(exact or [3.0, 4.0]).double()
    return _Side(outputs={"0": given}, replayed={"0": right}, explained={"0": explained})


def test_verdict_blames_the_side_whose_error_exceeds_the_limit() -> None:
    # Of [3, 5] against [3, 4] the error is 1 / sqrt(2), its rms sqrt(17).
    exact, apart = side([3.0, 4.0], 0.1), side([3.0, 5.0], 0.5)
    added = 1 / ROOT / math.sqrt(17)
    blamed = Replayed(
        ratios={"0": pytest.approx(ROOT)},  # type: ignore[dict-item]
        added=pytest.approx(added),  # type: ignore[arg-type]
        inherited=0.0,
        is_blamed=True,
    )
    assert _verdict(exact, apart, 1.4) == blamed
    result = _verdict(exact, apart, 1.5)
    assert result is not None
    assert (result.is_blamed, result.ratios["0"]) == (False, pytest.approx(ROOT))
    moved = _verdict(exact, side([3.0, 6.0], 0.5, [3.0, 6.0]), 1.0)
    assert moved == Replayed(
        ratios={"0": 0.0},
        added=0.0,
        inherited=pytest.approx(0.4),  # type: ignore[arg-type]
    )
    reference = _verdict(apart, exact, 1.4)
    assert reference is not None
    assert (reference.is_blamed, reference.is_reference_blamed) == (True, True)
    assert (reference.ratios["0"], reference.added) == (pytest.approx(ROOT), pytest.approx(added))
    assert _verdict(apart, side([3.0, 5.0], 0.5 * 29), 1.4) is None
    assert _verdict(apart, side([3.0, 5.0], 0.5 * 31), 1.4) is not None
    none = _Side(outputs={}, replayed={}, explained={})
    assert _verdict(exact, none, 1.0) is None
    sure = _verdict(exact, side([3.0, 5.0], 0.0), 1.0)
    assert sure is not None
    assert sure.ratios == {"0": math.inf}


@pytest.mark.parametrize(
    ("terms", "unit", "expected"),
    [
        # Moved 1 / sqrt(2); the rms of the result is 5 / sqrt(2).
        (16.0, 2.0**-24, 1 / ROOT + 2 / ROOT + 2.0**-25 * 5 / ROOT),
        (16.0, 2.0**-25, 1 / ROOT + 2 / ROOT + 2.0**-26 * 5 / ROOT),
        (16.0, 2.0**-20, (1 + 2 / 16) / ROOT + 2.0**-21 * 5 / ROOT),
        (16.0, 2.0**-10, 2 * ((1 + 2.0**-13) / ROOT + 2.0**-11 * 5 / ROOT)),
        (-8.0, 2.0**-24, (1 + 8) / ROOT + 2.0**-25 * 5 / ROOT),
        (-1e6, 2.0**-24, (1 + 4096) / ROOT + 2.0**-25 * 5 / ROOT),
        (16.0, 0.0, 1 / ROOT),
    ],
)
def test_explained_error_combines_propagated_and_added_rounding(
    terms: float, unit: float, expected: float
) -> None:
    exact, shaken = torch.tensor([3.0, 4.0]), torch.tensor([3.0, 5.0])
    result = _explained(terms, unit, exact, shaken)
    assert result == pytest.approx(expected * (1 + ROOT), rel=1e-12)
    assert _explained(terms, unit, torch.empty(0), torch.empty(0)) == 0


def test_sum_terms_equal_the_number_of_reduced_elements() -> None:
    def terms(
        op: str, output: int | tuple[int, ...], *shapes: Any, phase: Phase = "forward"
    ) -> Any:
        tensors = {("input", str(at)): torch.zeros(shape) for at, shape in enumerate(shapes)}
        tensors["input", "index"] = torch.zeros(10_000, dtype=torch.int64)
        return _terms(call(op, {}, phase=phase), tensors, torch.zeros(output))

    assert terms("aten.sum.dim_IntList", 4, (4, 25)) == -25
    assert terms("aten.sum.dim_IntList", (4, 1), (4, 25)) == 25
    assert terms("aten.mean.dim", 4, (4, 25)) == 25
    assert terms("aten.mean.dim", 4, (4, 25), phase="backward") == -25
    assert terms("aten.mean.dim", (2, 2), (4, 25), phase="backward") == 25
    assert terms("aten.relu.default", (4, 50), (4, 25)) == 1
    assert terms("aten.relu.default", 0, (4, 25)) == 100
    assert terms("aten.mm.default", (6, 5), (6, 8), (8, 5)) == 8
    assert terms("aten.bmm.default", (2, 6, 5), (2, 6, 8), (2, 8, 5)) == 8
    assert terms("aten.mm.default", (6, 5), (6, 30)) == 6
    assert terms("aten.convolution.default", (2, 4, 3, 3), (2, 3, 5, 5), (4, 3, 3, 3)) == 50
    assert terms("aten.convolution.default", (2, 4, 1, 1), (2, 30, 1, 1), (4, 30, 1, 1)) == 30
    assert terms("aten.convolution.default", (2, 4, 1, 1), (2, 30, 1, 1)) == 7.5
    assert terms("aten.arange.default", (2, 4)) == 1


def test_arguments_are_reassembled_from_their_names() -> None:
    tensors = {name: torch.zeros(size) for size, name in enumerate(("0", "2.1", "2.0", "weight"))}
    one = call("aten.x.default", {}, at1="3", p="0.5")
    positional, keywords = _arguments(one, {("input", name): t for name, t in tensors.items()})
    assert (positional[0] is tensors["0"], positional[1]) == (True, 3)
    assert [each.numel() for each in positional[2]] == [2, 1]
    assert keywords == {"weight": tensors["weight"], "p": 0.5}
    with pytest.raises(ValueError, match="an argument is missing"):
        _arguments(call("aten.x.default", {}, at1="3"), {})


def test_argument_texts_are_literals_or_dtypes() -> None:
    assert (_literal("torch.bfloat16"), _literal("torch.int32")) == (torch.float64, torch.int32)
    assert (_literal("inf"), _literal("-inf"), math.isnan(_literal("nan"))) == (
        math.inf,
        -math.inf,
        True,
    )
    assert _literal("[1, None, 'mean']") == [1, None, "mean"]
    for text in ("torch.save", "torch.nonsense", "Generator", "1 +"):
        with pytest.raises(ValueError):
            _literal(text)


def test_only_pure_tensor_functions_are_called() -> None:
    assert _target("Functional.linear") is functional.linear
    assert _target("Torch.matmul") is torch.matmul
    assert _target("Tensor.abs") is torch.Tensor.abs
    assert _target("aten.mm.default") is _target("aten.mm") is torch.ops.aten.mm.default
    assert _target("aten.add.Tensor") is torch.ops.aten.add.Tensor
    for op in (
        *("Torch.save", "Other.abs", "Tensor.numpy", "aten.add_.Tensor", "aten.bernoulli.default"),
        *("aten.full.default", "aten.nonsense.default", "aten.mm.other", "aten.mm.a-b", "aten.a-b"),
        *("aten.mm.__class__", "aten.__class__.default", "aten.rand.default"),
    ):
        assert _target(op) is None, op


def test_noise_is_uniform_within_a_rounding_step() -> None:
    tensor = random(20_000).double() + 5
    generator = torch.Generator().manual_seed(3)
    noise = _perturbed(tensor, 2.0**-8, generator) / tensor - 1
    assert noise.abs().max().item() == pytest.approx(2.0**-8, rel=1e-3)
    assert noise.std().item() == pytest.approx(2.0**-8 / math.sqrt(3), rel=0.03)
    assert abs(noise.mean().item()) < 2.0**-8 / 50
    index = torch.arange(3)
    assert _perturbed(index, 0.5, generator) is index


def test_distances_ignore_infinities_on_both_sides() -> None:
    first = torch.tensor([3.0, 4.0, math.inf])
    assert _distance(first, torch.tensor([3.0, 5.0, math.inf])) == pytest.approx(1 / ROOT)
    assert _distance(first, torch.tensor([3.0, 5.0, -math.inf])) == math.inf
    assert _distance(first, torch.tensor([3.0, 5.0, 1.0])) == math.inf
    assert _relative(1.0, first) == pytest.approx(ROOT / 5)
    zeros = torch.zeros(2)
    assert (_relative(1.0, zeros), _relative(0.0, zeros)) == (math.inf, 0.0)
