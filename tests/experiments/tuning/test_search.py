"""The search, on real processes whose times are planted."""

import itertools
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from jumar.experiments.tuning.bench import Bench
from jumar.experiments.tuning.bottleneck import Facts, Limit
from jumar.experiments.tuning.clock import Clock
from jumar.experiments.tuning.journal import Journal
from jumar.experiments.tuning.knobs import Choice, Combination
from jumar.experiments.tuning.measured_process import MeasuredProcess, NotMeasured
from jumar.experiments.tuning.result import Found
from jumar.experiments.tuning.search import SearchPlan, SpeedSearch
from jumar.ground.errors import UserError
from tests.running import is_running

PROGRAM = Path(__file__).with_name("planted_program.py")
Plan = Callable[[Combination], dict[str, Any]]


def choice(name: str, value: str = "1", *, claim: Any = "identical") -> Choice:
    return Choice(knob=name, label=f"{name}={value}", claim=claim, settings={name: value})


def searched(
    folder: Path,
    choices: Sequence[Choice],
    planted: Plan,
    *,
    rounding: bool = False,
    seconds: float = 600,
    now: Callable[[], float] = time.monotonic,
    lines: list[str] | None = None,
    started: list[tuple[str, ...]] | None = None,
) -> Found:
    def command(combination: Combination, scratch: Path) -> Sequence[str]:
        assert scratch.is_dir()
        if started is not None:
            started.append(combination.labels)
        # Noise that differs from test run to test run has equal settings win one race in twenty.
        seeded = {"seed": " ".join(combination.labels)} | planted(combination)
        return [sys.executable, str(PROGRAM), json.dumps(seeded)]

    def chosen(facts: Facts, limits: Sequence[Limit]) -> Sequence[Choice]:
        assert facts.device_name == "a planted processor"
        assert limits
        return choices

    clock = Clock(seconds, now)
    plan = SearchPlan(
        bench=Bench(command, folder / "scratch"),
        journal=Journal(folder, {"planted": True}),
        clock=clock,
        choices=chosen,
        allow_rounding=rounding,
        say=(lines if lines is not None else []).append,
    )
    return SpeedSearch(plan).run()


def times(factors: Mapping[str, float], hashes: Mapping[str, str] | None = None) -> Plan:
    """Steps of 0.1 s, divided by a factor for each choice that is made."""

    def planted(combination: Combination) -> dict[str, Any]:
        step_s, digest = 0.1, "same"
        for label in combination.labels:
            step_s /= factors.get(label, 1.0)
            digest = (hashes or {}).get(label, digest)
        return {"step_s": step_s, "hash": digest}

    return planted


def outcomes(found: Found) -> dict[str, str]:
    return {each.choice.label: each.outcome for each in found.tried}


def test_helpful_knobs_are_combined_and_their_gains_recorded(tmp_path: Path) -> None:
    factors = {"a=1": 1.5, "b=1": 0.7, "b=2": 1.2, "c=1": 1.0}
    choices = [choice("a"), choice("b"), choice("b", "2"), choice("c")]
    result = searched(tmp_path, choices, times(factors))
    assert result.best.labels == ("a=1", "b=2")
    assert result.confirmed is not None
    assert result.confirmed.ratio == pytest.approx(1.8, rel=0.05)
    assert result.is_faster
    bought = {each.choice.label: each.measured for each in result.kept}
    assert set(bought) == {"a=1", "b=2"}
    assert bought["a=1"] is not None
    assert bought["a=1"].ratio == pytest.approx(1.5, rel=0.05)
    assert outcomes(result)["b=1"] == "not faster"
    # Nothing is raced twice against the same settings.
    assert [each.choice.label for each in result.tried] == ["a=1", "b=1", "b=2", "c=1"]
    assert result.weights == "identical"
    assert not (tmp_path / "scratch").exists()


def test_better_value_replaces_one_that_was_already_faster(tmp_path: Path) -> None:
    result = searched(tmp_path, [choice("a"), choice("a", "2")], times({"a=1": 1.2, "a=2": 1.6}))
    assert result.best.labels == ("a=2",)


def test_choice_that_helps_only_with_a_later_one_is_retried(tmp_path: Path) -> None:
    def planted(combination: Combination) -> dict[str, Any]:
        made = set(combination.labels)
        step_s = 0.1 / (1.5 if "b=1" in made else 1.0) / (1.3 if made == {"a=1", "b=1"} else 1.0)
        return {"step_s": step_s, "hash": "same"}

    result = searched(tmp_path, [choice("a"), choice("b")], planted)
    assert result.best.labels == ("a=1", "b=1")


UNSTEADY = {
    "a=1": [0.8, 0.965, 1.2],
    "a=2": [0.8, 0.99, 1.2],
    "b=1": [0.8, 0.965, 1.2],
    "c=1": [0.8, 1.04, 1.2],
}
"""Factors on the times of blocks in turn, of which every third is that of the choice."""


@pytest.mark.parametrize("gain", [1.12, 1.0])
def test_small_gains_hidden_by_noise_are_raced_together(tmp_path: Path, gain: float) -> None:
    def planted(combination: Combination) -> dict[str, Any]:
        plan = times({"a=1 b=1": gain})(combination)
        pattern = UNSTEADY.get(" ".join(combination.labels), [1.0])
        return {**plan, "pattern": pattern, "noise": 0.001}

    choices = [choice("a"), choice("a", "2"), choice("b"), choice("c")]
    result = searched(tmp_path, choices, planted)
    assert [each.choice.label for each in result.tried] == ["a=1", "a=2", "b=1", "c=1", "a=1 b=1"]
    assert {each.outcome for each in result.tried[:4]} == {"undecided"}
    assert result.best.settings == ({"a": "1", "b": "1"} if gain > 1 else {})


def test_single_undecided_choice_is_not_raced_again(tmp_path: Path) -> None:
    def planted(combination: Combination) -> dict[str, Any]:
        plan = times({"b=1": 1.5})(combination)
        pattern = UNSTEADY["a=1"] if "a=1" in combination.labels else [1.0]
        return {**plan, "pattern": pattern, "noise": 0.001}

    result = searched(tmp_path, [choice("b"), choice("a"), choice("a", "2")], planted)
    assert [each.choice.label for each in result.tried] == ["b=1", "a=1", "a=2"]


@pytest.mark.parametrize(("fresh", "pairs"), [([1.0], 16), ([0.8, 1.7], 32), ([1.7], 16)])
def test_confirmation_continues_only_while_promising_but_unproven(
    tmp_path: Path, fresh: list[float], pairs: int
) -> None:
    started = 0

    def planted(combination: Combination) -> dict[str, Any]:
        nonlocal started
        started += bool(combination.labels)
        # The first process with the choice is the race's, the others confirm.
        pattern = fresh if started > 1 and combination.labels else [1.0]
        return {**times({"a=1": 1.5})(combination), "pattern": pattern}

    result = searched(tmp_path, [choice("a")], planted)
    assert result.confirmed is not None
    assert result.confirmed.pairs == pairs


def test_settings_are_unchanged_if_nothing_is_faster(tmp_path: Path) -> None:
    def planted(combination: Combination) -> dict[str, Any]:
        return {**times({"a=1": 0.9, "b=1": 1.004})(combination), "noise": 0.002}

    result = searched(tmp_path, [choice("a"), choice("b")], planted)
    assert result.best == Combination()
    assert result.confirmed is None
    assert not result.is_faster


def test_knob_falsely_declared_identical_is_refused(tmp_path: Path) -> None:
    lines: list[str] = []
    plan = times({"a=1": 2.0}, {"a=1": "other"})
    result = searched(tmp_path / "strict", [choice("a")], plan, lines=lines)
    assert outcomes(result) == {"a=1": "changes the weights"}
    assert result.best == Combination()
    assert any("although declared identical" in line for line in lines)
    allowed = searched(tmp_path / "loose", [choice("a")], plan, rounding=True)
    assert allowed.best.labels == ("a=1",)
    assert allowed.weights == "rounding"
    assert allowed.kept[0].weights == "rounding"


def test_knob_declared_rounding_that_keeps_the_bits_counts_as_identical(
    tmp_path: Path,
) -> None:
    result = searched(tmp_path, [choice("a", claim="rounding")], times({"a=1": 2.0}), rounding=True)
    assert result.kept[0].weights == "identical"
    assert result.weights == "identical"


def test_non_deterministic_baseline_proves_nothing(tmp_path: Path) -> None:
    number = 0

    def planted(combination: Combination) -> dict[str, Any]:
        nonlocal number
        number += 1
        return {"step_s": 0.05 if combination.labels else 0.1, "hash": str(number)}

    lines: list[str] = []
    result = searched(tmp_path, [choice("a")], planted, lines=lines)
    assert not result.reproducible
    assert outcomes(result) == {"a=1": "changes the weights"}
    assert any("the effect of other settings on the weights is unknown" in line for line in lines)


@pytest.mark.parametrize("moment", ["start", "block"])
def test_candidate_that_dies_is_reported_and_the_search_resumes(
    tmp_path: Path, moment: str
) -> None:
    def planted(combination: Combination) -> dict[str, Any]:
        dies = {"dies": moment} if "a=1" in combination.labels else {}
        step_s = 0.05 if "b=1" in combination.labels else 0.1
        return {"step_s": step_s, "hash": "same", **dies}

    result = searched(tmp_path, [choice("a"), choice("b")], planted)
    assert outcomes(result) == {"a=1": "failed", "b=1": "faster"}
    reason = result.tried[0].reason
    assert reason == (
        "there is no such thing here"
        if moment == "start"
        else "killed by SIGKILL, most likely for lack of memory"
    )


def test_untrainable_baseline_is_an_error_with_the_reason(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="there is no such thing here"):
        searched(tmp_path, [], lambda _: {"step_s": 0.1, "hash": "same", "dies": "start"})


def test_second_search_measures_only_what_is_missing(tmp_path: Path) -> None:
    factors = {"a=1": 1.5, "b=1": 1.3}
    first = searched(tmp_path, [choice("a")], times(factors))
    started: list[tuple[str, ...]] = []
    both = [choice("a"), choice("b")]
    second = searched(tmp_path, both, times(factors), started=started)
    assert first.best.labels == ("a=1",)
    assert second.best.labels == ("a=1", "b=1")
    assert [each.reused for each in second.tried][:2] == [True, False]
    assert ("a=1", "b=1") in started


def test_choices_without_time_are_skipped_and_named(tmp_path: Path) -> None:
    result = searched(tmp_path, [choice("a")], times({"a=1": 2.0}), seconds=1)
    assert [each.label for each in result.left_out] == ["a=1"]
    assert result.best == Combination()
    assert result.tried == []
    again, seconds = tmp_path / "again", result.min_time_s + 30
    enough = searched(again, [choice("a")], times({"a=1": 2.0}), seconds=seconds)
    assert [each.choice.label for each in enough.tried] == ["a=1"]
    assert enough.min_time_s == 0


def test_time_for_some_choices_requests_no_more_time(tmp_path: Path) -> None:
    def clock() -> Callable[[], float]:
        return itertools.count(step=5.0).__next__

    first = searched(tmp_path, [choice("a")], times({}), seconds=1, now=clock())
    choices = [choice(name) for name in "abcdefgh"]
    seconds = first.min_time_s + 90
    result = searched(tmp_path / "again", choices, times({}), seconds=seconds, now=clock())
    assert result.tried
    assert result.left_out
    assert result.min_time_s == 0


def test_paused_process_does_nothing_until_requested(tmp_path: Path) -> None:
    busy = (
        "import json,sys,time,threading,pathlib\n"
        "place=pathlib.Path(sys.argv[1])\n"
        "def count():\n"
        "    n=0\n"
        "    while True:\n"
        "        n+=1; place.write_text(str(n)); time.sleep(0.005)\n"
        "threading.Thread(target=count,daemon=True).start()\n"
        "time.sleep(0.05)\n"
        "print(json.dumps({}),flush=True)\n"
        "sys.stdin.read()\n"
    )
    counter = tmp_path / "counter"
    process = MeasuredProcess([sys.executable, "-c", busy, str(counter)], {}, tmp_path / "log.txt")
    try:
        process.ready(20)
        time.sleep(0.05)
        before = counter.read_text()
        time.sleep(0.1)
        assert counter.read_text() == before
    finally:
        process.close()


def test_process_that_takes_too_long_is_abandoned(tmp_path: Path) -> None:
    process = MeasuredProcess(
        [sys.executable, "-c", "import time; time.sleep(60)"], {}, tmp_path / "log.txt"
    )
    try:
        with pytest.raises(NotMeasured, match="takes longer than"):
            process.ready(0.2)
    finally:
        process.close()


def test_paused_processes_end_when_the_tuning_is_killed(tmp_path: Path) -> None:
    parent = (
        "import sys,time,pathlib\n"
        "from jumar.experiments.tuning.measured_process import MeasuredProcess\n"
        "place=pathlib.Path(sys.argv[1])\n"
        "p=MeasuredProcess([sys.executable,sys.argv[2],sys.argv[3]],{},place/'log.txt')\n"
        "p.ready(30)\n"
        "(place/'child').write_text(str(p._process.pid))\n"
        "time.sleep(60)\n"
    )
    words = json.dumps({"step_s": 0.1, "hash": "same"})
    process = subprocess.Popen(
        [sys.executable, "-c", parent, str(tmp_path), str(PROGRAM), words], start_new_session=True
    )
    note = tmp_path / "child"
    deadline = time.monotonic() + 30
    while not (note.exists() and note.read_text()) and time.monotonic() < deadline:
        time.sleep(0.02)
    process.kill()
    process.wait()
    child = int(note.read_text())
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline and is_running(child):
        time.sleep(0.02)
    assert not is_running(child)


def test_ctrl_c_keeps_the_findings_so_far(tmp_path: Path) -> None:
    def planted(combination: Combination) -> dict[str, Any]:
        if "b=1" in combination.labels:
            os.kill(os.getpid(), signal.SIGINT)
        return times({"a=1": 1.5})(combination)

    result = searched(tmp_path, [choice("a"), choice("b")], planted)
    assert result.interrupted
    assert result.best.labels == ("a=1",)
    assert not (tmp_path / "scratch").exists()
