"""A check's report in Chinese has no English sentence, for any result."""

import re
import signal
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import pytest

from jumar.ground.text import Text
from jumar.porting.check.checking import CheckRequest, run_check
from jumar.porting.check.following import (
    Limits,
    all_steps,
    follow,
    losses_not_reached,
    with_repetition,
)
from jumar.porting.check.interpreter import Interpreter, find_interpreter
from jumar.porting.check.losses import compare
from jumar.porting.check.reasons import reason_of
from jumar.porting.check.record import Record, ScriptError, StepLosses
from jumar.porting.check.result import CheckResult
from jumar.porting.check.show import as_json, as_lines, as_markdown
from jumar.porting.check.side import read_command
from jumar.porting.check.standin_wording import standin_lines
from jumar.porting.check.supervision import Ended
from jumar.porting.standin import standin_folder
from tests.checkout import CHECKOUT
from tests.porting.check import scripts
from tests.porting.check.chinese import english_in
from tests.tensorflow115 import tensorflow_python


def record(
    *losses: float,
    how: Literal["exited", "signal", "timeout", "flood"] = "exited",
    code: int = 0,
    finished: Literal["steps", "script", ""] = "",
    error: ScriptError | None = None,
    exit_code: str = "",
) -> Record:
    return Record(
        ended=Ended(how=how, code=code, seconds=1.0, num_bytes=2**20, tail=()),
        reached={},
        num_ops=0,
        losses=tuple(
            StepLosses(step=number, losses=(("loss:0", value),))
            for number, value in enumerate(losses, 1)
        ),
        error=error,
        exit_code=exit_code,
        finished=finished,
        restored=(),
        standin=(),
    )


def missing(module: str, kind: str = "ModuleNotFoundError", text: str = "No module") -> ScriptError:
    return ScriptError(type=kind, message=text, module=module, frames=(("train.py", 3),))


LIMITS = Limits(python="python3.7", timeout="10min", steps=3)
STOPPED = [
    record(how="timeout"),
    record(how="flood"),
    record(how="signal", code=signal.SIGSEGV),
    record(how="signal", code=200),
    record(code=4),
    record(exit_code="3"),
    record(finished="script"),
    record(error=missing("cPickle")),
    record(error=missing("cv2")),
    record(error=replace(missing("cv2"), in_child=True)),
    record(error=missing("models.net")),
    record(error=missing("", "ImportError", "attempted relative import")),
]


@pytest.mark.parametrize("index", range(len(STOPPED)))
def test_reason_a_script_stopped_is_translated(index: int):
    said = reason_of(STOPPED[index], python="python3.7", timeout="10min")
    assert english_in(said.en), "the test would not notice English"
    assert re.search(r"[一-鿿]", said.zh)
    assert not english_in(said.zh)


@pytest.mark.parametrize(
    ("original", "port"),
    [
        (record(1.0, finished="steps"), record(1.0, finished="steps")),
        (record(1.0, finished="steps"), record(2.0, finished="steps")),
        (record(1.0, finished="steps"), record(1.0, 2.0, finished="steps")),
        (record(float("nan"), finished="steps"), record(float("nan"), finished="steps")),
        (record(finished="steps"), record(finished="steps")),
        (record(1.0), record(1.0, finished="steps")),
        (record(1.0, finished="steps"), record(1.0, how="timeout")),
    ],
)
def test_loss_comparison_is_translated(original: Record, port: Record):
    comparison = compare(original.losses, port.losses, tolerance=1e-5)
    stage = follow(LIMITS, original, port, comparison)
    others = [
        with_repetition(stage, original, original),
        with_repetition(stage, original, record(9.0)),
        all_steps(LIMITS, port, ran=True),
        losses_not_reached(LIMITS, original),
    ]
    for each in [stage, *others]:
        for text in (each.name, each.reason):
            assert re.search(r"[一-鿿]", text.zh), text.en
            assert not english_in(text.zh), text.zh


BLOCKS: list[dict[str, tuple[str, Any]]] = [
    {"precison_mode": ("s", "x"), "zzzzzzzzz": ("s", "x"), "enable_reduce_precision": ("b", True)},
    {"precision_mode": ("b", True), "mix_compile_mode": ("i", 1), "jit_compile": ("b", True)},
    {"precision_mode": ("s", "allow_mix"), "iterations_per_loop": ("i", 0)},
    {"graph_run_mode": ("i", 2), "local_rank_id": ("i", 9), "local_device_list": ("s", "a")},
    {"enable_dump": ("b", True)},
    {"enable_dump": ("b", True), "dump_path": ("s", "/nowhere"), "dump_step": ("s", "5-1")},
    {"enable_dump": ("b", True), "dump_path": ("s", "/nowhere"), "dump_step": ("s", "a: b")},
    {"enable_dump": ("b", True), "dump_path": ("s", "."), "dump_step": ("s", "1|" * 101 + "1")},
    {"aoe_mode": ("s", "")},
    {"modify_mixlist": ("s", "f"), "optypelist_for_implmode": ("s", "f")},
    {"precision_mode": ("s", "force_fp16"), "precision_mode_v2": ("s", "fp16")},
    {"input_shape": ("s", "x")},
    {"input_shape": ("s", "x"), "dynamic_dims": ("s", "x"), "dynamic_node_type": ("i", 2)},
    {
        "dynamic_input": ("b", True),
        "dynamic_graph_execute_mode": ("s", "lazy_recompile"),
        "iterations_per_loop": ("i", 9),
    },
    {"dump_step": ("s", "1")},
]


def test_stand_in_option_messages_are_translated(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.syspath_prepend(str(standin_folder()))
    from npu_bridge_standin.option_checks import check_blocks  # type: ignore[import-not-found]

    problems = [problem for block in BLOCKS for problem in check_blocks([block], {})]
    assert len(problems) > 25
    for problem in problems:
        (line,) = standin_lines([{"kind": "refused option", "text": problem.text}])
        assert line.en == f"refused option: {problem.text}"
        assert line.zh != f"被拒绝的选项：{problem.text}", problem.text
        assert not english_in(line.zh), line.zh


def run(tmp_path: Path, port: str, original: str | None, interpreter: Interpreter) -> CheckResult:
    for name, text in (("port", port), ("original", original)):
        if text is not None:
            (tmp_path / name).mkdir()
            (tmp_path / name / "train.py").write_text(text)
    command = read_command(["train.py"])
    assert command is not None
    said: list[Text] = []
    result = run_check(
        CheckRequest(
            ported=tmp_path / "port",
            original=tmp_path / "original" if original is not None else None,
            command=command,
            interpreter=interpreter,
            steps=3,
            seed=1,
            timeout_s=60.0,
            timeout="60s",
            tolerance=1e-5,
        ),
        say=said.append,
    )
    assert said
    assert not any(english_in(text.zh) for text in said)
    return result


def assert_chinese(result: CheckResult) -> None:
    lines = "\n".join(as_lines(result, "zh"))
    page, data = as_markdown(result, "zh"), as_json(result, "zh")
    # Programs read the same keys and states in every language.
    data = re.sub(r'"status": "not reached"', "", data)
    for text in (lines, page, data):
        # The checkout may lie in a folder of several words.
        assert not english_in(text.replace(str(CHECKOUT), "")), text
    for stage in result.stages:
        assert stage.name.zh in lines
        assert stage.name.zh in page
        assert stage.reason.zh in lines


@pytest.mark.parametrize("port", ["import os\n", "print 'old'\n"])
def test_chinese_report_of_a_check_without_tensorflow_has_no_english_sentence(
    tmp_path: Path, port: str
):
    here = Interpreter(path=Path(sys.executable), python="3.7.16", tensorflow="1.15.0")
    result = run(tmp_path, port, "import os\n", here)
    assert [stage.status for stage in result.stages][1:] == ["failed", *["not reached"] * 4]
    assert_chinese(result)


@pytest.mark.slow
@pytest.mark.parametrize("wrong", ["keep_prob=0.8", "keep_prob=1 - 0.8"])
def test_chinese_report_of_a_real_check_has_no_english_sentence(tmp_path: Path, wrong: str):
    python = find_interpreter(python=Path(tensorflow_python()), make_env=None, environment={})
    port = scripts.SESSION_RUN_PORTED.replace("keep_prob=0.8", wrong)
    result = run(tmp_path, port, scripts.SESSION_RUN, python)
    assert result.passed == (wrong == "keep_prob=0.8")
    assert result.comparison is not None
    assert_chinese(result)
