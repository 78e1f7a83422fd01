"""msprobe's files entry by entry: names, places, numbers and layers."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from jumar.ground.errors import UserError
from jumar.precision.dumps.dump import Call, Dump, Kind, Phase, Role, Statistics, Value
from jumar.precision.dumps.msprobe import read_msprobe


def tensor(dtype: str = "torch.float32", *shape: int, **fields: Any) -> dict[str, Any]:
    plain = {"type": "torch.Tensor", "dtype": dtype, "shape": [*shape]}
    return plain | {"Max": 4, "Min": -1.0, "Mean": 0.5, "Norm": 3.0} | fields


def scalar(value: Any) -> dict[str, Any]:
    return {"type": type(value).__name__, "value": value}


def written(folder: Path, data: Any, construct: Any = None, **header: Any) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "dump.json"
    path.write_text(json.dumps({"task": "statistics", "level": "mix", "data": data} | header))
    if construct is not None:
        (folder / "construct.json").write_text(json.dumps(construct))
    return path


def value(role: Role, name: str, *shape: int, **fields: Any) -> Value:
    count = 1
    for size in shape:
        count *= size
    numbers = Statistics(count=count, min=-1.0, max=4.0, mean=0.5, l2=3.0)
    plain: dict[str, Any] = {"dtype": "float32", "statistics": numbers}
    return Value(role=role, name=name, shape=shape, **plain | fields)


def call(
    op: str,
    layer: str,
    number: int,
    phase: Phase,
    *values: Value,
    kind: Kind = "op",
    arguments: dict[str, str] | None = None,
) -> Call:
    return Call(
        kind=kind,
        op=op,
        layer=layer,
        number=number,
        phase=phase,
        values=values,
        arguments=arguments or {},
    )


def test_every_kind_of_entry_becomes_its_call(tmp_path: Path) -> None:
    data = {
        "Module.net.0.Linear.forward.0": {
            "input_args": [tensor("torch.bfloat16", 2, 3, md5="0a1b", data_name="a.pt")],
            "input_kwargs": {"scale": scalar(2), "mask": tensor("Int64", 5)},
            "output": [tensor("torch.float32", 2)],
            "parameters": {"weight": tensor("torch.float32", 4, 5)},
        },
        "Aten.cat.default.3.forward": {
            "input_args": [
                [tensor("torch.float32", 2), scalar(None), tensor("torch.float32", 3)],
                scalar(-1),
                {"x": tensor("torch.float32", 7), "y": scalar("z")},
            ],
            "input_kwargs": {"size": [scalar(1), {"a": scalar(2)}]},
            "output": [tensor("torch.float32")],
        },
        "Module.net.0.Linear.backward.0": {
            "input": [None, tensor("torch.float32", 2)],
            "output": [tensor("torch.float32", 2, Max=None, Min=None, Mean=None, Norm=None)],
        },
        "Module.net.0.Linear.parameters_grad.1": {
            "weight": [tensor("torch.float32", 4, 5)],
            "bias": [None],
        },
        "odd name": {},
        "Aten.list.1.forward": [],
    }
    assert read_msprobe(written(tmp_path / "step12" / "rank3", data)) == Dump(
        where=tmp_path / "step12" / "rank3",
        tool="msprobe",
        framework="pytorch",
        step=12,
        rank=3,
        facts={"task": "statistics", "level": "mix"},
        calls=(
            call(
                "Linear",
                "net.0",
                0,
                "forward",
                value("input", "0", 2, 3, dtype="bfloat16", digest="crc32:0a1b", tensor="a.pt"),
                value("input", "mask", 5, dtype="int64"),
                value("output", "0", 2),
                value("parameter", "weight", 4, 5),
                kind="module",
                arguments={"scale": "2"},
            ),
            call(
                "aten.cat.default",
                "",
                0,
                "forward",
                value("input", "0.0", 2),
                value("input", "0.2", 3),
                value("input", "2.x", 7),
                value("output", "0"),
                arguments={
                    **{"0.1": "None", "1": "-1", "2.y": "'z'", "size": "[1, {'a': 2}]"},
                },
            ),
            call(
                "Linear",
                "net.0",
                0,
                "backward",
                value("input", "1", 2),
                value("output", "0", 2, statistics=Statistics(count=2)),
                kind="module",
                arguments={"0": "None"},
            ),
            call(
                "net.0.weight",
                "net.0",
                0,
                "backward",
                value("gradient", "0", 4, 5),
                kind="parameter",
            ),
        ),
        notices=[
            "2 entries ignored, such as odd name.",
            f"None of its 1 tensor file exists in {tmp_path / 'step12' / 'rank3'}.",
        ],
    )


def test_calls_are_numbered_per_layer_across_both_phases(tmp_path: Path) -> None:
    names = [
        "Functional.linear.2.forward",
        "Functional.linear.5.forward",
        "Functional.linear.9.forward",
        "Functional.linear.9.backward",
        "Functional.linear.2.backward",
        "Torch.mm.4.backward",
    ]
    construct = {
        names[0]: "Module.net.0.Linear.forward.0",
        names[1]: "Module.other.Linear.forward.0",
        names[2]: "Module.net.0.Linear.forward.1",
        names[3]: "Module.wrong.Linear.backward.0",
        names[4]: None,
        names[5]: "Module.Net.backward.0",
    }
    entry: dict[str, Any] = {"input_args": [], "output": []}
    dump = read_msprobe(written(tmp_path, dict.fromkeys(names, entry), construct))
    assert [(each.op, each.layer, each.number, each.phase) for each in dump.calls] == [
        ("Functional.linear", "net.0", 0, "forward"),
        ("Functional.linear", "other", 0, "forward"),
        ("Functional.linear", "net.0", 1, "forward"),
        ("Functional.linear", "net.0", 1, "backward"),
        ("Functional.linear", "net.0", 0, "backward"),
        ("Torch.mm", "", 0, "backward"),
    ]
    assert (dump.step, dump.rank, dump.tensors, dump.notices) == (None, None, None, [])


def test_gradients_reserved_during_the_forward_pass_come_last(tmp_path: Path) -> None:
    gradient = {"weight": [tensor()]}
    call_of: dict[str, Any] = {"input_args": [], "output": []}
    data = {
        "Module.a.Linear.parameters_grad": gradient,
        "Module.a.Linear.forward.0": call_of,
        "Cell.b.Dense.parameters_grad": gradient,
        "Module.a.Linear.backward.0": call_of,
        "Module.Net.parameters_grad": gradient,
        "Module.a.Linear.forward.1": call_of,
    }
    dump = read_msprobe(written(tmp_path, data))
    assert [(each.kind, each.op, each.layer) for each in dump.calls] == [
        ("module", "Linear", "a"),
        ("module", "Linear", "a"),
        ("parameter", "weight", ""),
        ("module", "Linear", "a"),
        ("parameter", "a.weight", "a"),
        ("parameter", "b.weight", "b"),
    ]


def test_tensors_are_searched_only_in_a_sibling_folder_or_next_to_the_file(
    tmp_path: Path,
) -> None:
    names = ["a.pt", "missing.pt", "../b.pt"]
    data = {
        "Torch.x.0.forward": {
            "input_args": [tensor("torch.float32", 2, data_name=name) for name in names],
            "output": [],
        }
    }
    path = written(tmp_path / "own", data)
    torch.save(torch.ones(2), tmp_path / "b.pt")
    alone = read_msprobe(path)
    assert alone.tensors is None
    assert alone.notices == [f"None of its 2 tensor files exists in {tmp_path / 'own'}."]
    torch.save(torch.ones(2), tmp_path / "own" / "a.pt")
    dump = read_msprobe(path)
    assert dump.tensors is not None
    assert dump.tensors.read("a.pt").tolist() == [1.0, 1.0]
    with pytest.raises(UserError, match="no such tensor file"):
        dump.tensors.read("missing.pt")
    with pytest.raises(UserError, match="the dump contains no tensor"):
        dump.tensors.read("../b.pt")
    (tmp_path / "own" / "dump_tensor_data").mkdir()
    assert read_msprobe(path).tensors is None


def test_framework_follows_from_the_header_or_the_tensors(tmp_path: Path) -> None:
    def framework(dtype: str, **header: Any) -> str:
        element = tensor(dtype, type=header.pop("element", "x"))
        data = {"Torch.x.0.forward": {"input_args": [element], "output": []}}
        return read_msprobe(written(tmp_path, data, **header)).framework

    assert framework("torch.float32", framework="mindspore") == "mindspore"
    assert framework("mindspore.float32") == "mindspore"
    (value,) = read_msprobe(tmp_path / "dump.json").calls[0].values
    assert value.dtype == "float32"
    assert framework("torch.float32") == "pytorch"
    assert framework("Float32") == ""
    assert framework("Float32", element="mindspore.Tensor") == "mindspore"
    assert framework("torch.float32", type="mindspore.cell") == "mindspore"


def test_step_and_rank_come_from_the_two_parent_folders(tmp_path: Path) -> None:
    def numbers(*parts: str) -> tuple[int | None, int | None]:
        dump = read_msprobe(written(tmp_path.joinpath(*parts), {}))
        return dump.step, dump.rank

    assert numbers("step3", "rank10") == (3, 10)
    assert numbers("step3", "rank1", "x") == (None, 1)
    assert numbers("step3", "proc12") == (3, None)
    assert numbers("step", "rank1x") == (None, None)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ([], "is not a dump of msprobe"),
        ({"other": 1}, "is not a dump of msprobe"),
        ({"task": 1, "calls": []}, "is not a dump of msprobe"),
        (
            {"data": {"Torch.x.0.forward": {"output": [tensor("x") | {"shape": ["y"]}]}}},
            "is damaged: ValueError invalid literal for int() with base 10: 'y'",
        ),
    ],
)
def test_non_dumps_and_damaged_dumps_are_reported(
    tmp_path: Path, content: object, message: str
) -> None:
    path = tmp_path / "dump.json"
    path.write_text(json.dumps(content))
    with pytest.raises(UserError) as error:
        read_msprobe(path)
    assert (error.value.what, error.value.where) == (message, str(path))
    expected = "Expected: an object with 'task' and 'data', as in msprobe's dump.json."
    again = "Copy the file again, or dump that step again."
    assert error.value.todo == (again if "damaged" in message else expected)


def test_layer_table_in_another_format_is_ignored(tmp_path: Path) -> None:
    data = {"Torch.x.0.forward": {"input_args": [], "output": []}}
    dump = read_msprobe(written(tmp_path, data, construct=[]))
    assert dump.notices == ["construct.json is not a JSON object and was ignored."]
    assert dump.calls[0].layer == ""
