"""Runs on a real Ray of two nodes on this machine."""

import json
import os
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from jumar.experiments.placing.chosen import open_place
from jumar.experiments.placing.contract import Ended, Job, run_jobs
from jumar.ground.errors import UserError
from tests.experiments.run_files import results

ray = pytest.importorskip("ray", reason="needs ray")
pytestmark = pytest.mark.slow
STORE = 80 * 2**20
TRAINING = """
import json, os, pathlib, signal, sys, time
run, device, results = pathlib.Path(sys.argv[1]), sys.argv[2], sys.argv[3]
checkpoint, log = run / "step.txt", run / "log.txt"
signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
step = int(checkpoint.read_text()) if checkpoint.exists() else 0
def say(line):
    with log.open("a") as file:
        file.write(line + "\\n")
say(f"begun at {step} on {device}, {os.environ.get('JUMAR_WHERE')}, {os.getppid()}")
while step < 25:
    time.sleep(0.1)
    step += 1
    checkpoint.with_suffix(".new").write_text(str(step))
    checkpoint.with_suffix(".new").rename(checkpoint)
(run / "recipe.json").write_text("{}")
(run / "results.json").write_text(results)
say("finished")
"""
"""What a run does to its directory, in two seconds and without torch."""


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    from ray.cluster_utils import Cluster

    before = dict(os.environ)
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    # Ray's sockets lie below it, and a socket's path has at most 107 bytes.
    with tempfile.TemporaryDirectory(prefix="ray", dir="/tmp", ignore_cleanup_errors=True) as place:
        os.environ["RAY_TMPDIR"] = place
        node = {"num_cpus": 2, "object_store_memory": STORE}
        made = Cluster(head_node_args={**node, "include_dashboard": False}, initialize_head=True)
        os.environ["RAY_ADDRESS"] = made.address
        try:
            yield made
        finally:
            ray.shutdown()
            made.shutdown()
            os.environ.clear()
            os.environ.update(before)


@pytest.fixture
def job(tmp_path: Path) -> Any:
    def made(name: str) -> Job:
        run = tmp_path / name
        content = json.dumps(results())
        return Job(
            directory=run,
            command=lambda device: [sys.executable, "-c", TRAINING, str(run), device, content],
        )

    return made


def lines(job: Job, start: str) -> list[str]:
    logged = (job.directory / "log.txt").read_text().splitlines()
    return [line for line in logged if line.startswith(start)]


def lose_while_it_trains(cluster: Any, node: Any, jobs: Sequence[Job]) -> None:
    """Kill a node with its workers, as a machine loses power, in the middle of a run there."""
    raylet = node.all_processes["raylet"][0].process.pid
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        for each in jobs:
            begun = lines(each, "begun") if (each.directory / "log.txt").exists() else []
            worker = int(begun[-1].split()[-1]) if begun else 0
            step = each.directory / "step.txt"
            is_there = worker and parent_of(worker) == raylet
            if is_there and step.exists() and 5 <= int(step.read_text()) < 20:
                for process in Path("/proc").glob("[0-9]*"):
                    if parent_of(int(process.name)) == raylet:
                        os.kill(int(process.name), signal.SIGKILL)
                cluster.remove_node(node, allow_graceful=False)
                return
        time.sleep(0.02)


def parent_of(process: int) -> int:
    try:
        return int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])
    except (OSError, IndexError):
        return 0


def test_runs_of_a_lost_node_resume_and_none_is_completed_twice(
    cluster: Any, job: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JUMAR_WHERE", "passed on")
    node = cluster.add_node(num_cpus=2, object_store_memory=STORE)
    jobs = [job(f"run-{number}") for number in range(16)]
    messages: list[str] = []
    ended: list[Ended] = []
    killer = threading.Thread(target=lose_while_it_trains, args=(cluster, node, jobs))
    killer.start()
    with open_place("ray", jobs=None, device="auto", say=messages.append) as place:
        assert run_jobs(place, jobs, end=ended.append) == 0
    killer.join()
    assert messages[0] == "Ray: 2 nodes, 4 runs at once, one CPU each"
    assert sorted(each.job.name for each in ended) == sorted(each.name for each in jobs)
    assert {each.code for each in ended} == {0}
    assert [lines(each, "finished") for each in jobs] == [["finished"]] * 16
    lost = [each for each in jobs if len(lines(each, "begun")) > 1]
    assert lost
    assert sum("was lost with its worker" in line for line in messages) >= len(lost)
    assert any("begun at 0 " not in lines(each, "begun")[1] for each in lost)


def test_run_is_stopped_only_at_a_checkpoint(cluster: Any, job: Any) -> None:
    first, second = job("first"), job("second")
    with open_place("ray", jobs=2, device="cpu", say=lambda _: None) as place:
        place.start(first)
        place.start(second)
        while not (first.directory / "log.txt").exists():
            time.sleep(0.02)
        place.stop(first)
        codes = {}
        while place.running:
            codes.update({each.job.name: each.code for each in place.wait(30)})
    assert codes == {"first": 143, "second": 0}


def test_signal_stops_all_runs(cluster: Any, job: Any) -> None:
    jobs = [job("a"), job("b"), job("c")]

    def begin(each: Job) -> None:
        if each.name == "b":
            signal.raise_signal(signal.SIGINT)

    ended: list[Ended] = []
    with open_place("ray", jobs=3, device="cpu", say=lambda _: None) as place:
        assert run_jobs(place, jobs, begin=begin, end=ended.append) == signal.SIGINT
    assert {each.code for each in ended} == {130}


def test_run_that_fails_on_its_own_is_not_restarted(cluster: Any, tmp_path: Path) -> None:
    failing = Job(
        directory=tmp_path / "run",
        command=lambda _: [sys.executable, "-c", "print('it broke'); exit(1)"],
    )
    ended: list[Ended] = []
    with open_place("ray", jobs=None, device="cpu", say=lambda _: None) as place:
        run_jobs(place, [failing], end=ended.append)
    assert [each.code for each in ended] == [1]
    assert (tmp_path / "run" / "output.txt").read_text() == "it broke\n"


def test_missing_cluster_resources_are_reported(cluster: Any) -> None:
    with pytest.raises(UserError, match="has no NPU, only CPU"):
        open_place("ray", jobs=None, device="npu", say=lambda _: None)
    with pytest.raises(UserError, match="chooses the device of each run"):
        open_place("ray", jobs=None, device="npu:1", say=lambda _: None)
