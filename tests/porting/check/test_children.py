"""Processes that a checked script starts are watched as the script is, or named."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import pytest

from jumar.porting.check import checking
from jumar.porting.check.checking import CheckRequest, run_check
from jumar.porting.check.children import Children
from jumar.porting.check.interpreter import find_interpreter
from jumar.porting.check.losses import compare
from jumar.porting.check.record import Record, StepLosses, read_record
from jumar.porting.check.result import CheckResult
from jumar.porting.check.side import Command
from jumar.porting.check.supervision import Ended
from tests.porting.check import scripts
from tests.porting.check.chinese import english_in
from tests.tensorflow115 import tensorflow_python

RUNNER = Path(checking.__file__).parent / "runner37"
OF_ITS_OWN = "{'PATH': os.environ['PATH']}"
LAUNCHERS = {
    "subprocess": "import subprocess, sys\nsubprocess.run([sys.executable, 'train.py'], check=1)\n"
    "subprocess.run([sys.executable, 'train.py'], check=1)\n",
    "a shell with an environment of its own": "import os, subprocess\n"
    f"subprocess.check_call('python train.py', shell=True, env={OF_ITS_OWN})\n",
    "os.system": "import os\nos.system('python3 train.py')\n",
}
PROCESSES = """
import multiprocessing

def work(number):
    import train
    train.main()

if __name__ == "__main__":
    multiprocessing.set_start_method("{method}")
    workers = [multiprocessing.Process(target=work, args=(n,)) for n in range(2)]
    [worker.start() for worker in workers]
    [worker.join() for worker in workers]
"""


def events(path: Path, *lines: Mapping[str, Any]) -> Path:
    path.write_text("".join(json.dumps({"seconds": 1.0, **line}) + "\n" for line in lines))
    return path


def child(process: str, pid: int, kind: str = "child", **fields: object) -> dict[str, object]:
    return {"event": kind, "process": process, "pid": pid, **fields}


def step(process: str, pid: int, number: int, loss: float) -> dict[str, object]:
    return child(process, pid, "step", step=number, losses=[["loss:0", str(loss)]])


def read(path: Path, how: Literal["exited", "done"] = "exited") -> Record:
    ended = Ended(how=how, code=0, seconds=2.0, num_bytes=0, tail=())
    return read_record(ended, path, path.with_name("none"))


def test_steps_are_ordered_by_process_name_not_by_time(tmp_path: Path):
    lines = [step("10", 7, 1, 3.0), step("2", 8, 1, 1.0), step("10", 7, 2, 4.0)]
    record = read(events(tmp_path / "events", *lines, step("2", 8, 2, 2.0)))
    assert [(each.process, each.losses[0][1]) for each in record.losses] == [
        (0, 1.0),
        (0, 2.0),
        (1, 3.0),
        (1, 4.0),
    ]
    assert (record.num_steps, record.children) == (2, 2)


def test_childs_graph_proves_its_imports_and_the_scripts_does_not(tmp_path: Path):
    graph = {"event": "graph", "ops": 3}
    assert set(read(events(tmp_path / "events", graph)).reached) == {"graph"}
    in_child = read(events(tmp_path / "events", {**graph, "process": "1", "pid": 7}))
    assert set(in_child.reached) == {"imports", "graph"}


def test_two_processes_of_one_shell_are_distinct(tmp_path: Path):
    lines = [step("1", 7, 1, 1.0), step("1", 8, 1, 2.0), step("1", 7, 2, 3.0)]
    record = read(events(tmp_path / "events", *lines))
    assert [each.process for each in record.losses] == [0, 0, 1]


def test_childs_error_is_the_reason_rather_than_its_parents(tmp_path: Path):
    error = {"type": "ValueError", "message": "no data", "module": "", "frames": []}
    own = {"event": "error", **error, "type": "CalledProcessError"}
    record = read(events(tmp_path / "events", child("1", 7, "error", **error), own))
    assert record.error is not None
    assert (record.error.type, record.error.in_child) == ("ValueError", True)


def test_unwatched_python_is_named_and_other_programs_are_not(tmp_path: Path):
    commands = {
        "1": ["python", "-I", "train.py"],
        "2": ["nvidia-smi", "-L"],
        "3": ["ssh", "host", "run"],
        "4": ["/usr/bin/python3", "train.py"],
        "5": ["git log"],
        "6": ["cd x && python3.6 y"],
    }
    started = [{"event": "started", "child": key, "command": c} for key, c in commands.items()]
    other = {"event": "unwatched", "process": "6", "what": "Python 3.6"}
    record = read(events(tmp_path / "events", *started, child("4", 9), other))
    assert record.unwatched == (
        "python -I train.py",
        "ssh host run",
        "cd x && python3.6 y (Python 3.6)",
    )


@pytest.mark.parametrize(
    ("how", "reason", "unwatched"),
    [
        ("done", "steps", ()),
        ("done", "script", ("python train.py",)),
        ("exited", "steps", ("python train.py",)),
    ],
)
def test_command_cut_short_by_the_end_of_the_check_is_not_called_unwatched(
    tmp_path: Path, how: Literal["exited", "done"], reason: str, unwatched: tuple[str, ...]
):
    first, second = (
        {"event": "started", "child": key, "command": ["python", "train.py"]} for key in "12"
    )
    end = child("1", 7, "end", reason=reason)
    path = events(tmp_path / "events", child("1", 7), first, end, second)
    assert read(path, how).unwatched == unwatched


def test_losses_of_several_processes_are_paired_within_each():
    def sides(*rows: tuple[int, float]) -> list[StepLosses]:
        return [
            StepLosses(step=1, losses=(("loss:0", value),), process=process)
            for process, value in rows
        ]

    both = sides((0, 1.0), (1, 2.0))
    assert compare(both, both, tolerance=0.0).equal
    fewer = compare(both, sides((1, 2.0)), tolerance=0.0)
    assert "ran 1 step and the port 0" in fewer.mismatch.en
    assert [(pair.process, pair.original) for pair in fewer.pairs] == [(1, 2.0)]


def test_children_are_done_when_all_parallel_runs_are(tmp_path: Path):
    mark = str(tmp_path)
    sleeping = subprocess.Popen(["sleep", "60"], env={"MARK": mark})
    try:
        # For a moment after exec the kernel shows no environment.
        while mark.encode() not in Path(f"/proc/{sleeping.pid}/environ").read_bytes():
            time.sleep(0.01)
        path = tmp_path / "events"
        children = Children(events=path, mark=mark)
        assert not children.are_done()
        first, other = child("1", 1), child("2", sleeping.pid)
        events(path, first, other)
        assert not children.are_done()
        end = child("1", 1, "end", reason="steps")
        events(path, first, other, end)
        assert not children.are_done(), "another one trains still"
        events(path, first, end, other)
        assert children.are_done(), "what began later is another run"
        events(path, first, other, end, child("2", sleeping.pid, "end", reason="steps"))
        assert children.are_done()
        events(path, first, other, end)
        long_ago = time.time() - 60
        os.utime(path, (long_ago, long_ago))
        assert children.are_done(), "one that does nothing is not waited for"
    finally:
        sleeping.kill()
        sleeping.wait()


def test_other_python_reports_being_unwatched_and_runs_its_own_sitecustomize(tmp_path: Path):
    (tmp_path / "sitecustomize.py").write_text("import builtins\nbuiltins.customized = 1\n")
    (tmp_path / "config").write_text(json.dumps({"events": str(tmp_path / "events")}))
    environment = {
        "PYTHONPATH": f"{RUNNER / 'inherited'}{os.pathsep}{tmp_path}",
        "JUMAR_CHECK_CONFIG": str(tmp_path / "config"),
        "JUMAR_CHECK_PROCESS": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    program = "import sys\nprint(customized, any('inherited' in path for path in sys.path))"
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout == "1 False\n"
    (line,) = (tmp_path / "events").read_text().splitlines()
    version = f"Python {sys.version_info[0]}.{sys.version_info[1]}"
    assert json.loads(line) == {"event": "unwatched", "process": "1", "what": version}


def check(tmp_path: Path, launcher: str, *, alone: bool = False) -> CheckResult:
    sides = {"port": scripts.SESSION_RUN_PORTED, "original": scripts.SESSION_RUN}
    for name, text in sides.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "train.py").write_text(text)
        (tmp_path / name / "launch.py").write_text(launcher)
    command = Command(script="launch.py", arguments=())
    return run_check(
        CheckRequest(
            ported=tmp_path / "port",
            original=None if alone else tmp_path / "original",
            command=command,
            interpreter=find_interpreter(
                python=Path(tensorflow_python()), make_env=None, environment={}
            ),
            steps=2,
            seed=1,
            timeout_s=60.0,
            timeout="60s",
            tolerance=1e-5,
        )
    )


@pytest.mark.slow
@pytest.mark.parametrize("how", sorted(LAUNCHERS))
def test_training_in_a_process_counts_for_every_stage(tmp_path: Path, how: str):
    alone = how != "subprocess"
    result = check(tmp_path, LAUNCHERS[how], alone=alone)
    assert result.passed, result.stages
    if not alone:
        assert result.comparison is not None
        assert result.comparison.num_equal == 2
    assert any(event["kind"] == "session" and event["npu"] for event in result.standin)
    assert "the port trained in 1 process" in result.notes[0].en
    assert not any(english_in(note.zh) for note in result.notes)


@pytest.mark.slow
def test_parallel_training_processes_are_compared_pairwise(tmp_path: Path):
    result = check(tmp_path, PROCESSES.format(method="fork"))
    assert result.passed, result.stages
    assert result.comparison is not None
    assert [(pair.process, pair.step) for pair in result.comparison.pairs] == [
        *((0, 1), (0, 2), (1, 1), (1, 2))
    ]


@pytest.mark.slow
def test_processes_of_another_interpreter_are_watched(tmp_path: Path):
    result = check(tmp_path, PROCESSES.format(method="spawn"), alone=True)
    assert result.passed, result.stages
    assert result.notes[0].en.startswith("the port trained in 2 processes")


@pytest.mark.slow
def test_unwatchable_processes_are_named(tmp_path: Path):
    launcher = "import subprocess, sys\nsubprocess.call([sys.executable, '-I', 'train.py'])\n"
    result = check(tmp_path, launcher, alone=True)
    failed = next(stage for stage in result.stages if stage.status == "failed")
    assert failed.reason.en == "the script ended after 0 training steps"
    assert [note.en.partition(": ")[0] for note in result.notes] == [
        "the port started a process that is not watched"
    ]
    assert result.notes[0].zh.startswith("移植结果启动了一个未被监视的进程")


@pytest.mark.slow
def test_error_in_a_process_is_reported_with_its_location(tmp_path: Path):
    launcher = "import multiprocessing\ndef work():\n    raise KeyError('lost')\n"
    launcher += "process = multiprocessing.Process(target=work)\nprocess.start()\nprocess.join()\n"
    result = check(tmp_path, launcher, alone=True)
    failed = next(stage for stage in result.stages if stage.status == "failed")
    assert failed.reason.en == (
        "in a process that the script started: KeyError: 'lost' (launch.py:3)"
    )
