"""What is written in msprobe's form is read back as it was."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from jumar.ground.errors import UserError
from jumar.precision.dumps.dump import Call, Dump, Phase, Statistics, Value
from jumar.precision.dumps.msprobe_writing import write_msprobe
from jumar.precision.dumps.opening import open_dump, open_dumps


def plain(dump: Dump) -> list[str]:
    """The calls without the names of tensor files, NaN equal to itself."""
    return [
        repr(
            replace(
                call,
                arguments=dict(call.arguments),
                values=tuple(replace(value, tensor=None) for value in call.values),
            )
        )
        for call in dump.calls
    ]


def test_every_sample_round_trips(shared: Path, tmp_path: Path) -> None:
    dumps = [d for d in open_dumps(shared / "data" / "dumps") if d.tool == "msprobe"]
    assert len(dumps) == 25
    for number, dump in enumerate(dumps):
        written = write_msprobe(tmp_path / str(number), dump).folder
        assert plain(open_dump(written)) == plain(dump), dump.where


def test_header_only_dump_is_reported(tmp_path: Path) -> None:
    for entries in ({}, None):
        content = {"task": "statistics", "level": "L1", "data": entries}
        (tmp_path / "dump.json").write_text(json.dumps(content))
        dump = open_dump(tmp_path)
        assert (list(dump.calls), "It contains only a header and no calls." in dump.notices) == (
            [],
            True,
        )


def test_our_ops_and_their_layers_round_trip(tmp_path: Path) -> None:
    def value(role: str, name: str) -> Value:
        numbers = Statistics(count=6, min=-1.0, max=2.0, mean=0.5, l2=3.0)
        return Value(
            role=role,  # type: ignore[arg-type]
            name=name,
            dtype="bfloat16",
            shape=(2, 3),
            statistics=numbers,
        )

    op = Call(
        kind="op",
        op="aten.cat.default",
        layer="net.0",
        number=0,
        phase="forward",
        values=(value("input", "0.0"), value("input", "0.1"), value("output", "0")),
        arguments={"1": "-1"},
    )
    layer = Call(
        kind="module",
        op="Linear",
        layer="net.0",
        number=0,
        phase="forward",
        values=(value("input", "0"), value("output", "0"), value("parameter", "weight")),
    )
    dump = Dump(where=tmp_path, tool="jumar", step=3, rank=1, calls=[op, layer])
    folder = write_msprobe(tmp_path / "out", dump).folder
    assert folder == tmp_path / "out" / "step3" / "rank1"
    assert plain(open_dump(folder)) == plain(dump)
    construct = json.loads((folder / "construct.json").read_text())
    assert construct["Aten.cat.default.0.forward"] == "Module.net.0.Linear.forward.0"


def value_of(role: Any, name: str, digest: str | None = None, bare: bool = False) -> Value:
    numbers = Statistics(count=6, min=-1.0, max=2.0, mean=0.5, l2=3.0)
    return Value(
        role=role,
        name=name,
        dtype="bfloat16",
        shape=(2, 3),
        statistics=None if bare else numbers,
        digest=digest,
    )


def element(**fields: Any) -> dict[str, Any]:
    return {
        **{"type": "torch.Tensor", "dtype": "torch.bfloat16", "shape": [2, 3]},
        **{"Max": 2.0, "Min": -1.0, "Mean": 0.5, "Norm": 3.0, "requires_grad": False},
        **fields,
    }


def written(folder: Path, *calls: Call, **fields: Any) -> dict[str, Any]:
    """The three files by name."""
    dump = Dump(where=folder, tool="jumar", calls=calls, **fields)
    place = write_msprobe(folder, dump).folder
    return {path.name: json.loads(path.read_text()) for path in place.iterdir()}


def a_call(op: str, layer: str, phase: Phase, *values: Value, **fields: Any) -> Call:
    plain: dict[str, Any] = {"kind": "op", "number": 0, "arguments": {}}
    return Call(op=op, layer=layer, phase=phase, values=values, **plain | fields)


def test_entry_of_a_call_has_every_value_and_argument(tmp_path: Path) -> None:
    op = a_call(
        *("aten.x.default", "net", "forward"),
        value_of("input", "1.1", "crc32:0a1b"),
        value_of("input", "3", "sha256:0a1b"),
        value_of("input", "mask", bare=True),
        value_of("output", "1"),
        arguments={"0": "[1, (None, 'a')]", "1.0": "2", "flag": "True", "odd": "<x>"},
    )
    layer = a_call(
        *("Linear", "net", "backward"),
        value_of("input", "0"),
        value_of("output", "0"),
        kind="module",
        number=2,
    )
    gradient = a_call(
        *("net.weight", "net", "update"),
        value_of("parameter", "0"),
        value_of("gradient", "0"),
        kind="parameter",
    )
    files = written(tmp_path, op, layer, gradient, framework="mindspore")
    nothing = dict.fromkeys(("Max", "Min", "Mean", "Norm"))

    def typed(value: Any) -> dict[str, Any]:
        return {"type": type(value).__name__, "value": value}

    assert files["dump.json"] == {
        **{"task": "statistics", "level": "mix", "framework": "mindspore", "dump_data_dir": None},
        "data": {
            "Aten.x.default.0.forward": {
                "input_args": [
                    [typed(1), [None, typed("a")]],
                    [typed(2), element(md5="0a1b")],
                    None,
                    element(),
                ],
                "input_kwargs": {
                    **{"mask": element(**nothing), "flag": typed(True), "odd": typed("<x>")}
                },
                "output": [None, element()],
            },
            "Module.net.Linear.backward.2": {"input": [element()], "output": [element()]},
            "Module.net.Linear.parameters_grad.0": {"weight": [element()]},
        },
    }
    names = [*files["dump.json"]["data"]]
    assert files["stack.json"] == {"0": [names, ["no stack was recorded"]]}


def test_level_reflects_whether_there_are_layers_and_ops(tmp_path: Path) -> None:
    op = a_call("aten.x.default", "net", "forward")
    layer = a_call("Linear", "net", "forward", value_of("parameter", "weight"), kind="module")
    for number, (calls, level) in enumerate((([op], "L1"), ([layer], "L0"), ([op, layer], "mix"))):
        files = written(tmp_path / str(number), *calls)
        assert (files["dump.json"]["level"], files["dump.json"]["framework"]) == (level, "pytorch")
        assert bool(files["construct.json"]) is (level != "L1")
    entry = files["dump.json"]["data"]["Module.net.Linear.forward.0"]
    assert entry == {
        "input_args": [],
        "input_kwargs": {},
        "output": [],
        "parameters": {"weight": element(requires_grad=True)},
    }
    assert (tmp_path / "0" / "step0" / "rank0" / "dump.json").is_file()
    bare = written(tmp_path / "bare", a_call("Linear", "net", "forward", kind="module"))
    assert bare["dump.json"]["data"]["Module.net.Linear.forward.0"]["parameters"] == {}


def test_backward_call_has_its_forward_calls_number(tmp_path: Path) -> None:
    calls = [
        a_call("aten.mm", "a", "forward"),
        a_call("aten.mm", "b", "forward"),
        a_call("aten.mm", "b", "backward"),
        a_call("aten.mm", "a", "backward"),
        a_call("aten.mm", "c", "backward"),
        a_call("aten.mm", "d", "backward"),
        a_call("Linear", "", "forward", kind="module"),
        a_call("w", "lonely", "update", value_of("gradient", "0"), kind="parameter", number=3),
        a_call("v", "lonely", "update", kind="parameter", number=3),
    ]
    files = written(tmp_path, *calls)
    assert list(files["dump.json"]["data"]) == [
        *("Aten.mm.0.forward", "Aten.mm.1.forward", "Aten.mm.1.backward", "Aten.mm.0.backward"),
        *("Aten.mm.2.backward", "Aten.mm.3.backward", "Module.Linear.forward.0"),
        "Module.lonely.Layer.parameters_grad.3",
    ]


def test_parent_of_an_op_is_its_layers_next_call_and_of_a_layer_one_above(
    tmp_path: Path,
) -> None:
    calls = [
        a_call("aten.x", "net.0", "forward"),
        a_call("Linear", "net.0", "forward", kind="module"),
        a_call("aten.x", "net.0", "forward", number=1),
        a_call("Linear", "net.0", "forward", kind="module", number=1),
        a_call("aten.x", "net.9.deep", "forward"),
        a_call("aten.x", "", "forward"),
        a_call("Tanh", "net.1.x", "forward", kind="module"),
        a_call("Net", "net", "forward", kind="module"),
        a_call("aten.x", "net.0", "backward"),
        a_call("w", "net.0", "update", value_of("gradient", "0"), kind="parameter"),
    ]
    construct = written(tmp_path, *calls)["construct.json"]
    assert construct == {
        "Aten.x.0.forward": "Module.net.0.Linear.forward.0",
        "Module.net.0.Linear.forward.0": "Module.net.Net.forward.0",
        "Aten.x.1.forward": "Module.net.0.Linear.forward.1",
        "Module.net.0.Linear.forward.1": "Module.net.Net.forward.0",
        "Aten.x.2.forward": "Module.net.9.deep.Layer.forward.0",
        "Aten.x.3.forward": None,
        "Module.net.1.x.Tanh.forward.0": "Module.net.Net.forward.0",
        "Module.net.Net.forward.0": None,
        "Aten.x.0.backward": "Module.net.0.Linear.backward.0",
    }
    assert list(construct) == [
        *("Aten.x.0.forward", "Module.net.0.Linear.forward.0", "Aten.x.1.forward"),
        *("Module.net.0.Linear.forward.1", "Aten.x.2.forward", "Aten.x.3.forward"),
        *("Module.net.1.x.Tanh.forward.0", "Module.net.Net.forward.0", "Aten.x.0.backward"),
    ]


def test_existing_dump_is_refused_and_other_steps_join_it(tmp_path: Path) -> None:
    dump = Dump(where=tmp_path, tool="jumar", step=3, calls=[a_call("aten.x", "", "forward")])
    folder = write_msprobe(tmp_path / "out", dump).folder
    before = (folder / "dump.json").read_bytes()
    with pytest.raises(UserError) as error:
        write_msprobe(tmp_path / "out", replace(dump, calls=()))
    assert (error.value.what, error.value.where) == (
        "a dump of step 3 already exists",
        str(folder),
    )
    assert (folder / "dump.json").read_bytes() == before
    assert write_msprobe(tmp_path / "out", replace(dump, step=4)).folder.is_dir()


def test_nodes_of_graphs_are_read_back_with_type_and_name(shared: Path, tmp_path: Path) -> None:
    place = shared / "data/dumps/cann/axis/precision_data"
    names: list[list[str]] = []
    for number, part in enumerate(("temp/decode", "npu", "tf")):
        dump = open_dump(place / part)
        again = open_dump(write_msprobe(tmp_path / str(number), dump).folder)
        names.append([call.op for call in again.calls])
        for call, back in zip(dump.calls, again.calls, strict=True):
            assert dump.tensors is not None
            assert again.tensors is not None
            for value, same in zip(call.values, back.values, strict=True):
                assert value.tensor is not None
                assert same.tensor is not None
                one, other = dump.tensors.read(value.tensor), again.tensors.read(same.tensor)
                assert torch.equal(one, other)
    ops = ["NPU.MatMulV2.dense_MatMul", "NPU.BiasAdd.dense_BiasAdd", "NPU.SoftmaxV2.Softmax"]
    assert names[:2] == [ops, ops]
    assert names[2] == [f"TensorFlow.{op.rpartition('.')[2]}" for op in ops]


def test_header_names_the_folder_of_tensors_only_if_there_is_one(tmp_path: Path) -> None:
    class Stored:
        def read(self, name: str) -> torch.Tensor:
            return torch.ones(2, 3, dtype=torch.bfloat16)

    op = a_call("aten.x", "", "forward", replace(value_of("input", "0"), tensor="a"))
    dump = Dump(where=tmp_path, tool="jumar", calls=[op], tensors=Stored())
    for name, options, framework in (
        ("a", {}, ""),
        ("b", {"with_tensors": False}, "pytorch"),
        ("c", {}, "mindspore"),
    ):
        done = write_msprobe(tmp_path / name, replace(dump, framework=framework), **options)
        content = json.loads((done.folder / "dump.json").read_text())
        tensors = done.folder / "dump_tensor_data"
        element = content["data"]["Aten.x.0.forward"]["input_args"][0]
        if name == "a":
            assert (content["task"], content["dump_data_dir"]) == ("tensor", str(tensors))
            assert (tensors / element["data_name"]).is_file()
        else:
            assert (content["task"], content["dump_data_dir"]) == ("statistics", None)
            assert not tensors.exists()
            assert "data_name" not in element
        assert content["framework"] == (framework or "pytorch")


def test_ops_of_the_update_are_left_out(tmp_path: Path) -> None:
    update = a_call("aten.add", "", "update")
    data = written(tmp_path, a_call("aten.add", "", "forward"), update)["dump.json"]["data"]
    assert list(data) == ["Aten.add.0.forward"]


def test_elements_that_are_not_finite_are_in_the_statistics(tmp_path: Path) -> None:
    nan = Statistics(count=6, min=-1.0, max=2.0, mean=0.5, l2=3.0, nan=1, inf=1)
    rows = (nan, replace(nan, nan=0), replace(nan, nan=0, inf=0))
    values = (
        replace(value_of("input", str(number)), statistics=row) for number, row in enumerate(rows)
    )
    data = written(tmp_path, a_call("aten.x", "", "forward", *values))["dump.json"]["data"]
    numbers = [
        [repr(entry[name]) for name in ("Max", "Min", "Mean", "Norm")]
        for entry in data["Aten.x.0.forward"]["input_args"]
    ]
    assert numbers == [["nan"] * 4, ["inf", "-inf", "nan", "inf"], ["2.0", "-1.0", "0.5", "3.0"]]


def test_named_outputs_are_kept(tmp_path: Path) -> None:
    outputs = value_of("output", "logits"), value_of("output", "0.1"), value_of("output", "0.0")
    layer = a_call("Net", "", "forward", *outputs, kind="module")
    dump = Dump(where=tmp_path, tool="jumar", calls=[layer])
    (back,) = open_dump(write_msprobe(tmp_path, dump).folder).calls
    assert {value.name for value in back.values} == {"logits", "0.0", "0.1"}


@pytest.mark.parametrize("name", ["999999999", "9" * 5000, "²", "007", "1.999999999"])
def test_position_at_which_no_list_fits_into_memory_is_a_name(tmp_path: Path, name: str) -> None:
    call = a_call("aten.x", "", "forward", value_of("input", "0"), value_of("input", name))
    (back,) = open_dump(
        write_msprobe(tmp_path, Dump(where=tmp_path, tool="jumar", calls=[call])).folder
    ).calls
    assert [value.name for value in back.values] == ["0", name]


@pytest.mark.parametrize(
    "text", ["b'x'", "{1, 2}", "2j", "...", "0x" + "f" * 5000, "-" * 20000 + "1", "[[", "{[]: 1}"]
)
def test_argument_that_json_cannot_hold_is_written_as_text(tmp_path: Path, text: str) -> None:
    call = a_call("aten.x", "", "forward", arguments={"0": text})
    (entry,) = written(tmp_path, call)["dump.json"]["data"].values()
    assert entry["input_args"] == [{"type": "str", "value": text}]
