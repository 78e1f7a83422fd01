import json
import math
from pathlib import Path

import pytest

from jumar.ground.errors import UserError
from jumar.ground.text import Text
from jumar.porting.check.losses import compare
from jumar.porting.check.output import write_report
from jumar.porting.check.record import StepLosses
from jumar.porting.check.result import CheckResult, Stage
from jumar.porting.check.show import as_json, as_lines, as_markdown


def steps(*values: float) -> list[StepLosses]:
    return [
        StepLosses(step=number, losses=(("loss|mean:0", value),))
        for number, value in enumerate(values, 1)
    ]


PARSES = Text(en="parses", zh="语法正确")
FILES = Text(en="3 files", zh="3 个文件")
STEP = Text(en="runs one step", zh="完成一步训练")
RESUMED = Text(en="the port resumed from the checkpoint c", zh="移植结果从检查点 c 继续训练")
RESULT = CheckResult(
    stages=(
        Stage(key="parses", name=PARSES, status="passed", seconds=0.1, reason=FILES),
        Stage(
            key="imports",
            name=Text(en="imports", zh="导入成功"),
            status="failed",
            seconds=2.0,
            reason=Text(en="a | b", zh="甲 | 乙"),
            details=("line one", "``` two"),
        ),
        Stage(key="step", name=STEP, status="not reached", seconds=0.0),
    ),
    comparison=compare(
        steps(*range(1, 20)), steps(*range(1, 10), math.nan, *range(11, 20)), tolerance=1e-5
    ),
    standin=(
        {"kind": "session", "npu": True, "options": [{"precision_mode": "force_fp16"}]},
        {"kind": "session", "npu": True, "options": [{"precision_mode": "force_fp16"}]},
        {"kind": "session", "npu": False},
        {"kind": "ignored option", "key": "a", "value": 1, "text": "a does nothing"},
        {"kind": "dropout", "tensor": "x:0"},
        {"kind": "hccl", "call": "allreduce"},
    ),
    notes=(RESUMED,),
    command=("train.py", "--x", "1"),
    interpreter="python3.7 (TensorFlow 1.15.0)",
    seconds=3.0,
)


def test_text_report_shows_stages_reasons_output_losses_and_npu_options():
    text = "\n".join(as_lines(RESULT))
    for part in (
        "pass  parses",
        "FAIL  imports",
        "| line one",
        "session: NpuOptimizer with precision_mode=force_fp16 (2 times)",
        "session: without NpuOptimizer, stays on the host",
        "ignored option: a does nothing",
        "npu_bridge: hccl allreduce",
        "note: the port resumed from the checkpoint c",
        "command: train.py --x 1",
        "not all stages passed in 3.0 s",
    ):
        assert part in text


def test_text_report_shows_the_first_and_last_steps_and_the_divergence():
    shown = [line.split()[0] for line in as_lines(RESULT) if line.startswith("  ")]
    assert [word for word in shown if word.isdigit() or word == "..."] == [
        *("1", "2", "3", "...", "10", "...", "19")
    ]


def test_json_is_valid_even_with_nan_losses():
    value = json.loads(as_json(RESULT), parse_constant=pytest.fail)
    assert value["passed"] is False
    assert value["losses"]["first_different_step"] == 10
    assert value["losses"]["steps"][9]["port"] is None
    assert len(value["npu_bridge"]) == 6


def test_markdown_tables_stay_intact_for_any_reason_text():
    text = as_markdown(RESULT)
    rows = [line for line in text.splitlines() if line.startswith("| imports")]
    assert rows == ["| imports | failed | 2.0 | a \\| b |"]
    assert "```\nline one\n''' two\n```" in text


@pytest.mark.parametrize("name", ["report.md", "report.json"])
def test_report_is_written_completely_in_the_format_of_its_suffix(tmp_path: Path, name: str):
    write_report(RESULT, tmp_path / name)
    expected = as_json(RESULT) if name.endswith("json") else as_markdown(RESULT)
    assert (tmp_path / name).read_text() == expected
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_unwritable_report_is_a_user_error(tmp_path: Path):
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="cannot be written"):
        write_report(RESULT, tmp_path / "file" / "report.md")
