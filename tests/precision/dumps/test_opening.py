"""Dumps of other tools: every sample is read whole, and what is damaged is said."""

import json
import os
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch

from jumar.ground.errors import UserError
from jumar.precision.dumps.dump import Dump
from jumar.precision.dumps.opening import open_dump, open_dumps


@pytest.fixture
def samples(shared: Path) -> Path:
    return shared / "data" / "dumps"


def tensors_in(content: Any) -> int:
    """The number of tensors described anywhere in a JSON file."""
    if isinstance(content, dict):
        if "dtype" in content and "shape" in content:
            return 1
        return sum(map(tensors_in, content.values()))
    return sum(map(tensors_in, content)) if isinstance(content, list) else 0


def values_of(dump: Dump) -> int:
    return sum(len(call.values) for call in dump.calls)


def msprobe_files(samples: Path) -> list[Path]:
    return [
        path
        for path in sorted(samples.rglob("*.json"))
        if "cann" not in path.parts and '"task"' in path.read_text()[:200]
    ]


def test_every_msprobe_sample_is_read_with_all_its_tensors(samples: Path) -> None:
    files = msprobe_files(samples)
    assert len(files) == 28
    for path in files:
        data = json.loads(path.read_text()).get("data") or {}
        gradients = [name for name in data if ".parameters_grad" in name]
        calls = len(data) - len(gradients) + sum(len(data[name]) for name in gradients)
        dump = open_dump(path)
        assert len(dump.calls) == calls, path
        assert values_of(dump) == tensors_in(data), path
        assert len({call.key for call in dump.calls}) == calls, path


def test_mixed_folder_is_read_and_skipped_files_reported(samples: Path) -> None:
    dumps = open_dumps(samples)
    by_tool = {tool: [d for d in dumps if d.tool == tool] for tool in {d.tool for d in dumps}}
    assert {tool: len(each) for tool, each in by_tool.items()} == {
        "msprobe": 25,  # those with a header alone are left out
        "ptdbg": 1,
        "CANN": 2,
        "CANN, decoded": 2,
        "TensorFlow": 1,
    }
    assert any("outside any dump" in notice for notice in dumps[0].notices)
    lines = (samples / "repo/ptdbg/npu_test.pkl").read_text().splitlines()
    assert values_of(by_tool["ptdbg"][0]) == len(lines)
    assert sum(map(values_of, by_tool["CANN, decoded"])) == len([*samples.rglob("temp/*/*.npy")])


def test_every_sample_tensor_matches_its_recorded_statistics(samples: Path) -> None:
    read = 0
    for dump in open_dumps(samples):
        for call in dump.calls if dump.tensors is not None else ():
            for value in call.values:
                assert value.tensor is not None
                tensor = dump.tensors.read(value.tensor)
                assert tuple(tensor.shape) == value.shape
                assert str(tensor.dtype) == f"torch.{value.dtype}"
                if value.statistics is not None and value.statistics.l2 is not None:
                    norm = tensor.double().norm().item()
                    assert value.statistics.l2 == pytest.approx(norm, rel=1e-5, abs=1e-12)
                read += 1
    assert read == 3 * 172 + 2 * 2 + 25  # msprobe's three, MindSpore's two, CANN's


def test_raw_device_files_equal_their_decoded_form(samples: Path) -> None:
    folder = samples / "cann/axis/precision_data"
    raw, decoded = open_dump(folder / "npu"), open_dump(folder / "temp/decode")
    assert [call.key for call in raw.calls] == [call.key for call in decoded.calls]
    assert raw.tensors is not None
    assert decoded.tensors is not None
    for one, two in zip(raw.calls, decoded.calls, strict=True):
        for first, second in zip(one.values, two.values, strict=True):
            assert first.tensor is not None
            assert second.tensor is not None
            assert torch.equal(raw.tensors.read(first.tensor), decoded.tensors.read(second.tensor))


def test_layers_numbers_steps_and_ranks_match_the_run(samples: Path) -> None:
    dump = open_dump(samples / "own/tf_fp32/golden/statistics_mix")
    (softmax,) = [
        call
        for call in dump.calls
        if call.op == "Functional.softmax"
        and call.layer == "blocks.1.attn"
        and call.phase == "forward"
    ]
    # The second softmax of the step, and the first of its layer.
    assert (softmax.number, dict(softmax.arguments)) == (0, {"dim": "-1"})
    ranks = open_dumps(samples / "own/ddp_2ranks_2steps")
    assert [(each.step, each.rank) for each in ranks] == [(0, 0), (0, 1), (1, 0)]
    early = open_dump(samples / "own/versions/8.3.3_mix")
    first_gradient = [call.kind for call in early.calls].index("parameter")
    assert {call.kind for call in early.calls[first_gradient:]} == {"parameter"}


def test_non_finite_numbers_are_read(samples: Path) -> None:
    dump = open_dump(samples / "own/nan_L1")
    (log,) = [call for call in dump.calls if (call.op, call.phase) == ("Torch.log", "forward")]
    numbers = [value.statistics.max for value in log.values if value.statistics]
    assert numbers[0] == numbers[0]
    assert numbers[1] != numbers[1]


def test_bad_input_errors_are_specific(samples: Path, tmp_path: Path) -> None:
    whole = samples / "own/tf_fp32/golden/tensor_L1/step0/proc6980"
    cut = tmp_path / "cut"
    cut.mkdir()
    (cut / "dump.json").write_text((whole / "dump.json").read_text()[:5000])
    (tmp_path / "empty").mkdir()
    (tmp_path / "text").mkdir()
    (tmp_path / "text/notes.txt").write_text("no dump")
    for path, message in (
        (cut, "is truncated or not JSON"),
        (tmp_path / "empty", "contains no dump: it is empty"),
        (tmp_path / "text", "none of its 1 file is one\n  Expected: "),
        (tmp_path / "nowhere", "there is no such dump"),
        (samples / "own/tf_fp32/golden", "contains 2 dumps"),
    ):
        with pytest.raises(UserError, match=re.escape(message)):
            open_dump(path)


def test_missing_and_harmful_tensor_files_are_refused(samples: Path, tmp_path: Path) -> None:
    folder = tmp_path / "proc1"
    shutil.copytree(samples / "own/tf_fp32/golden/tensor_L1/step0/proc6980", folder)
    name = "Functional.softmax.0.forward.output.0.pt"
    path = folder / "dump_tensor_data" / name
    tensors = open_dump(folder).tensors
    assert tensors is not None
    path.chmod(0o644)
    torch.save({"x": os.system}, path)
    with pytest.raises(UserError, match="is damaged, or contains more than a tensor"):
        tensors.read(name)
    path.unlink()
    with pytest.raises(UserError, match="no such tensor file"):
        tensors.read(name)


def test_truncated_raw_file_is_an_error(samples: Path, tmp_path: Path) -> None:
    (source,) = (samples / "cann/axis/precision_data/npu").rglob("MatMulV2.*")
    content = source.read_bytes()
    for length in (4, 60, len(content) - 1):
        (tmp_path / source.name).write_bytes(content[:length])
        with pytest.raises(UserError, match="is truncated, or not a dump of CANN"):
            open_dump(tmp_path)


def msprobe_file(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    content = {"task": "statistics", "data": {"Torch.x.0.forward": {"output": []}}}
    path.write_text(json.dumps(content))


def test_dumps_are_ordered_and_selected_by_folder_step_and_rank(tmp_path: Path) -> None:
    for step, rank in ((10, 0), (2, 1), (2, 0)):
        msprobe_file(tmp_path / f"step{step}" / f"rank{rank}" / "dump.json")
    dumps = open_dumps(tmp_path)
    assert [(dump.step, dump.rank) for dump in dumps] == [(10, 0), (2, 0), (2, 1)]
    assert open_dump(tmp_path, step=10).where == tmp_path / "step10" / "rank0"
    assert open_dump(tmp_path, step=2, rank=1).where == tmp_path / "step2" / "rank1"
    names = "; ".join(
        f"{tmp_path / f'step{step}' / f'rank{rank}'} (step {step}, rank {rank})"
        for step, rank in ((10, 0), (2, 0), (2, 1))
    )
    with pytest.raises(UserError) as error:
        open_dump(tmp_path, step=2)
    assert str(error.value) == (
        f"{tmp_path}: contains 2 dumps: {names}\n"
        "  Choose one by its folder, or by --step and --rank."
    )
    with pytest.raises(UserError) as error:
        open_dump(tmp_path, rank=3)
    assert error.value.what == f"contains no such step or rank, only {names}"
    msprobe_file(tmp_path / "step2" / "x" / "dump.json")
    msprobe_file(tmp_path / "y" / "dump.json")
    with pytest.raises(UserError) as error:
        open_dump(tmp_path)
    assert error.value.what.startswith(f"contains 5 dumps: {tmp_path / 'y'}; {tmp_path / 'step10'}")
    assert error.value.what.count(";") == 3


def test_first_step_precedes_the_second_for_any_rank(tmp_path: Path) -> None:
    for step, rank in ((1, 0), (0, 1)):
        msprobe_file(tmp_path / f"step{step}" / f"rank{rank}" / "dump.json")
    assert [(dump.step, dump.rank) for dump in open_dumps(tmp_path)] == [(0, 1), (1, 0)]


def test_renamed_dump_files_are_found_and_all_others_counted(
    tmp_path: Path,
) -> None:
    msprobe_file(tmp_path / "renamed.json")
    msprobe_file(tmp_path / "dump_tensor_data" / "dump.json")
    for name in ("construct.json", "stack.json", "mapping.csv", "x.safetensors"):
        (tmp_path / name).write_text("{}")
    (tmp_path / "odd.json").write_text('{"task": 1}')
    (tmp_path / "bad.json").write_text("{")
    (tmp_path / "notes.txt").touch()
    (tmp_path / "Opdebug.Node_OpDebug.7.12.1767268800001005").touch()
    (dump,) = open_dumps(tmp_path)
    assert len(dump.calls) == 1
    assert dump.notices == [f"Ignored in {tmp_path}: 4 files outside any dump."]
    with pytest.raises(UserError) as error:
        open_dumps(tmp_path / "notes.txt")
    assert (error.value.what, error.value.where) == ("is not a dump", str(tmp_path / "notes.txt"))
    assert open_dump(tmp_path / "renamed.json").tool == "msprobe"


def test_ptdbg_list_belongs_to_its_dump_and_other_files_are_left_out(
    tmp_path: Path,
) -> None:
    line = ["Torch_abs_0_forward_output", 0, [], "torch.float32", [3], [1.0, 0.0, 0.5]]
    (tmp_path / "x.pkl").write_text(json.dumps(line))
    (dump,) = open_dumps(tmp_path)
    assert (dump.tool, dump.notices) == ("ptdbg", [])
    (tmp_path / "notes.txt").touch()
    (dump,) = open_dumps(tmp_path)
    assert dump.notices == [f"Ignored in {tmp_path}: 1 file outside any dump."]
