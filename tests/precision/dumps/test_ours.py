"""Our form on disk: what comes back, and what is said of a damaged one."""

import math
import os
import resource
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from jumar.ground.errors import UserError
from jumar.precision.dumps.dump import Call, Dump, Statistics, Value
from jumar.precision.dumps.ours import find_dumps, read_dump, write_dump

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


def test_a_dump_comes_back_as_it_was_with_its_tensors(tmp_path: Path) -> None:
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
    with pytest.raises(UserError, match="it holds 3 dumps"):
        read_dump(tmp_path)
    with pytest.raises(UserError, match="it holds 2 dumps"):
        read_dump(tmp_path / "step-00000003")


def test_a_dump_is_never_overwritten(tmp_path: Path) -> None:
    write_dump(tmp_path, a_dump())
    with pytest.raises(UserError, match="there is a dump of step 3 already"):
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
        (cut_json, "is cut or damaged"),
        (without_a_call, "holds 1 call of 2"),
        (cut_tensors, "bytes instead of"),
        (lambda place: (place / "tensors-00001-of-00001.safetensors").unlink(), "no such file"),
        (lambda place: (place / "dump.json").write_text("[]"), "not a dump that jumar wrote"),
        (lambda place: (place / "dump.json").unlink(), "there is no dump.json"),
    ],
)
def test_a_damaged_dump_is_an_error_that_names_the_file(
    tmp_path: Path, damage: Callable[[Path], None], message: str
) -> None:
    place = write_dump(tmp_path, a_dump(), TENSORS)
    damage(place)
    with pytest.raises(UserError, match=message) as error:
        read_tensor(place)
    assert "step-00000003" in error.value.where


@pytest.mark.parametrize("limit", [100, 2_000])
def test_a_full_disk_leaves_the_steps_before_and_nothing_of_this_one(
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
