"""A search draws runs one after the other, prunes bad ones, and resumes after a stop."""

import json
import math
import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from jumar.experiments.hyperparameters.request import SearchRequest
from jumar.experiments.hyperparameters.searching import Searched, search
from jumar.experiments.placing.this_machine import ThisMachine
from jumar.experiments.sweep import RunRequest, run_sweep
from jumar.ground.errors import UserError
from tests.experiments.hyperparameters.test_ranges import resolve
from tests.experiments.placing.called import CalledPlace
from tests.experiments.run_files import metric_lines, write_run

RANGES = ("optimizer.learning_rate=1e-4:1e-1:log", "threads.intra_op=1,2,4")
SLOW_RUN = """
import json, pathlib, signal, sys, time
run, lines, results, stays = pathlib.Path(sys.argv[1]), *map(json.loads, sys.argv[2:5])
run.mkdir(parents=True, exist_ok=True)
def leave(*_):
    results["state"] = "interrupted"
    (run / "results.json").write_text(json.dumps(results))
    sys.exit(143)
signal.signal(signal.SIGTERM, leave)
(run / "recipe.json").write_text(json.dumps(json.loads(sys.argv[5])))
with (run / "metrics.jsonl").open("a") as file:
    for line in lines:
        file.write(line + "\\n")
        file.flush()
        if stays and '"evaluation"' in line:
            time.sleep(60)
(run / "results.json").write_text(json.dumps(results))
"""


def rate_of(assignments: Sequence[str]) -> float:
    return float(dict(each.split("=", 1) for each in assignments)["optimizer.learning_rate"])


def top1_of(assignments: Sequence[str]) -> float:
    """Best at a learning rate of 0.01."""
    return 90 - 20 * abs(math.log10(rate_of(assignments)) + 2)


class Case:
    """A search that can be called again."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.started: list[RunRequest] = []
        self.resumed: list[bool] = []
        self.special: dict[int, Callable[[RunRequest], int]] = {}
        self.said: list[str] = []

    def run(self, trials: int = 6, **changes: Any) -> Searched:
        self.started.clear()
        self.resumed.clear()
        self.said.clear()
        open_place = changes.pop("open_place", lambda: CalledPlace(self.train))
        command = changes.pop("command", lambda request, device: (request,))
        fields: dict[str, Any] = {
            "recipe": "alexnet",
            "ranges": RANGES,
            "common": (),
            "sampler": "tpe",
            "pruner": "none",
            "metric": "",
            "trials": trials,
            "directory": self.directory,
        }
        return search(
            SearchRequest(**{**fields, **changes}),
            open_place=open_place,
            command=command,
            resolve=resolve,
            say=self.said.append,
        )

    def train(self, request: RunRequest) -> int:
        self.started.append(request)
        self.resumed.append((request.directory / "recipe.json").is_file())
        act = self.special.pop(len(self.started), self.finish)
        return act(request)

    def finish(self, request: RunRequest, **changes: Any) -> int:
        metrics = {"top1": top1_of(request.assignments), "loss": 0.3}
        arguments = {"metrics": metrics, "assignments": request.assignments, **changes}
        write_run(request.directory, **arguments)
        return 0

    @property
    def drawn(self) -> list[tuple[str, ...]]:
        plan = json.loads((self.directory / "sweep.json").read_text())
        return [tuple(run["varied"]) for run in plan["runs"]]


@pytest.fixture
def case(tmp_path: Path) -> Case:
    return Case(tmp_path / "search")


@pytest.mark.parametrize("sampler", ["tpe", "random", "qmc"])
def test_same_search_draws_the_same_trials_even_in_two_calls(tmp_path: Path, sampler: str) -> None:
    whole, halves = Case(tmp_path / "whole"), Case(tmp_path / "halves")
    # Ten random trials come first, so the last ones show that TPE sees the same past.
    whole.run(14, sampler=sampler)
    halves.run(5, sampler=sampler)
    halves.run(14, sampler=sampler)
    assert whole.drawn == halves.drawn
    assert len(set(whole.drawn)) == 14
    assert len(halves.started) == 9


def test_first_trial_has_the_recipes_settings(case: Case) -> None:
    case.run(2)
    assert case.drawn[0] == ("optimizer.learning_rate=0.06", "threads.intra_op=2")
    rows = json.loads((case.directory / "table.json").read_text())["rows"]
    assert rows[0]["headline"]["relation"] == "baseline"


def test_best_settings_are_printed_as_a_command(case: Case) -> None:
    result = case.run(8, common=("precision.mode=force_fp16",))
    best = max(case.drawn, key=top1_of)
    assert result.best == best
    command = next(line for line in case.said if line.startswith("jumar train"))
    assert command == (
        f"jumar train alexnet --set precision.mode=force_fp16 --set {best[0]} --set {best[1]}"
    )
    assert any("8 trials: 8 finished, 0 stopped early, 0 failed" in line for line in case.said)
    assert (case.directory / "report.html").is_file()


def test_lower_score_is_better_if_the_metric_says_so(case: Case) -> None:
    result = case.run(8, metric="top1:min")
    assert result.best == min(case.drawn, key=top1_of)


def test_interrupted_trial_is_resumed_and_the_rest_unaffected(
    tmp_path: Path,
) -> None:
    whole, stopped = Case(tmp_path / "whole"), Case(tmp_path / "stopped")
    whole.run(6)

    def interrupt(request: RunRequest) -> int:
        stopped.finish(request, state="interrupted", metrics={})
        return 130

    stopped.special[3] = interrupt
    assert stopped.run(6).stopped_by == signal.SIGINT
    assert any("Stopped with 4 trials left" in line for line in stopped.said)
    assert stopped.run(6).stopped_by == 0
    assert stopped.resumed == [True, False, False, False]
    assert stopped.drawn == whole.drawn


def test_crash_is_counted_as_failed_and_a_divergence_as_bad(case: Case) -> None:
    def diverge(request: RunRequest) -> int:
        failure = {"step": 40, "objective": "classifier", "reason": "the loss is not finite"}
        case.finish(request, state="failed", failure=failure, metrics={})
        return 3

    case.special |= {2: lambda _: -signal.SIGKILL, 3: diverge}
    case.run(5)
    assert any(
        "failed and is not repeated: its process was ended by SIGKILL" in x for x in case.said
    )
    assert any("the loss is not finite (step 40" in line for line in case.said)
    assert any("5 trials: 3 finished, 1 stopped early, 1 failed" in line for line in case.said)
    case.run(5)
    assert case.started == []


def test_tried_settings_are_not_run_again(case: Case) -> None:
    def fixed(request: RunRequest) -> int:
        write_run(request.directory, assignments=request.assignments)
        return 0

    case.special = dict.fromkeys(range(1, 20), fixed)
    case.run(8, ranges=("threads.intra_op=1,2",))
    assert len(case.started) == 2
    assert sum("not repeated" in line for line in case.said) == 6


def test_hopeless_run_stops_at_a_checkpoint_and_the_table_says_why(case: Case) -> None:
    def command(request: RunRequest, device: str) -> Sequence[str]:
        number = int(request.directory.name[-4:])
        good = number < 4
        results = json.loads((template / "results.json").read_text())
        lines = metric_lines(rate=2.0 + number if good else 0.01)
        recipe = (template / "recipe.json").read_text()
        values = map(json.dumps, (lines, results, not good))
        return [sys.executable, "-c", SLOW_RUN, str(request.directory), *values, recipe]

    template = write_run(case.directory.with_name("template"))
    place = ThisMachine(say=case.said.append)
    case.run(5, pruner="median", open_place=lambda: place, command=command)
    reason = "pruned at step 100: top1 12.9 %, median of the others 92.77"
    assert f"trial-0004: {reason}" in case.said
    row = json.loads((case.directory / "table.json").read_text())["rows"][4]
    assert row["notes"] == [f"not available: {reason}"]
    assert reason in (case.directory / "report.html").read_text()
    results = json.loads((case.directory / "trial-0004" / "results.json").read_text())
    assert results["state"] == "interrupted"
    assert place.stopped_by == 0


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"sampler": "tpee"}, "unknown sampler 'tpee'"),
        ({"pruner": "meridian"}, "unknown pruner"),
        ({"trials": 0}, "cannot be 0"),
        ({"metric": "top1:up"}, "is not a score"),
        ({"ranges": ("optimizer.learning_rate=0:1:log",)}, "cannot be logarithmic"),
        ({"common": ("threads.intra_op=1",)}, "both searched and set"),
    ],
)
def test_mistakes_are_found_before_anything_is_written(
    case: Case, changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(UserError, match=message):
        case.run(**changes)
    assert not case.directory.exists()


def test_score_missing_from_runs_ends_the_search(case: Case) -> None:
    with pytest.raises(UserError, match="unknown score 'top2'"):
        case.run(metric="top2:max")
    with pytest.raises(UserError, match="it contains another search: metric was top2:max"):
        case.run()


def test_search_and_a_sweep_do_not_share_a_directory(case: Case) -> None:
    def sweep() -> None:
        run_sweep(
            "alexnet",
            vary=("threads.intra_op=1,2",),
            common_assignments=(),
            baseline=(),
            directory=case.directory,
            repeats=1,
            open_place=lambda: CalledPlace(case.train),
            command=lambda request, device: (request,),
            resolve=resolve,
            say=case.said.append,
        )

    case.run(2)
    with pytest.raises(UserError, match="contains a search of hyperparameters"):
        sweep()
    with pytest.raises(UserError, match=r"--range was .* and is now"):
        case.run(ranges=RANGES[:1])
    case.directory = case.directory.with_name("swept")
    case.special = {number: lambda r: write_run(r.directory) and 0 for number in range(9)}
    sweep()
    with pytest.raises(UserError, match="contains a sweep of a grid"):
        case.run()


def test_damaged_journal_is_named(case: Case) -> None:
    case.run(2)
    journal = case.directory / "study.journal"
    journal.write_text('{"op_code": 0}\nnonsense\n{"op_code": 9}\n')
    with pytest.raises(UserError, match="is damaged") as error:
        case.run(3)
    assert error.value.where == str(journal)
