"""What a dump of a training step holds, and when steps begin and end."""

import gc
import math
import resource
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

import jumar.precision
from jumar.ground.errors import UserError
from jumar.precision.dumps.dump import Call, Dump, Statistics
from jumar.precision.dumps.ours import find_dumps, read_dump
from jumar.precision.recording.statistics import Meter
from tests.precision.recording.networks import Attention, Network, batch


def dump_step(folder: Path, *, steps: int = 1, bf16: bool = False, **options: Any) -> Dump:
    """The dump of the last of some steps."""
    torch.manual_seed(0)
    net = options.pop("net") if "net" in options else Network()
    optimizer = torch.optim.AdamW(net.parameters(), 1e-2)
    with jumar.precision.dump(folder, steps=[steps - 1], **options):
        for step in range(steps):
            images, labels = batch(step)
            with torch.autocast("cpu", torch.bfloat16, enabled=bf16):
                loss = F.cross_entropy(net(images), labels)
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
    return read_dump(folder)


def values_of(dump: Dump, **fields: str) -> list[Call]:
    return [call for call in dump.calls if all(getattr(call, k) == v for k, v in fields.items())]


def read(dump: Dump, name: str | None) -> Tensor:
    assert dump.tensors is not None
    assert name is not None
    return dump.tensors.read(name)


def measured(tensor: Tensor) -> Statistics:
    meter = Meter(counts=True)
    meter.measure(tensor)
    return meter.read()[0]


@pytest.mark.parametrize("bf16", [False, True], ids=["fp32", "bf16"])
def test_statistics_of_every_value_match_its_tensor(tmp_path: Path, bf16: bool) -> None:
    dump = dump_step(tmp_path, steps=2, level="tensors", bf16=bf16)
    values = [value for call in dump.calls for value in call.values if value.tensor]
    assert len(values) > 300
    for value in values:
        tensor = read(dump, value.tensor)
        assert tuple(tensor.shape) == value.shape
        expected, result = measured(tensor), value.statistics
        assert result is not None
        for name in Statistics.__slots__:
            least = 1e-6 * (expected.l2 or 0)  # a sum may be nothing but rounding
            assert getattr(result, name) == pytest.approx(getattr(expected, name), 1e-6, least)


def test_recomputed_products_of_stored_tensors_equal_stored_results(tmp_path: Path) -> None:
    """Transposed tensors too, which are stored within others."""
    dump = dump_step(tmp_path, level="tensors")
    products = {"aten.mm.default": torch.mm, "aten.bmm.default": torch.bmm}
    calls = [call for call in dump.calls if call.op in products]
    assert len(calls) > 10
    for call in calls:
        left, right, result = (read(dump, value.tensor) for value in call.values)
        torch.testing.assert_close(products[call.op](left, right), result)


def test_ops_executed_by_autograd_have_layer_and_cann_type(tmp_path: Path) -> None:
    dump = dump_step(tmp_path)
    ops = Counter((call.op, call.layer, call.phase) for call in dump.calls if call.kind == "op")
    for op, layer, phase, times in (
        ("aten.convolution.default", "stem.0", "forward", 1),
        ("aten.convolution_backward.default", "stem.0", "backward", 1),
        ("aten.convolution_backward.default", "grouped", "backward", 1),
        ("aten.native_batch_norm_backward.default", "stem.1", "backward", 1),
        ("aten.threshold_backward.default", "stem.2", "backward", 1),
        ("aten.threshold_backward.default", "", "backward", 1),
        ("aten._softmax.default", "attention", "forward", 2),
        ("aten._softmax_backward_data.default", "attention", "backward", 2),
        ("aten.native_layer_norm_backward.default", "attention.norm", "backward", 2),
        ("aten.bernoulli_.float", "dropout", "forward", 1),
        ("aten.nll_loss_backward.default", "", "backward", 1),
    ):
        assert ops[op, layer, phase] == times, (op, layer)
    # Both uses of a weight add up in the layer that holds it.
    sums = [call.layer for call in values_of(dump, op="aten.add.Tensor", phase="backward")]
    assert {"attention.joint", "attention.norm"} <= set(sums)
    assert not [op for op, _, _ in ops if ".view." in op or ".t." in op or "empty" in op]
    cann = {call.op: call.cann for call in dump.calls}
    assert cann["aten.convolution.default"] == "Conv2D"
    assert cann["aten._softmax_backward_data.default"] == "SoftmaxGrad"
    assert cann["aten.relu_.default"] == "Relu"
    first, second = values_of(dump, op="aten._softmax.default")
    assert (first.number, second.number) == (0, 1)
    assert first.arguments == {"dim": "-1", "half_to_float": "False"}


def test_in_place_op_records_its_input_before_and_its_output_after(tmp_path: Path) -> None:
    (relu, last) = values_of(dump_step(tmp_path, level="tensors"), op="aten.relu_.default")
    for call in (relu, last):
        before, after = (value.statistics for value in call.values)
        assert before is not None
        assert after is not None
        assert before.min is not None
        assert before.min < 0 == after.min
        assert after.zeros


def test_running_statistics_are_outputs_of_batch_norm(tmp_path: Path) -> None:
    net = Network()
    (call,) = values_of(
        dump_step(tmp_path, net=net, level="tensors"), op="aten.native_batch_norm.default"
    )
    values = {(value.role, value.name): value for value in call.values}
    dump = read_dump(tmp_path)
    assert read(dump, values["input", "3"].tensor).count_nonzero() == 0
    norm: Any = net.stem[1]
    assert torch.equal(read(dump, values["output", "running_mean"].tensor), norm.running_mean)


def test_reused_memory_is_measured_again(tmp_path: Path) -> None:
    gc.freeze()  # what earlier tests left need not be gone through fifty times
    with jumar.precision.dump(tmp_path):
        for number in range(50):
            big = torch.full((5_000,), float(number))
            again = big + 0
            del big
            gc.collect()
            big = again * 1
            big.mul_(2)
            big[:10].data.add_(1000)
            del again
            assert torch.relu(big).max() == 2 * number + 1000
    gc.unfreeze()
    dump = read_dump(tmp_path)
    highest = [
        [value.statistics.max for value in call.values if value.statistics]
        for call in values_of(dump, op="aten.relu.default")
    ]
    assert highest == [[2.0 * number + 1000] * 2 for number in range(50)]
    assert [call.values[0].statistics for call in values_of(dump, op="aten.add.Tensor")] == [
        measured(torch.full((5_000,), float(number))) for number in range(50)
    ]


def test_uninitialised_memory_has_no_statistics(tmp_path: Path) -> None:
    (call,) = values_of(dump_step(tmp_path, level="tensors"), op="aten.bernoulli_.float")
    (before, after) = call.values
    assert (before.statistics, before.tensor) == (None, None)
    assert after.statistics is not None


def test_modules_have_inputs_outputs_and_the_gradients_of_both(tmp_path: Path) -> None:
    dump = dump_step(tmp_path, level="modules")
    assert {call.kind for call in dump.calls} == {"module", "parameter"}
    forward = values_of(dump, op="Attention", phase="forward")
    assert [(value.role, value.name) for value in forward[1].values] == [
        ("input", "0"),
        ("input", "scale"),
        ("output", "0"),
        ("output", "1"),
    ]
    assert [call.number for call in forward] == [0, 1]
    (head,) = values_of(dump, op="Linear", layer="head", phase="backward")
    assert [(value.role, value.shape) for value in head.values] == [
        ("input", (4, 5)),
        ("output", (4, 8)),
    ]
    order = [call.layer for call in values_of(dump, kind="module", phase="backward")]
    assert order.index("head") < order.index("attention.norm") < order.index("stem.0")


def test_parameter_has_gradient_state_and_change(tmp_path: Path) -> None:
    torch.manual_seed(0)
    net = Network()
    before = net.head.weight.detach().clone()
    dump = dump_step(tmp_path, net=net, level="tensors")
    (call,) = values_of(dump, op="head.weight")
    assert (call.kind, call.layer, call.phase) == ("parameter", "head", "update")
    values = {(value.role, value.name): read(dump, value.tensor) for value in call.values}
    assert list(values) == [
        ("parameter", "0"),
        ("gradient", "0"),
        ("state", "step"),
        ("state", "exp_avg"),
        ("state", "exp_avg_sq"),
        ("change", "0"),
    ]
    assert torch.equal(values["parameter", "0"], before)
    assert torch.equal(before + values["change", "0"], net.head.weight.detach())
    assert torch.allclose(values["gradient", "0"] * 0.1, values["state", "exp_avg"])
    names = {call.op for call in values_of(dump, kind="parameter")}
    assert names == {name for name, _ in net.named_parameters()}


def test_optimizer_ends_a_step_unless_the_script_marks_it(tmp_path: Path) -> None:
    net = nn.Linear(3, 3)
    optimizers = [torch.optim.SGD(net.parameters(), 0.1) for _ in range(2)]

    def iteration() -> None:
        for optimizer in optimizers:
            net(torch.ones(2, 3)).sum().backward()
            optimizer.step()

    with jumar.precision.dump(tmp_path / "optimizers", steps=[0, 1]):
        iteration()
        iteration()
    with jumar.precision.dump(tmp_path / "script", steps=[1, 2]) as dumping:
        for _ in range(3):
            iteration()
            dumping.step()
    with jumar.precision.dump(tmp_path / "one", steps=[0], optimizer=optimizers[1]):
        iteration()
    numbers = {
        (name, place.step): len(values_of(read_dump(place.folder), op="Linear", phase="forward"))
        for name in ("optimizers", "script", "one")
        for place in find_dumps(tmp_path / name)
    }
    assert numbers == {
        ("optimizers", 0): 1,
        ("optimizers", 1): 2,
        ("script", 1): 2,
        ("script", 2): 2,
        ("one", 0): 2,
    }
    with jumar.precision.dump(tmp_path / "early") as dumping:
        iteration()
        with pytest.raises(UserError, match="first of several optimizers"):
            dumping.step()


def test_layers_are_known_under_activation_checkpointing(tmp_path: Path) -> None:
    class Checkpointed(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second, self.head = Attention(8), Attention(8), nn.Linear(8, 1)

        def forward(self, rows: Tensor) -> Tensor:
            for layer in (self.first, self.second):
                rows, _ = checkpoint(layer, rows, use_reentrant=False)
            return self.head(rows)

    net = Checkpointed()
    with jumar.precision.dump(tmp_path):
        net(torch.randn(2, 3, 8)).sum().backward()
    dump = read_dump(tmp_path)
    ops = Counter((call.op, call.layer, call.phase) for call in dump.calls if call.kind == "op")
    for layer in ("first", "second"):
        assert ops["aten._softmax.default", layer, "forward"] == 1
        assert ops["aten._softmax.default", layer, "backward"] == 1
        assert ops["aten._softmax_backward_data.default", layer, "backward"] == 1
        assert ops["aten.native_layer_norm_backward.default", f"{layer}.norm", "backward"] == 1


def test_code_without_modules_or_optimizer_is_one_step(tmp_path: Path) -> None:
    with jumar.precision.dump(tmp_path, level="tensors", sample=5):
        weight = torch.arange(12.0, requires_grad=True)
        (weight.exp() * 2).sum().backward()
    dump = read_dump(tmp_path)
    assert dump.facts["sample"] == "5"
    (call,) = values_of(dump, op="aten.exp.default")
    assert call.values[0].shape == (12,)
    assert read(dump, call.values[0].tensor).tolist() == [0, 2, 4, 7, 9]
    assert dump.notices == ("No optimizer made an update in this step.",)


def test_wrapped_and_compiled_modules_have_the_names_of_plain_ones(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plain = dump_step(tmp_path / "plain")
    compiled: Any = torch.compile(Network(), backend="eager")
    dump = dump_step(tmp_path / "compiled", net=compiled)
    keys = [call.key for call in plain.calls]
    assert [call.key for call in dump.calls] == keys
    assert "torch.compile is off" in capsys.readouterr().err
    assert dump.notices


def test_only_glob_matches_are_recorded(tmp_path: Path) -> None:
    dump = dump_step(tmp_path / "1", ops=["*softmax*", "Conv2D"], layers=["attention*", "stem.*"])
    ops = {(call.op, call.layer) for call in dump.calls if call.kind == "op"}
    assert ops == {
        ("aten._softmax.default", "attention"),
        ("aten._softmax_backward_data.default", "attention"),
        ("aten.convolution.default", "stem.0"),
    }
    with pytest.raises(UserError, match="'attn' matches nothing") as error:
        dump_step(tmp_path / "2", layers=["attn"])
    assert "attention" in error.value.todo
    with pytest.raises(UserError, match="'SoftmaxV1' matches nothing") as error:
        dump_step(tmp_path / "3", ops=["SoftmaxV1"])
    assert "'SoftmaxV2'" in error.value.todo
    assert not (tmp_path / "3").exists()


def test_cap_is_checked_before_a_byte_is_written(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"the tensors of step 0 need \d+ KiB") as error:
        dump_step(tmp_path, level="tensors", max_gib=1e-5)
    assert error.value.where == "--max-gib"
    assert list(tmp_path.iterdir()) == []
    dump_step(tmp_path, level="tensors", max_gib=1e-5, sample=1)


def test_full_disk_keeps_earlier_steps(tmp_path: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    net = Network()
    optimizer = torch.optim.SGD(net.parameters(), 0.1)
    context = pytest.raises(UserError, match="the dump cannot be written: File too large")
    try:
        with context, jumar.precision.dump(tmp_path, steps=[0, 1]):
            for step in range(2):
                images, labels = batch(step)
                F.cross_entropy(net(images), labels).backward()
                optimizer.step()
                resource.setrlimit(resource.RLIMIT_FSIZE, (5_000, hard))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert [place.step for place in find_dumps(tmp_path)] == [0]
    assert read_dump(tmp_path).calls
    net(batch(0)[0])  # and nothing is recorded any more


def test_step_never_reached_is_an_error_and_earlier_ones_are_kept(tmp_path: Path) -> None:
    net = nn.Linear(3, 3)
    optimizer = torch.optim.SGD(net.parameters(), 0.1)

    def train() -> None:
        with jumar.precision.dump(tmp_path, steps=[1, 7]):
            for _ in range(3):
                net(torch.ones(2, 3)).sum().backward()
                optimizer.step()

    with pytest.raises(UserError, match="ended before step 7, after 3 steps"):
        train()
    assert [place.step for place in find_dumps(tmp_path)] == [1]


def test_script_error_propagates_and_its_step_is_not_written(tmp_path: Path) -> None:
    def train() -> None:
        with jumar.precision.dump(tmp_path):
            torch.ones(3).exp()
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        train()
    assert find_dumps(tmp_path) == []
    assert torch.utils._python_dispatch._get_current_dispatch_mode() is None


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"level": "op"}, "unknown level 'op'"),
        ({"steps": []}, "no step"),
        ({"steps": [-1]}, "no step -1"),
        ({"max_gib": 0}, "0 GiB"),
        ({"sample": -2}, "-2 is not a number of elements"),
        ({"level": "modules", "ops": ["*"]}, "records no ops"),
    ],
)
def test_invalid_setting_is_an_error_before_the_folder_is_created(
    tmp_path: Path, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(UserError, match=message):
        jumar.precision.dump(tmp_path / "new", **options)
    assert list(tmp_path.iterdir()) == []


def test_folder_with_a_dump_or_a_non_folder_is_an_error(tmp_path: Path) -> None:
    dump_step(tmp_path)
    with pytest.raises(UserError, match="already contains 1 dump, for instance of step 0"):
        jumar.precision.dump(tmp_path, steps=[5])
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="file is not a folder"):
        jumar.precision.dump(tmp_path / "file" / "new").__enter__()


def test_nan_is_counted_and_excluded_from_other_statistics(tmp_path: Path) -> None:
    with jumar.precision.dump(tmp_path):
        torch.tensor([1.0, math.nan, math.inf, 70_000.0, 1e-5, 1e-8, 0.0]).abs()
    (call,) = values_of(read_dump(tmp_path), op="aten.abs.default")
    statistics = call.values[0].statistics
    assert statistics is not None
    assert (statistics.max, statistics.nan, statistics.inf, statistics.zeros) == (70_000.0, 1, 1, 1)
    assert (statistics.above_fp16, statistics.below_normal) == (1, 2)
    assert statistics.below_subnormal == 1
