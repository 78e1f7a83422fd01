"""The op that is wrong is named first, and rounding is not blamed."""

import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
import torch

from jumar.ground.errors import UserError
from jumar.precision.comparing.compare import compare_dumps
from jumar.precision.dumps.dump import Call, Dump, Kind, Phase, Role, Statistics, Value
from jumar.precision.dumps.opening import open_dump


@dataclass
class Memory:
    tensors: Mapping[str, torch.Tensor]

    def read(self, name: str) -> torch.Tensor:
        return self.tensors[name]


class Step:
    """A dump that is written call by call."""

    def __init__(self, step: int = 0) -> None:
        self.step = step
        self.calls: list[Call] = []
        self.tensors: dict[str, torch.Tensor] = {}

    def call(
        self,
        op: str,
        inputs: list[torch.Tensor],
        output: torch.Tensor,
        layer: str = "net",
        phase: Phase = "forward",
        kind: Kind = "op",
        **arguments: str,
    ) -> torch.Tensor:
        number = sum((c.op, c.layer, c.phase) == (op, layer, phase) for c in self.calls)
        given = [self._value("input", str(at), each) for at, each in enumerate(inputs)]
        self.calls.append(
            Call(
                kind=kind,
                op=op,
                layer=layer,
                number=number,
                phase=phase,
                values=(*given, self._value("output", "0", output)),
                arguments={name.removeprefix("at"): text for name, text in arguments.items()},
            )
        )
        return output

    def _value(self, role: Role, name: str, tensor: torch.Tensor) -> Value:
        key = f"{len(self.calls)}.{role}.{name}"
        self.tensors[key] = tensor.clone()
        wide = tensor.double()
        return Value(
            role=role,
            name=name,
            dtype=str(tensor.dtype).removeprefix("torch."),
            shape=tuple(tensor.shape),
            statistics=Statistics(
                count=tensor.numel(),
                min=wide.min().item(),
                max=wide.max().item(),
                mean=wide.mean().item(),
                l2=wide.norm().item(),
            ),
            tensor=key,
        )

    def dump(self, *, tensors: bool = True) -> Dump:
        return Dump(
            where=Path("memory"),
            tool="test",
            step=self.step,
            calls=self.calls,
            tensors=Memory(self.tensors) if tensors else None,
        )


def random(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def network(
    *, dtype: torch.dtype = torch.float32, fault: str = "", layer: str = "", size: float = 1.0
) -> Step:
    """Two products with a softmax between, and the gradient of a bias."""
    step = Step()
    x, first, second = random(64, 32), random(32, 32, seed=1) / 6, random(32, 32, seed=2) / 6
    x, first, second = (each.to(dtype) for each in (x, first, second))
    hidden = step.call("aten.mm.default", [x, first], x @ first, layer + "one")
    exact = hidden.float().softmax(-1)
    if fault == "softmax":
        exact = exact * (1 + 0.05 * size * random(64, 32, seed=3))
    soft = step.call(
        "aten._softmax.default", [hidden], exact.to(dtype), layer + "soft", at1="-1", at2="False"
    )
    out = step.call("aten.mm.default", [soft, second], soft @ second, layer + "two")
    gradient = (out.float() - out.float().mean(0)).to(dtype)
    summed = gradient.float().sum(0).to(dtype)
    if fault == "gradient":
        summed = torch.full_like(summed, 40.0)
    step.call("aten.sum.dim_IntList", [gradient], summed, layer + "two", "backward", at1="[0]")
    return step


PAIRS = {
    "softmax_half": "Functional.softmax",
    "ln_eps": "Functional.layer_norm",
    "weight_T": "Functional.linear",
}


@pytest.mark.parametrize("form", ["statistics_mix", "tensor_L1"])
@pytest.mark.parametrize("fault", PAIRS)
def test_planted_fault_in_a_real_pair_is_named_first(shared: Path, fault: str, form: str) -> None:
    folder = shared / "data/dumps/own/tf_fp32"
    if not (folder / fault / form).exists():
        pytest.skip(f"{fault} was dumped as statistics only")
    compared = compare_dumps(open_dump(folder / "golden" / form), open_dump(folder / fault / form))
    (blamed,) = compared.offenders
    assert blamed.call.op == PAIRS[fault]
    place = {"softmax_half": 1, "ln_eps": 2, "weight_T": 1}[fault]
    layer = {"softmax_half": "blocks.1.attn", "ln_eps": "blocks.1.ln1"}
    if form == "tensor_L1":
        assert blamed.call.number == place
    else:
        assert blamed.call.layer == layer.get(fault, "blocks.0.attn.out")
    assert ("argument 4" in blamed.reason) == (fault == "ln_eps")


@pytest.mark.parametrize("candidate", ["tf_fp32/clean", "tf_bf16_autocast"])
def test_other_kernels_and_bfloat16_are_not_blamed(shared: Path, candidate: str) -> None:
    folder = shared / "data/dumps/own"
    compared = compare_dumps(
        open_dump(folder / "tf_fp32/golden/statistics_mix"),
        open_dump(folder / candidate / "statistics_mix"),
    )
    assert not compared.offenders
    assert compared.flagged == 0
    assert len(compared.calls) == 131
    # Rounding is what there is: a comparison that sees nothing would pass as well.
    assert max(call.ratio for call in compared.calls) > 0.1


def test_softmax_on_the_wrong_axis_is_found_comparing_npu_with_tensorflow(shared: Path) -> None:
    folder = shared / "data/dumps/cann/axis/precision_data"
    for npu in ("npu", "temp/decode"):
        compared = compare_dumps(open_dump(folder / "tf"), open_dump(folder / npu))
        assert [call.call.layer for call in compared.offenders] == ["Softmax"]
        assert [call.verdict for call in compared.calls] == ["agrees", "agrees", "offender"]


@pytest.mark.parametrize("tensors", [True, False])
def test_added_error_is_distinguished_from_an_inherited_one(tensors: bool) -> None:
    compared = compare_dumps(
        network().dump(tensors=tensors), network(fault="softmax").dump(tensors=tensors)
    )
    (blamed,) = compared.offenders
    assert blamed.name == "soft: aten._softmax.default forward"
    after = compared.calls[2]
    assert after.verdict == "inherited"
    if tensors:
        assert blamed.added == pytest.approx(0.05, rel=0.3)
        assert blamed.inherited == 0
        assert after.added is not None
        assert after.added < 1e-6
        assert after.inherited is not None
        assert after.inherited > 0.01


def test_fault_below_bfloat16_rounding_is_found_only_by_replay() -> None:
    healthy, faulty = network(), network(dtype=torch.bfloat16, fault="softmax", size=0.6)
    assert not compare_dumps(healthy.dump(), network(dtype=torch.bfloat16).dump()).offenders
    (blamed,) = compare_dumps(healthy.dump(), faulty.dump()).offenders
    assert blamed.call.layer == "soft"


def test_gradient_that_is_zero_in_theory_is_not_a_finding() -> None:
    reference, candidate = network().dump(), network(dtype=torch.bfloat16).dump()
    for tensors in (True, False):
        one, two = (
            each if tensors else replace(each, tensors=None) for each in (reference, candidate)
        )
        compared = compare_dumps(one, two)
        (row,) = [row for row in compared.calls[-1].rows if row.value.role == "output"]
        assert row.difference is not None
        assert row.difference.lower > 0.5
        assert not compared.offenders
    (blamed,) = compare_dumps(reference, network(fault="gradient").dump()).offenders
    assert blamed.call.phase == "backward"


def test_fault_of_the_reference_is_attributed_to_it() -> None:
    (blamed,) = compare_dumps(network(fault="softmax").dump(), network().dump()).offenders
    assert "the reference's output does not follow" in blamed.reason


@pytest.mark.parametrize("tensors", [True, False])
def test_candidate_is_blamed_only_for_deviations_the_baseline_lacks(tensors: bool) -> None:
    truth = network().dump(tensors=tensors)
    faulty = network(fault="softmax").dump(tensors=tensors)
    assert not compare_dumps(faulty, faulty, truth).offenders
    worse = network(fault="softmax", size=8).dump(tensors=tensors)
    (blamed,) = compare_dumps(faulty, worse, truth).offenders
    assert blamed.call.layer == "soft"
    assert blamed.baseline is not None
    assert blamed.baseline > 0.01


def test_infinity_on_only_one_side_is_named() -> None:
    broken = network()
    name = next(value.tensor for value in broken.calls[1].values if value.role == "output")
    assert name is not None
    broken.tensors[name][0, 0] = torch.inf
    (blamed,) = compare_dumps(network().dump(), broken.dump()).offenders
    assert blamed.reason == "NaN or infinity at different positions"


def test_paths_with_a_ddp_level_are_paired_and_the_rest_reported() -> None:
    wrapped = network(layer="module.")
    wrapped.call("aten.relu.default", [random(4)], random(4).relu(), "module.more")
    compared = compare_dumps(network().dump(), wrapped.dump())
    assert len(compared.calls) == 4
    assert [call.layer for call in compared.only_after] == ["module.more"]
    assert "1 call of memory without a partner, such as module.more: aten" in compared.notices[0]


def test_three_of_the_calls_without_a_partner_are_named() -> None:
    longer = network()
    for number in range(4):
        longer.call("aten.relu.default", [random(4)], random(4).relu(), f"more.{number}")
    (notice,) = compare_dumps(network().dump(), longer.dump()).notices
    assert notice.startswith("4 calls of memory without a partner")
    assert [f"more.{number}" in notice for number in range(4)] == [True, True, True, False]


def test_one_more_cast_in_a_layer_does_not_shift_the_others() -> None:
    reference, candidate = Step(), Step()
    for step in (reference, candidate):
        if step is candidate:
            step.call("aten._to_copy.default", [random(3, 3)], random(3, 3), at1="None")
        for size in (4, 5):
            x = random(size, size)
            step.call("aten._to_copy.default", [x], x, at1="None")
    compared = compare_dumps(reference.dump(), candidate.dump())
    assert [each.call.values[0].shape for each in compared.calls] == [(4, 4), (5, 5)]
    assert not compared.offenders


@pytest.mark.parametrize("is_rounded", [True, False])
def test_operands_rounded_by_a_cpu_without_bf16_are_not_blamed(
    is_rounded: bool,
) -> None:
    """It casts them to bfloat16 and back, and multiplies in float32."""
    reference, candidate = Step(), Step()
    operands = [random(8, 8), random(8, 8)]
    reference.call("aten.mm.default", operands, operands[0] @ operands[1])
    narrow = [each.bfloat16() for each in operands]
    wide = [each.float() for each in narrow]
    if is_rounded:
        for source, target in [
            *zip(operands, narrow, strict=True),
            *zip(narrow, wide, strict=True),
        ]:
            candidate.call("aten._to_copy.default", [source], target)
    candidate.call("aten.mm.default", wide, wide[0] @ wide[1])
    compared = compare_dumps(reference.dump(), candidate.dump())
    assert bool(compared.offenders) is not is_rounded


def test_level_one_dump_pairs_with_a_layer_dump(shared: Path) -> None:
    folder = shared / "data/dumps/own/tf_fp32/golden"
    compared = compare_dumps(open_dump(folder / "statistics_mix"), open_dump(folder / "tensor_L1"))
    assert len(compared.calls) == 60
    assert not compared.only_after
    assert all(
        row.difference is None or row.difference.lower < 1e-6
        for call in compared.calls
        for row in call.rows
    )


def test_unrelated_dumps_are_refused(shared: Path) -> None:
    other = Step(step=3)
    other.call("aten.mm.default", [random(4, 4), random(4, 4)], random(4, 4), "one")
    with pytest.raises(UserError, match="the dumps are of different steps, 0 and 3"):
        compare_dumps(network().dump(), other.dump())
    with pytest.raises(UserError, match=re.escape("contains no calls")):
        compare_dumps(network().dump(), Step().dump())
    real = open_dump(shared / "data/dumps/own/conv_L0")
    with pytest.raises(UserError, match="dumps of different models"):
        compare_dumps(network().dump(), real)


def test_missing_tensor_file_falls_back_to_statistics(shared: Path, tmp_path: Path) -> None:
    own = shared / "data/dumps/own/tf_fp32"
    shutil.copytree(own / "softmax_half/tensor_L1", tmp_path / "dump")
    (path,) = tmp_path.rglob("Functional.softmax.1.forward.output.0.pt")
    path.parent.chmod(0o755)
    path.unlink()
    compared = compare_dumps(open_dump(own / "golden/tensor_L1"), open_dump(tmp_path / "dump"))
    assert any("1 tensor could not be read" in notice for notice in compared.notices)
    assert compared.offenders[0].name == "Functional.softmax #1 forward"


def test_names_in_a_file_can_only_call_listed_functions(tmp_path: Path) -> None:
    steps = [Step(), Step()]
    target = tmp_path / "written"
    for step in steps:
        step.call("Torch.save", [random(3)], random(3), at1=repr(str(target)))
    compared = compare_dumps(*(step.dump() for step in steps))
    assert compared.calls[0].added is None
    assert not target.exists()
