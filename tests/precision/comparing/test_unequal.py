"""The first call that is not equal bit for bit is found by hashes alone."""

from pathlib import Path

import pytest
import torch
from torch import nn

import jumar.precision
from jumar.precision.comparing.compare import compare_dumps
from jumar.precision.comparing.pairing import pair_calls
from jumar.precision.comparing.unequal import Unequal, first_unequal
from jumar.precision.dumps.digest import digest_of
from jumar.precision.dumps.dump import Call, Dump, Kind, Phase, Value
from jumar.precision.dumps.ours import read_dump


def call(op: str, taken: str, given: str, **fields: str) -> Call:
    kind: Kind = "module" if fields.get("kind") == "module" else "op"
    phase: Phase = "forward"
    dtype = fields.get("dtype", "float32")
    values = (
        Value(role="input", name="0", dtype=dtype, shape=(2,), digest=taken or None),
        Value(role="output", name="0", dtype=dtype, shape=(2,), digest=given or None),
    )
    return Call(kind=kind, op=op, layer="net", number=0, phase=phase, values=values)


def of(*calls: Call) -> Dump:
    return Dump(where=Path("d"), tool="jumar", calls=calls)


def unequal(before: Dump, after: Dump) -> Unequal | None:
    return first_unequal(before, after, pair_calls(before, after))


A, B, C = "sha256:a", "sha256:b", "sha256:c"


def test_op_that_causes_the_difference_has_equal_inputs() -> None:
    result = unequal(of(call("x", A, A), call("y", A, A)), of(call("x", A, A), call("y", A, B)))
    assert result is not None
    assert (result.pair.before.op, result.inputs_equal) == ("y", True)
    assert [value.role for value, _ in result.values] == ["output"]


def test_op_with_a_different_input_is_distinguished() -> None:
    result = unequal(of(call("x", A, A)), of(call("x", C, B)))
    assert result is not None
    assert not result.inputs_equal


def test_another_dtype_is_unequal_and_a_cast_before_it_is_named() -> None:
    low = call("y", A, A, dtype="bfloat16")
    result = unequal(of(call("y", A, A)), of(call("cast", A, A), low))
    assert result is not None
    assert result.unpaired is not None
    assert result.unpaired.op == "cast"


def test_op_is_preferred_over_its_module() -> None:
    module = call("Linear", A, A, kind="module"), call("Linear", A, B, kind="module")
    result = unequal(of(module[0], call("y", A, A)), of(module[1], call("y", A, B)))
    assert result is not None
    assert result.pair.before.op == "y"
    alone = unequal(of(module[0]), of(module[1]))
    assert alone is not None
    assert alone.pair.before.op == "Linear"


@pytest.mark.parametrize("other", ["", "crc32:b"])
def test_values_without_comparable_hashes_are_not_unequal(other: str) -> None:
    assert unequal(of(call("x", A, A)), of(call("x", A, other))) is None


def test_hash_covers_the_elements_in_order() -> None:
    tensor = torch.arange(6.0).reshape(2, 3)
    flipped = tensor.t()
    assert digest_of(flipped) == digest_of(flipped.contiguous()) != digest_of(tensor)
    assert digest_of(torch.tensor(0.0)) != digest_of(torch.tensor(-0.0))
    assert digest_of(torch.zeros(0)) == digest_of(torch.zeros(0))
    assert digest_of(tensor.bfloat16()) == digest_of(tensor.bfloat16().clone())


def dumped(folder: Path, *, scale: float) -> Dump:
    """A step of a small network one hidden number of which is scaled."""
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 2))
    batch = torch.randn(8, 4)
    optimizer = torch.optim.SGD(net.parameters(), 0.1)
    with jumar.precision.dump(folder, model=net, digests=True):
        hidden = net[1](net[0](batch))
        # A write that torch cannot see, like a kernel that reads what is not its own.
        hidden.detach().numpy()[3, 2] *= scale
        net[2](hidden).square().mean().backward()
        optimizer.step()
    return read_dump(folder)


def test_recorded_hashes_find_the_op_and_survive_the_file(tmp_path: Path) -> None:
    one, again = dumped(tmp_path / "a", scale=1), dumped(tmp_path / "b", scale=1)
    assert all(
        value.digest
        for each in one.calls
        for value in each.values
        if value.statistics is not None and value.statistics.count
    )
    same = compare_dumps(one, again)
    assert same.hashed > 50
    assert same.first_unequal is None
    other = compare_dumps(one, dumped(tmp_path / "c", scale=1 + 2**-23))
    assert other.first_unequal is not None
    first = other.first_unequal.pair.before
    assert (first.op, first.layer, first.phase) == ("aten.addmm.default", "2", "forward")
    assert other.first_unequal.inputs_equal


def test_transposed_view_and_its_base_have_different_hashes(tmp_path: Path) -> None:
    dump = dumped(tmp_path / "a", scale=1)
    torch.manual_seed(0)
    weight = nn.Linear(4, 4).weight
    product = next(each for each in dump.calls if each.op == "aten.addmm.default")
    assert product.values[2].digest == digest_of(weight.t())
    parameter = next(each for each in dump.calls if each.op == "0.weight")
    assert parameter.values[0].digest == digest_of(weight)
