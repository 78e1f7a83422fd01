"""Which calls are kept, how they are numbered, and what of them is text."""

import pytest
import torch

from jumar.ground.errors import UserError
from jumar.precision.dumps.dump import Call, Statistics, Value
from jumar.precision.recording.calls import Calls
from jumar.precision.recording.cann import cann_type
from jumar.precision.recording.contents import RecordedValue


def test_calls_are_numbered_by_kind_op_layer_and_phase_until_the_step_ends() -> None:
    calls = Calls()
    keys = [
        ("op", "x", "a", "forward"),
        ("op", "x", "a", "forward"),
        ("module", "x", "a", "forward"),
        ("op", "y", "a", "forward"),
        ("op", "x", "b", "forward"),
        ("op", "x", "a", "backward"),
        ("op", "x", "a", "forward"),
    ]
    entries = [calls.entry(*key) for key in keys]  # type: ignore[arg-type]
    assert [entry.number for entry in entries if entry] == [0, 1, 0, 0, 0, 0, 2]
    assert calls.entries == entries
    calls.clear()
    assert calls.entries == []
    again = calls.entry("op", "x", "a", "forward", names=("Add", "add"))
    assert again is not None
    assert (again.number, again.cann, again.op) == (0, "Add", "x")


def test_entry_becomes_a_call_with_its_arguments_as_text() -> None:
    calls = Calls()
    entry = calls.entry("op", "x", "a", "forward")
    assert entry is not None
    rows = [Statistics(count=1), Statistics(count=2)]
    entry.values += [
        RecordedValue("input", "0", "float32", (2,), 1, "000001", "sha256:1"),
        RecordedValue("output", "1", "int64", (), None, None, None),
    ]
    entry.arguments = {
        "list": [1, (2.5, "a")],
        "dtype": torch.float16,
        "none": None,
        "object": torch.Generator(),
        "flag": True,
        "layout": torch.strided,
        "device": torch.device("cpu"),
    }
    assert entry.call(rows) == Call(
        kind="op",
        op="x",
        layer="a",
        number=0,
        phase="forward",
        values=(
            Value(
                role="input",
                name="0",
                dtype="float32",
                shape=(2,),
                statistics=rows[1],
                tensor="000001",
                digest="sha256:1",
            ),
            Value(role="output", name="1", dtype="int64", shape=()),
        ),
        arguments={
            **{"list": "[1, [2.5, a]]", "dtype": "torch.float16", "none": "None"},
            **{"object": "Generator", "flag": "True", "layout": "torch.strided", "device": "cpu"},
        },
    )


def test_globs_select_by_layer_and_by_any_op_name() -> None:
    calls = Calls(ops=["Mat*", "aten.add*"], layers=["a.*", "head"])
    names = ("MatMul", "mm", "mm")
    assert calls.entry("op", "aten.mm.default", "a.b", "forward", names=names) is not None
    assert calls.entry("op", "aten.add.Tensor", "head", "forward") is not None
    assert calls.entry("op", "aten.mul.Tensor", "head", "forward") is None
    assert calls.entry("module", "Linear", "head", "forward") is not None
    assert calls.entry("op", "aten.add.Tensor", "a", "forward") is None
    calls.check_globs()
    case = Calls(ops=["mat*"])
    assert case.entry("op", "aten.mm.default", "", "forward", names=names) is None


def failed(calls: Calls) -> UserError:
    with pytest.raises(UserError) as error:
        calls.check_globs()
    return error.value


def test_glob_without_a_match_is_an_error_listing_the_candidates() -> None:
    calls = Calls(ops=["aten.add"], layers=["attn*", "head"])
    calls.entry("op", "aten.add", "", "forward")
    calls.entry("op", "aten.add", "head", "forward")
    error = failed(calls)
    assert (error.what, error.where) == ("'attn*' matches nothing in the step", "--layers")
    assert error.todo == "The step contains head."
    many = Calls(ops=["softmax"])
    for number in range(20):
        many.entry("op", f"aten.op{number:02d}", "", "forward")
    listed = ", ".join(f"aten.op{number:02d}" for number in range(20))
    assert failed(many).todo == f"The step contains {listed}."
    many.entry("op", "softmaxes", "", "forward")
    error = failed(many)
    assert error.where == "--ops"
    assert error.todo == f"Did you mean 'softmaxes'? The step contains {listed} and 1 more."


@pytest.mark.parametrize(
    ("op", "name"),
    [
        ("addmm", "MatMul"),
        ("softmax.int", "SoftmaxV2"),
        ("_softmax", "SoftmaxV2"),
        ("relu_", "Relu"),
        ("add_.Tensor", "Add"),
        ("add.Scalar", "Adds"),
        ("sum.dim_IntList", "ReduceSum"),
        ("_softmax_backward_data", "SoftmaxGrad"),
        ("threshold_backward", "ReluGrad"),
        ("convolution_backward", "Conv2DBackpropInput"),
        ("embedding_dense_backward", "EmbeddingDenseGrad"),
        ("nonsense", ""),
        ("nonsense_backward", ""),
    ],
)
def test_aten_op_maps_to_the_equivalent_type(op: str, name: str) -> None:
    assert cann_type(op) == name
