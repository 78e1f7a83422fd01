"""start.sh: the nodes on this machine, and what becomes of them."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest

from jumar.launching.this import launch_here
from tests.launching.launches import bash, calls, job, stand_in, written

SAY = """\
import json, os, sys
names = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "MASTER_ADDR", "TORCHELASTIC_RESTART_COUNT")
about = {name: os.environ.get(name) for name in names}
with open(os.path.join(sys.argv[1], "rank-" + about["RANK"]), "w") as file:
    json.dump({**about, "arguments": sys.argv[2:]}, file)
print("here is rank", about["RANK"])
"""


@pytest.mark.slow
def test_two_nodes_with_two_ranks_each_are_really_started(tmp_path):
    (tmp_path / "say it.py").write_text(SAY)
    out = tmp_path / "out"
    out.mkdir()
    words = ((str(tmp_path / "say it.py"), str(out)), ("--x", "$HOME 'x'"))
    launch = launch_here(
        job(nodes=2, devices=2, words=words, python=sys.executable), folder=tmp_path
    )
    to = written(launch, tmp_path / "to here")
    done = bash(to / "start.sh", OMP_NUM_THREADS="1")
    assert done.returncode == 0, done.stdout + done.stderr
    ranks = [json.loads((out / f"rank-{rank}").read_text()) for rank in range(4)]
    assert [rank["LOCAL_RANK"] for rank in ranks] == ["0", "1", "0", "1"]
    assert {rank["WORLD_SIZE"] for rank in ranks} == {"4"}
    assert {rank["MASTER_ADDR"] for rank in ranks} == {"127.0.0.1"}
    assert [rank["arguments"] for rank in ranks] == [["--x", "$HOME 'x'"]] * 4
    assert all(f"[rank {rank}] here is rank {rank}" in done.stdout for rank in range(4))
    assert len(list((to / "logs").rglob("stdout.log"))) == 4


def test_failing_node_stops_the_others_and_its_status_is_returned(tmp_path):
    then = "if '1' == arguments[arguments.index('--node-rank') + 1]: sys.exit(7)\ntime.sleep(60)"
    python = stand_in(tmp_path / "calls", then=then)
    to = written(launch_here(job(nodes=3), folder=tmp_path), tmp_path / "to")
    begin = time.monotonic()
    done = bash(to / "start.sh", PYTHON=str(python), MASTER_PORT="1")
    assert done.returncode == 7
    assert time.monotonic() - begin < 30


@pytest.mark.parametrize(("number", "status"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_signal_stops_every_node_once(number, status, tmp_path):
    then = (
        "import signal\n"
        "def stop(number, frame):\n"
        f"    open(os.path.join({str(tmp_path)!r}, 'stopped-%d' % os.getpid()), 'a').write('.')\n"
        "    time.sleep(0.5)\n"
        "    sys.exit(1)\n"
        "signal.signal(signal.SIGTERM, stop)\n"
        "signal.signal(signal.SIGINT, stop)\n"
        f"open(os.path.join({str(tmp_path)!r}, 'ready-%d' % os.getpid()), 'w')\n"
        "time.sleep(60)"
    )
    python = stand_in(tmp_path / "calls", then=then)
    to = written(launch_here(job(nodes=2), folder=tmp_path), tmp_path / "to")
    process = subprocess.Popen(
        ["bash", str(to / "start.sh")],
        env={**os.environ, "PYTHON": str(python), "MASTER_PORT": "1"},
        start_new_session=True,
    )
    end = time.monotonic() + 30
    while len(list(tmp_path.glob("ready-*"))) < 2:
        assert time.monotonic() < end
        time.sleep(0.05)
    # As a terminal does it: to every process of the group.
    os.killpg(process.pid, number)
    assert process.wait(timeout=30) == status
    assert [path.read_text() for path in tmp_path.glob("stopped-*")] == [".", "."]


@pytest.mark.parametrize(
    ("accelerator", "variable"),
    [("cuda", "CUDA_VISIBLE_DEVICES"), ("npu", "ASCEND_RT_VISIBLE_DEVICES")],
)
def test_nodes_on_one_machine_share_no_device(accelerator, variable, tmp_path):
    python = stand_in(tmp_path / "calls")
    launch = launch_here(
        job(nodes=3, devices=2, accelerator=accelerator, python=str(python)), folder=tmp_path
    )
    to = written(launch, tmp_path / "to")
    done = bash(to / "start.sh", MASTER_PORT="1")
    assert done.returncode == 0, done.stderr
    seen = sorted(call["variables"][variable] for call in calls(tmp_path / "calls"))
    assert seen == ["0,1", "2,3", "4,5"]
