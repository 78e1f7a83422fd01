"""Calls of `benchmarks/accelerator.py`: what fails loses nothing else, and the next one goes on."""

import json
import os
import signal
import time
from collections.abc import Sequence
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest

from jumar.ground.errors import UserError
from on_accelerator.measuring import Part
from on_accelerator.session import Options, Session, peaks

PART = Part(name="own", title="Own part", module="tests.benchmarks.own_part")
OTHER = Part(name="rates", title="Rates", module="tests.benchmarks.own_part")


class Calls:
    """Calls of the command with a part of our own, in one output folder."""

    def __init__(self, folder: Path) -> None:
        self.out, self.data = folder / "out", folder / "data"
        self.data.mkdir()
        self.said: list[str] = []

    def plan(self, *words: str) -> None:
        """What to measure, each with `WORD` or `WORD=SECONDS`."""
        lines = [" ".join((f"{word}=1").split("=")[:2]) for word in words]
        (self.data / "plan.txt").write_text("\n".join(lines))

    def call(
        self,
        *,
        minutes: float = 1.0,
        limit_s: float = 20.0,
        small: bool = True,
        only: Sequence[str] = (),
        part: Part = PART,
    ) -> int:
        """One call; returns its exit code."""
        options = Options(
            device="cpu",
            minutes=minutes,
            out=self.out,
            small=small,
            data=self.data,
            command="python benchmarks/accelerator.py",
            only=only,
            least_limit_s=limit_s,
        )
        return Session([part], options, self.said.append, reported=[PART, OTHER]).run()

    def records(self) -> dict[str, dict[str, Any]]:
        """What the report says of each measurement."""
        content = json.loads((self.out / "results.json").read_text())
        return {each["measurement"]: each for each in content["parts"]["own"]}

    def began(self) -> list[str]:
        """Every measurement that began, in order."""
        lines = (self.data / "began.txt").read_text().splitlines()
        return [line.split()[0] for line in lines]


@pytest.fixture
def calls(tmp_path: Path) -> Calls:
    return Calls(tmp_path)


def test_failures_are_reported_with_reason_and_lose_nothing_else(calls: Calls) -> None:
    calls.plan("good-1", "kill", "raise", "memory", "lack", "import", "partly", "good-2")
    assert calls.call() == 1
    records = calls.records()
    assert {name: record["state"] for name, record in records.items()} == {
        "good-1": "measured",
        "kill": "failed",
        "raise": "failed",
        "memory": "failed",
        "lack": "missing",
        "import": "missing",
        "partly": "failed",
        "good-2": "measured",
    }
    assert records["kill"]["reason"] == "its process ended with signal SIGKILL"
    assert records["raise"]["reason"] == "RuntimeError: nothing to see on cpu"
    assert records["memory"]["reason"] == "out of memory: 1 TiB"
    assert records["lack"]["reason"] == "needs a moon"
    assert records["import"]["reason"] == "needs package_that_nobody_has, which is not installed"
    assert (
        records["partly"]["rows"]
        == records["good-2"]["rows"]
        == [{"answer": 42.0, "rates known": 0}]
    )
    report = (calls.out / "results.md").read_text()
    assert "- kill: failed, its process ended with signal SIGKILL" in report
    assert report.count("| 42 | 0 |") == 3
    assert "nothing to see" in (calls.out / "log.txt").read_text()


def test_hanging_measurement_is_killed_and_the_next_one_runs(calls: Calls) -> None:
    calls.plan("slow=0.1", "good")
    began = time.monotonic()
    assert calls.call(limit_s=1.0) == 1
    assert time.monotonic() - began < 20
    assert calls.records()["slow"]["reason"].startswith("no answer for 1 s")
    assert calls.records()["good"]["state"] == "measured"


def test_exit_code_is_0_when_something_is_missing_but_nothing_failed(calls: Calls) -> None:
    calls.plan("good", "lack")
    assert calls.call() == 0


def test_second_call_repeats_only_failed_or_missing_measurements(calls: Calls) -> None:
    calls.plan("raise", "good-1", "lack", "good-2")
    assert calls.call() == 1
    assert calls.call() == 1
    # What failed comes last: it may fail again, and take long.
    assert calls.began() == ["raise", "good-1", "lack", "good-2", "lack", "raise"]


def test_fixed_failure_is_measured_in_the_next_call(calls: Calls) -> None:
    calls.plan("raise", "good")
    assert calls.call() == 1
    (calls.data / "mended").touch()
    assert calls.call() == 0
    record = calls.records()["raise"]
    assert (record["state"], record["reason"]) == ("measured", "")


def test_time_limit_is_kept_and_the_next_call_resumes(calls: Calls) -> None:
    calls.plan("good-1", "good-2=100", "good-3=1")
    assert calls.call(minutes=0.5) == 3
    assert calls.began() == ["good-1", "good-3"]
    assert calls.said[-1].startswith("the time is up; the same command goes on: python")
    assert any("left: own 1, about" in line for line in calls.said)
    assert calls.call(minutes=0.5) == 0
    assert calls.began() == ["good-1", "good-3", "good-2"]


def test_lower_priority_measurements_follow_the_first_ones_of_all_parts(calls: Calls) -> None:
    calls.plan("good-later", "lack", "good")
    assert calls.call() == 0
    assert calls.began() == ["lack", "good", "good-later"]


def test_named_measurements_are_made_alone_but_for_the_rates(calls: Calls) -> None:
    calls.plan("good-1", "good-2", "good-3")
    assert calls.call(only=["good-3", "good-1"]) == 0
    assert calls.began() == ["good-1", "good-3"]
    calls.plan("lack-1", "lack-2")
    assert calls.call(only=["lack-2"], part=OTHER) == 0
    assert calls.began()[2:] == ["lack-1", "lack-2"]
    with pytest.raises(UserError, match="good-4") as error:
        calls.call(only=["good-4"])
    assert error.value.where == "--only"


def test_report_keeps_the_parts_of_earlier_calls(calls: Calls) -> None:
    calls.plan("good")
    assert calls.call() == 0
    assert calls.call(part=OTHER) == 0
    assert list(calls.records()) == ["good"]
    report = (calls.out / "results.md").read_text()
    assert "## Own part" in report
    assert "## Rates" in report


def test_sliced_measurement_continues_across_calls(calls: Calls) -> None:
    calls.plan("slice")
    assert [calls.call(), calls.call(), calls.call()] == [3, 3, 0]
    assert calls.records()["slice"]["rows"] == [{"slices": 3}]


def test_killed_call_loses_no_results_and_leaves_no_process(calls: Calls) -> None:
    calls.plan("good", "slow")
    process = get_context("fork").Process(target=calls.call)
    process.start()
    try:
        deadline = time.monotonic() + 30
        began = calls.data / "began.txt"
        while not (began.exists() and "slow" in began.read_text()):
            assert time.monotonic() < deadline
            time.sleep(0.05)
    finally:
        process.kill()
        process.join()
    slow = int(began.read_text().split()[-1])
    wait_for_end(slow)
    calls.plan("good", "good-2")
    assert calls.call() == 0
    assert calls.began() == ["good", "slow", "good-2"]


def wait_for_end(pid: int) -> None:
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return
        status = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        if status == "Z":  # ended; whoever inherited it has yet to take note
            return
        time.sleep(0.05)
    os.kill(pid, signal.SIGKILL)
    pytest.fail("a measurement outlived its call")


def test_truncated_line_after_a_power_loss_is_ignored(calls: Calls) -> None:
    calls.plan("good-1", "good-2")
    assert calls.call() == 0
    file = calls.out / "rows.jsonl"
    first, second = file.read_text().splitlines()
    file.write_text(f"{first}\n{second[: len(second) // 2]}")
    assert calls.call() == 0
    assert calls.began() == ["good-1", "good-2", "good-2"]
    assert [json.loads(line)["measurement"] for line in file.read_text().splitlines()] == [
        "good-1",
        "good-2",
    ]


def test_rows_of_another_machine_or_size_are_not_mixed(calls: Calls) -> None:
    calls.plan("good")
    assert calls.call() == 0
    with pytest.raises(UserError, match="holds measurements with small True, not False"):
        calls.call(small=False)


def test_folder_with_unrelated_files_is_left_alone(calls: Calls) -> None:
    calls.plan("good")
    calls.out.mkdir()
    (calls.out / "thesis.tex").write_text("years of work")
    with pytest.raises(UserError, match="holds other files"):
        calls.call()
    assert [path.name for path in calls.out.iterdir()] == ["thesis.tex"]


def test_peak_of_sixteen_bits_is_at_least_that_of_float32() -> None:
    slow = {"bfloat16": 2.0, "float16": 9.0, "float32": 5.0, "float32, short format": 4.0}
    assert peaks({**slow, "copy": 1.0}) == {**slow, "bfloat16": 5.0, "copy": 1.0}
    assert peaks({"copy": 1.0, "bfloat16": 2.0}) == {"copy": 1.0, "bfloat16": 2.0}
