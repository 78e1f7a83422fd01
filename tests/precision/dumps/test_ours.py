"""Our format on disk: reading back, and errors of damaged files."""

import json
import math
import os
import resource
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from jumar.ground.errors import UserError
from jumar.precision.dumps.dump import Call, Dump, Statistics, Value
from jumar.precision.dumps.ours import DumpFolder, find_dumps, read_dump, write_dump
from jumar.precision.dumps.shards import View

TENSORS = {
    "0/input/0": torch.arange(600, dtype=torch.float32).reshape(20, 30).T,
    "0/output/0": torch.full((7,), 1.5, dtype=torch.bfloat16),
}


def a_dump(step: int = 3, rank: int = 0) -> Dump:
    values = (
        Value(
            role="input",
            name="0",
            dtype="float32",
            shape=(30, 20),
            statistics=Statistics(count=600, min=0.0, max=599.0, mean=299.5, l2=math.inf, zeros=1),
            tensor="0/input/0",
        ),
        Value(
            role="output",
            name="1.0",
            dtype="bfloat16",
            shape=(7,),
            statistics=Statistics(count=7, nan=1, below_subnormal=2),
            digest="crc32:0a1b2c3d",
            tensor="0/output/0",
        ),
        Value(role="output", name="2", dtype="int64", shape=()),
    )
    call = Call(
        kind="op",
        op="aten.addmm.default",
        layer="encoder.层.0",
        number=2,
        phase="backward",
        values=values,
        arguments={"beta": "1"},
        cann="MatMulV2",
    )
    return Dump(
        where=Path(),
        tool="jumar 0.1.0",
        framework="pytorch",
        step=step,
        rank=rank,
        facts={"device": "cpu"},
        calls=(call, Call(kind="parameter", op="w", layer="", number=0, phase="update", values=())),
        notices=("a sentence",),
    )


def test_dump_round_trips_with_its_tensors(tmp_path: Path) -> None:
    place = write_dump(tmp_path, a_dump(), TENSORS, shard_bytes=100)
    assert sorted(path.name for path in place.iterdir()) == [
        "dump.json",
        "tensors-00001-of-00002.safetensors",
        "tensors-00002-of-00002.safetensors",
    ]
    dump = read_dump(place)
    assert dump.calls == a_dump().calls
    assert (dump.step, dump.rank, dump.facts, dump.notices) == (
        3,
        0,
        {"device": "cpu"},
        ("a sentence",),
    )
    assert dump.tensors is not None
    for name, tensor in TENSORS.items():
        assert torch.equal(dump.tensors.read(name), tensor)


def test_steps_and_ranks_are_listed_and_a_single_one_need_not_be_named(tmp_path: Path) -> None:
    write_dump(tmp_path, a_dump(10))
    assert read_dump(tmp_path).step == 10
    for rank in (1, 0):
        write_dump(tmp_path, a_dump(3, rank))
    assert [(each.step, each.rank) for each in find_dumps(tmp_path)] == [(3, 0), (3, 1), (10, 0)]
    assert read_dump(tmp_path / "step-00000010").step == 10
    with pytest.raises(UserError, match="contains 3 dumps"):
        read_dump(tmp_path)
    with pytest.raises(UserError, match="contains 2 dumps"):
        read_dump(tmp_path / "step-00000003")


def test_dump_is_never_overwritten(tmp_path: Path) -> None:
    write_dump(tmp_path, a_dump())
    with pytest.raises(UserError, match="a dump of step 3 already exists"):
        write_dump(tmp_path, a_dump())


def read_tensor(place: Path) -> torch.Tensor:
    tensors = read_dump(place).tensors
    assert tensors is not None
    return tensors.read("0/input/0")


def cut_json(place: Path) -> None:
    path = place / "dump.json"
    path.write_bytes(path.read_bytes()[:-40])


def without_a_call(place: Path) -> None:
    path = place / "dump.json"
    lines = path.read_text("utf-8").splitlines()
    path.write_text("\n".join([*lines[:-3], lines[-2], lines[-1]]), "utf-8")


def cut_tensors(place: Path) -> None:
    path = place / "tensors-00001-of-00001.safetensors"
    os.truncate(path, path.stat().st_size - 10)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (cut_json, "is truncated or damaged"),
        (without_a_call, "contains 1 call instead of 2"),
        (cut_tensors, "bytes instead of"),
        (lambda place: (place / "tensors-00001-of-00001.safetensors").unlink(), "no such file"),
        (lambda place: (place / "dump.json").write_text("[]"), "not a dump of jumar"),
        (lambda place: (place / "dump.json").unlink(), "contains no dump.json"),
    ],
)
def test_damaged_dump_is_an_error_that_names_the_file(
    tmp_path: Path, damage: Callable[[Path], None], message: str
) -> None:
    place = write_dump(tmp_path, a_dump(), TENSORS)
    damage(place)
    with pytest.raises(UserError, match=message) as error:
        read_tensor(place)
    assert "step-00000003" in error.value.where


@pytest.mark.parametrize("limit", [100, 2_000])
def test_full_disk_keeps_earlier_steps_and_nothing_of_the_current_one(
    tmp_path: Path, limit: int
) -> None:
    write_dump(tmp_path, a_dump(), TENSORS)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, before[1]))
    try:
        with pytest.raises(UserError, match="the dump cannot be written: File too large"):
            write_dump(tmp_path, a_dump(4), TENSORS)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert [each.name for each in tmp_path.iterdir()] == ["step-00000003"]
    assert read_dump(tmp_path).step == 3


def test_file_has_a_header_and_a_line_per_row_and_per_call(tmp_path: Path) -> None:
    dump = a_dump()
    shared = dump.calls[0].values[1].statistics
    again = replace(dump.calls[0].values[2], statistics=shared)
    second = replace(dump.calls[1], values=(again,))
    views = {"0/input/0": View("base", (3, 2), (1, 3))}
    place = write_dump(tmp_path, replace(dump, calls=(dump.calls[0], second)), views=views)
    assert place == tmp_path / "step-00000003" / "rank-0"
    text = (place / "dump.json").read_text("utf-8")
    values = (
        '[["input","0","float32",[30,20],0,"0/input/0"],'
        '["output","1.0","bfloat16",[7],1,"0/output/0","crc32:0a1b2c3d"],'
        '["output","2","int64",[]]]'
    )
    assert text.splitlines()[1:] == [
        '"rows":[',
        '[600,0.0,599.0,299.5,"inf",null,null,1],',
        "[7,null,null,null,null,1,null,null,null,null,2]],",
        '"calls":[',
        '{"kind":"op","op":"aten.addmm.default","layer":"encoder.\\u5c42.0","number":2,'
        f'"phase":"backward","cann":"MatMulV2","arguments":{{"beta":"1"}},"values":{values}}},',
        '{"kind":"parameter","op":"w","layer":"","number":0,"phase":"update",'
        '"values":[["output","2","int64",[],1]]}',
        "]}",
    ]
    content = json.loads(text)
    header = {name: each for name, each in content.items() if name not in ("rows", "calls")}
    assert header == {
        "format": 1,
        "tool": "jumar 0.1.0",
        "framework": "pytorch",
        "step": 3,
        "rank": 0,
        "facts": {"device": "cpu"},
        "notices": ["a sentence"],
        "shards": {},
        "views": {"0/input/0": ["base", [3, 2], [1, 3]]},
        "number_of_calls": 2,
        "value": ["role", "name", "dtype", "shape", "row", "tensor", "digest"],
        "row": [
            *("count", "min", "max", "mean", "l2", "nan", "inf", "zeros"),
            *("above_fp16", "below_normal", "below_subnormal"),
        ],
    }
    assert read_dump(place).tensors is None


def test_dump_without_step_and_rank_is_stored_as_number_0(tmp_path: Path) -> None:
    dump = replace(a_dump(), step=None, rank=None, calls=())
    place = write_dump(tmp_path, dump)
    assert place == tmp_path / "step-00000000" / "rank-0"
    assert (read_dump(place).step, read_dump(place).rank, read_dump(place).calls) == (
        None,
        None,
        (),
    )
    with pytest.raises(UserError, match="a dump of step 0 already exists"):
        write_dump(tmp_path, dump)


def test_only_folders_of_steps_and_ranks_with_a_file_are_dumps(tmp_path: Path) -> None:
    for name in ("step-1", "step-00000001x", "other"):
        (tmp_path / name / "rank-0").mkdir(parents=True)
        (tmp_path / name / "rank-0" / "dump.json").touch()
    for name in ("step-00000002/rank-x", "step-123456789/rank-12"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "dump.json").touch()
    (tmp_path / "step-00000003" / "rank-0").mkdir(parents=True)
    (tmp_path / "step-00000004").touch()
    folder = tmp_path / "step-123456789" / "rank-12"
    assert find_dumps(tmp_path) == [DumpFolder(step=123456789, rank=12, folder=folder)]
    with pytest.raises(UserError, match="no such folder"):
        find_dumps(tmp_path / "none")


def refused(place: Path, content: object) -> str:
    (place / "dump.json").write_text(json.dumps(content))
    with pytest.raises(UserError) as error:
        read_dump(place)
    assert error.value.where == str(place / "dump.json")
    return error.value.what


def test_errors_in_a_file_are_reported(tmp_path: Path) -> None:
    place = write_dump(tmp_path, a_dump())
    content = json.loads((place / "dump.json").read_text())
    call, parameter = content["calls"]
    assert (
        refused(place, content | {"format": 2})
        == "has the format 2, but this version of jumar reads 1"
    )
    assert (
        refused(place, content | {"format": 0})
        == "has the format 0, but this version of jumar reads 1"
    )
    no_number = {name: each for name, each in content.items() if name != "number_of_calls"}
    assert refused(place, no_number) == "is not a dump of jumar"
    assert refused(place, content | {"format": None}) == "is not a dump of jumar"
    assert refused(place, content | {"number_of_calls": 1}) == "contains 2 calls instead of 1"
    for field, name, known in (
        ("kind", "layer", "op, module, parameter"),
        ("phase", "sideways", "forward, backward, update"),
    ):
        assert refused(place, content | {"calls": [call | {field: name}, parameter]}) == (
            f"is damaged: ValueError '{name}' is not one of {known}"
        )
    value = ["given", "0", "float32", []]
    assert refused(place, content | {"calls": [call | {"values": [value]}, parameter]}) == (
        "is damaged: ValueError 'given' is not one of input, output, parameter, gradient, state,"
        " change"
    )
    row = ["input", "0", "float32", [], 2]
    assert refused(place, content | {"calls": [call | {"values": [row]}, parameter]}) == (
        "is damaged: IndexError list index out of range"
    )
    for field, wrong in (
        *(("op", 1), ("layer", None), ("number", "1"), ("cann", []), ("arguments", [])),
        *(("arguments", {"a": 1}), ("values", [["input", 0, "float32", []]])),
        *(("values", [["input", "0", 32, []]]), ("values", [["input", "0", "float32", ["a"]]])),
        ("values", [["input", "0", "float32", [], None, 5]]),
        ("values", [["input", "0", "float32", [], None, None, 5]]),
    ):
        what = refused(place, content | {"calls": [call | {field: wrong}, parameter]})
        assert what.startswith("is damaged: TypeError ")
    assert refused(place, content | {"rows": [[[1]], [1]]}) == (
        "is damaged: TypeError [1] in place of a number or text"
    )
    for step in ("../../up", -1, 1.5, True, 1 << 63, []):
        for field in ("step", "rank"):
            what = refused(place, content | {field: step})
            assert what.endswith("is not the number of a step or rank")
    assert "KeyError 'tool'" in refused(
        place, {name: each for name, each in content.items() if name != "tool"}
    )


def test_step_of_one_rank_is_found_from_its_own_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for step in (1, 2):
        write_dump(tmp_path, a_dump(step))
    monkeypatch.chdir(tmp_path / "step-00000002")
    assert read_dump(Path()).step == 2
    (tmp_path / "empty").mkdir()
    with pytest.raises(UserError) as error:
        read_dump(tmp_path / "empty")
    assert str(error.value) == (
        f"{tmp_path / 'empty'}: contains no dump.json, nor does a step-*/rank-* folder in it\n"
        "  Write a dump: jumar precision dump RECIPE --to FOLDER"
    )
    with pytest.raises(UserError) as error:
        read_dump(tmp_path)
    first = tmp_path / "step-00000001" / "rank-0"
    assert error.value.todo == f"Choose one of them, such as {first}."
