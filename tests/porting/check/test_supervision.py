import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from jumar.porting.check.children import Children
from jumar.porting.check.supervision import OUTPUT_LIMIT, Ended, supervise
from tests.running import is_running

SOURCE = Path(__file__).resolve().parents[3] / "src"


def run(folder: Path, program: str, *, timeout_s: float = 20.0) -> Ended:
    return supervise(
        [sys.executable, "-c", program],
        folder=folder,
        environment={"PATH": os.environ["PATH"]},
        timeout_s=timeout_s,
    )


def wait_for(path: Path) -> str:
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        if path.is_file() and path.read_text().endswith("\n"):
            return path.read_text()
        time.sleep(0.02)
    raise AssertionError(f"{path} was not written")


def test_exit_code_and_last_lines_are_returned(tmp_path: Path):
    ended = run(tmp_path, "import sys; print('one'); print('two', file=sys.stderr); sys.exit(3)")
    assert (ended.how, ended.code) == ("exited", 3)
    assert set(ended.tail) == {"one", "two"}


def test_hanging_program_is_ended_in_time(tmp_path: Path):
    ended = run(tmp_path, "print('begun', flush=True)\nwhile True: pass", timeout_s=2.5)
    assert ended.how == "timeout"
    assert 2.5 <= ended.seconds < 10
    assert ended.tail == ("begun",)


def test_hanging_program_is_asked_for_its_stack(tmp_path: Path):
    program = (
        "import faulthandler, signal, time\n"
        "faulthandler.register(signal.SIGUSR1)\n"
        "print('begun', flush=True)\n"
        "def stuck():\n    time.sleep(60)\n"
        "stuck()\n"
    )
    ended = run(tmp_path, program, timeout_s=2.5)
    assert ended.how == "timeout"
    assert any("in stuck" in line for line in ended.tail)


def test_program_that_ends_while_asked_for_its_stack_has_timed_out(tmp_path: Path):
    events = tmp_path / "events.jsonl"
    program = (
        "import json, os, time\n"
        f"with open({str(events)!r}, 'w') as file:\n"
        "    file.write(json.dumps({'event': 'child', 'pid': os.getpid()}) + '\\n')\n"
        "time.sleep(60)\n"
    )
    ended = supervise(
        [sys.executable, "-c", program],
        folder=tmp_path,
        environment={"PATH": os.environ["PATH"], "MARK": str(events)},
        timeout_s=2.5,
        children=Children(events=events, mark=str(events)),
    )
    assert ended.how == "timeout"
    assert ended.seconds < 10


def test_crash_is_named_by_its_signal(tmp_path: Path):
    ended = run(tmp_path, "import os, signal; os.kill(os.getpid(), signal.SIGSEGV)")
    assert (ended.how, ended.code) == ("signal", signal.SIGSEGV)


def test_program_flooding_output_is_ended_and_only_the_end_is_kept(tmp_path: Path):
    ended = run(tmp_path, "import sys\nwhile True: sys.stdout.write('x' * 99 + '\\n')")
    assert ended.how == "flood"
    assert ended.num_bytes > OUTPUT_LIMIT
    assert sum(len(line) for line in ended.tail) < 2**18


def test_much_output_without_a_reader_does_not_stall_the_program(tmp_path: Path):
    ended = run(tmp_path, "print('y' * 2**20); print('done')")
    assert (ended.how, ended.code, ended.tail[-1]) == ("exited", 0, "done")


def test_prompts_receive_end_of_input(tmp_path: Path):
    ended = run(tmp_path, "input('go on? ')")
    assert (ended.how, ended.code) == ("exited", 1)
    assert "EOFError" in ended.tail[-1]


def test_child_processes_do_not_outlive_the_program(tmp_path: Path):
    program = (
        "import subprocess, sys\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'])\n"
        "open('child', 'w').write(f'{child.pid}\\n')\n"
    )
    ended = run(tmp_path, program)
    assert (ended.how, ended.code) == ("exited", 0)
    deadline = time.monotonic() + 5
    child = int((tmp_path / "child").read_text())
    while is_running(child) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not is_running(child)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_ending_the_supervisor_ends_the_program(tmp_path: Path, number: signal.Signals):
    program = "import os, time; open('id', 'w').write(f'{os.getpid()}\\n'); time.sleep(60)"
    supervisor = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "import sys\nfrom pathlib import Path\n"
            "from jumar.porting.check.supervision import supervise\n"
            "supervise([sys.executable, '-c', sys.argv[1]], folder=Path(sys.argv[2]),\n"
            "          environment={}, timeout_s=60)",
            program,
            str(tmp_path),
        ],
        env={**os.environ, "PYTHONPATH": str(SOURCE)},
        stderr=subprocess.DEVNULL,
    )
    child = int(wait_for(tmp_path / "id"))
    supervisor.send_signal(number)
    assert supervisor.wait(timeout=20) != 0
    assert not is_running(child)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signal_during_program_start_ends_it(number: signal.Signals):
    """The signal comes in the last line of Popen, when the program runs and nobody knows it yet."""
    supervisor = f"""
import os, subprocess, sys
from pathlib import Path
from jumar.porting.check.supervision import supervise

def trace(frame, event, argument):
    if frame.f_code is not subprocess.Popen.__init__.__code__:
        return None
    if event == "return":
        print(frame.f_locals["self"].pid, flush=True)
        os.kill(os.getpid(), {int(number)})
    return trace

sys.settrace(trace)
supervise(["sleep", "60"], folder=Path("/"), environment=dict(os.environ), timeout_s=60)
"""
    done = subprocess.run(
        [sys.executable, "-c", supervisor],
        env={**os.environ, "PYTHONPATH": str(SOURCE)},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        timeout=20,
        check=False,
    )
    assert done.returncode != 0
    assert not is_running(int(done.stdout))


def test_ignored_signals_stay_ignored(tmp_path: Path):
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        program = "import os, signal, time; os.kill(os.getppid(), signal.SIGHUP); time.sleep(0.3)"
        assert run(tmp_path, program).how == "exited"
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)


def test_control_characters_do_not_reach_the_terminal(tmp_path: Path):
    ended = run(tmp_path, r"print('a\x1b[31mb\x07c'); print('10%\r20%')")
    assert ended.tail == ("a\\x1b[31mb\\x07c", "10%", "20%")


def test_watched_process_in_its_own_session_is_ended(tmp_path: Path):
    events, mark = tmp_path / "events", str(tmp_path)
    program = (
        "import json, subprocess, sys\n"
        "one = subprocess.Popen(['sleep', '60'], start_new_session=True)\n"
        "for event in ({'event': 'child'}, {'event': 'end', 'reason': 'steps'}):\n"
        "    line = json.dumps(dict(event, process='1', pid=one.pid))\n"
        f"    print(line, file=open({str(events)!r}, 'a'))\n"
        "one.wait()\n"
    )
    ended = supervise(
        [sys.executable, "-c", program],
        folder=tmp_path,
        environment={"PATH": os.environ["PATH"], "MARK": mark},
        timeout_s=20.0,
        children=Children(events=events, mark=mark),
    )
    assert ended.how == "done"
    process_id = json.loads(events.read_text().splitlines()[0])["pid"]
    deadline = time.monotonic() + 10
    while is_running(process_id) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not is_running(process_id)
