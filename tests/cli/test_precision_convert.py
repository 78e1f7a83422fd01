"""`jumar precision convert` writes what msprobe can open, and counts what it leaves out."""

import json
from pathlib import Path

import pytest
import torch

from jumar.precision.dumps.opening import open_dump
from tests.cli.in_process import SMALL_RECIPE, here


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A dump of two steps with tensors."""
    folder = tmp_path_factory.mktemp("own")
    steps = ("--steps", "0,1", "--level", "tensors", "--digests")
    here("precision", "dump", *SMALL_RECIPE, *steps, "--to", "dump", cwd=folder)
    return folder / "dump"


def test_our_dump_is_read_back_except_for_what_is_counted(own: Path, tmp_path: Path) -> None:
    done = here("precision", "convert", own, "--step", "1", "--to", "out", cwd=tmp_path)
    before = open_dump(own, step=1)
    after = open_dump(tmp_path / "out")
    first, second, *rest = done.out.splitlines()
    assert first == (
        f"read:    {own}/step-00000001/rank-0 ({before.tool}, {len(before.calls)} calls)"
    )
    values = sum(len(call.values) for call in after.calls)
    files = len([*(tmp_path / "out/step1/rank0/dump_tensor_data").iterdir()])
    assert second == (
        f"written: out/step1/rank0 ({len(after.calls)} calls with {values} values, {files} tensors)"
    )
    assert rest[0] == "left out:"
    numbers = [line.split(None, 1) for line in rest[1:]]
    updates = [call for call in before.calls if call.phase == "update" and call.kind == "op"]
    assert updates
    assert numbers[0][0] == str(len(updates)) == str(len(before.calls) - len(after.calls))
    kinds = [text.split(maxsplit=1)[0] for _, text in numbers]
    assert kinds == ["ops", "tensors", "updates", "values", "counts", "hashes", "facts"]
    forward = next(call for call in before.calls if call.phase == "forward" and call.kind == "op")
    (same,) = (call for call in after.calls if call.key == forward.key)
    assert before.tensors is not None
    assert after.tensors is not None
    for value, other in zip(forward.values, same.values, strict=True):
        assert value.tensor is not None
        assert other.tensor is not None
        one, two = before.tensors.read(value.tensor), after.tensors.read(other.tensor)
        assert torch.equal(one, two)
        assert one.dtype == two.dtype


def test_json_has_the_same_numbers(own: Path, tmp_path: Path) -> None:
    arguments = ("precision", "convert", own, "--step", "0", "--no-tensors", "--json")
    content = json.loads(here(*arguments, "--to", "out", cwd=tmp_path).out)
    after = open_dump(tmp_path / "out")
    assert after.tensors is None
    assert content["calls"] == len(after.calls)
    assert content["values"] == sum(len(call.values) for call in after.calls)
    assert content["calls_read"] == content["calls"] + content["left_out"]["update_calls"]
    assert content["left_out"]["tensors"] == content["values"]
    assert (content["step"], content["rank"], content["tensors"]) == (0, 0, 0)
    assert content["written"] == "out/step0/rank0"


def test_dump_of_cann_gets_statistics(shared: Path, tmp_path: Path) -> None:
    source = shared / "data/dumps/cann/axis/precision_data/npu"
    done = here("precision", "convert", source, "--to", "out", cwd=tmp_path)
    assert "3 calls with 8 values, 8 tensors" in done.out
    assert "note:    Ignored" in done.out
    assert "left out" not in done.out
    *_, output = open_dump(tmp_path / "out").calls[-1].values
    assert output.statistics is not None
    assert output.statistics.mean == pytest.approx(0.25)


def test_existing_dump_and_several_dumps_are_refused(own: Path, tmp_path: Path) -> None:
    convert = ("precision", "convert", own, "--to", "out")
    assert "contains 2 dumps" in here(*convert, cwd=tmp_path, code=2).message
    assert [*tmp_path.iterdir()] == []
    here(*convert, "--step", "0", cwd=tmp_path)
    here(*convert, "--step", "1", cwd=tmp_path)
    done = here(*convert, "--step", "1", cwd=tmp_path, code=2)
    assert "out/step1/rank0: a dump of step 1 already exists" in done.message
    (tmp_path / "file").write_text("")
    done = here(*convert[:-1], "file", "--step", "1", cwd=tmp_path, code=2)
    assert "the dump cannot be written" in done.message
