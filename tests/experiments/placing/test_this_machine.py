import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from jumar.experiments.placing.contract import Ended, Job, run_jobs
from jumar.experiments.placing.this_machine import ThisMachine
from jumar.ground import machine
from jumar.ground.machine import usable_cores

CHECKOUT = Path(__file__).resolve().parents[3]


def job(folder: Path, code: str, *, output: bool = False) -> Job:
    return Job(
        directory=folder,
        command=lambda device: [sys.executable, "-c", code, device],
        output=folder / "output.txt" if output else None,
    )


def code_of(code: str, folder: Path) -> int:
    ended: list[Ended] = []
    with ThisMachine() as place:
        run_jobs(place, [job(folder, code)], end=ended.append)
    return ended[0].code


@pytest.mark.parametrize("code", [0, 1, 2])
def test_exit_code_of_a_run_is_returned(code: int, tmp_path: Path) -> None:
    assert code_of(f"raise SystemExit({code})", tmp_path) == code


def test_killed_run_returns_a_negative_code(tmp_path: Path) -> None:
    assert code_of("import os; os.kill(os.getpid(), 9)", tmp_path) == -9


def test_signal_handlers_are_restored_afterwards(tmp_path: Path) -> None:
    before = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    code_of("", tmp_path)
    assert (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)) == before


@pytest.mark.parametrize("whole_group", [True, False], ids=["ctrl-c", "sigterm"])
def test_saving_run_is_awaited(tmp_path: Path, whole_group: bool) -> None:
    """Ctrl-C reaches parent and child by the terminal, SIGTERM only the parent."""
    child = f"""
import pathlib, signal, time
here = pathlib.Path({str(tmp_path)!r})
stop = []
signal.signal(signal.SIGINT, lambda *_: stop.append(130))
signal.signal(signal.SIGTERM, lambda *_: stop.append(143))
(here / "ready").touch()
while not stop:
    time.sleep(0.01)
time.sleep(1)
(here / "saved").write_text(str(stop))
raise SystemExit(stop[0])
"""
    parent = (
        "import sys; from pathlib import Path; "
        "from tests.experiments.placing.test_this_machine import code_of; "
        f"sys.exit(code_of({child!r}, Path({str(tmp_path)!r})))"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", parent],
        start_new_session=True,
        env={**os.environ, "PYTHONPATH": f"{CHECKOUT / 'src'}:{CHECKOUT}"},
    )
    deadline = time.monotonic() + 30
    while not (tmp_path / "ready").exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    if whole_group:
        os.killpg(process.pid, signal.SIGINT)
    else:
        process.send_signal(signal.SIGTERM)
    expected = 130 if whole_group else 143
    assert process.wait(timeout=30) == expected
    # Told once: a second signal would make a run leave at once, without its checkpoint.
    assert (tmp_path / "saved").read_text() == f"[{expected}]"


def test_parallel_runs_have_separate_outputs_and_devices(tmp_path: Path) -> None:
    jobs = [
        job(tmp_path / str(number), f"import sys; print(sys.argv[1]); exit({number})", output=True)
        for number in range(3)
    ]
    begun: list[Job] = []
    codes: dict[str, int] = {}
    with ThisMachine(at_once=3, devices=("npu:0", "npu:1", "npu:2")) as place:
        run_jobs(
            place,
            jobs,
            begin=begun.append,
            end=lambda ended: codes.update({ended.job.name: ended.code}),
        )
    assert begun == jobs
    assert codes == {"0": 0, "1": 1, "2": 2}
    outputs = [(tmp_path / str(number) / "output.txt").read_text() for number in range(3)]
    assert outputs == ["npu:0\n", "npu:1\n", "npu:2\n"]


def test_concurrent_runs_are_limited_and_share_the_cores(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    code = f"""
import os, pathlib, time
here = pathlib.Path({str(tmp_path)!r})
mine = here / f"running-{{time.monotonic_ns()}}"
mine.touch()
time.sleep(0.1)
count = len(list(here.glob("running-*")))
mine.unlink()
assert int(os.environ["OMP_NUM_THREADS"]) == max(1, {usable_cores()} // 2)
exit(count)
"""
    codes: list[int] = []
    with ThisMachine(at_once=2) as place:
        jobs = [job(tmp_path / str(number), code, output=True) for number in range(5)]
        run_jobs(place, jobs, end=lambda ended: codes.append(ended.code))
    assert max(codes) == 2
    assert min(codes) >= 1


def test_next_run_waits_for_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the memory files of a machine that has little left."""
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc" / "meminfo").write_text("MemAvailable:     700000 kB\n")
    monkeypatch.setattr(machine, "SYSTEM", tmp_path)
    messages: list[str] = []
    with ThisMachine(at_once=2, say=messages.append) as place:
        assert place.has_room
        place.start(job(tmp_path / "first", "import time; time.sleep(0.5)", output=True))
        assert not place.has_room
        assert "does not fit into the free memory" in messages[0]
        place.wait(30)
        assert place.has_room


def test_one_interrupted_run_stops_the_others_at_a_checkpoint(tmp_path: Path) -> None:
    waits = """
import signal, sys, time
signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
time.sleep(30)
"""
    interrupted = "import time; time.sleep(0.5); exit(130)"
    codes: list[int] = []
    with ThisMachine(at_once=2) as place:
        jobs = [
            job(tmp_path / name, code, output=True)
            for name, code in (("a", waits), ("b", interrupted), ("c", "exit(0)"))
        ]
        assert run_jobs(place, jobs, end=lambda ended: codes.append(ended.code)) == signal.SIGINT
    assert len(codes) == 2


def test_stopping_a_single_run_leaves_the_others_alone(tmp_path: Path) -> None:
    with ThisMachine(at_once=2) as place:
        stopped, other = (
            job(tmp_path / name, "import time; time.sleep(30)", output=True) for name in "ab"
        )
        place.start(stopped)
        place.start(other)
        place.stop(stopped)
        (ended,) = place.wait(30)
        assert (ended.job, ended.code) == (stopped, -signal.SIGTERM)
        assert place.stopped_by == 0
        assert place.running == [other]
        place.stop(other)
        place.wait(30)
