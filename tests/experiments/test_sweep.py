import json
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from jumar.experiments.sweep import RunRequest, Sweep, run_sweep
from jumar.ground.errors import UserError, unknown_name
from tests.experiments.placing.called import CalledPlace
from tests.experiments.run_files import SETTINGS, resolved, write_run

MODES = "precision.mode=must_keep_origin_dtype,allow_mix_precision,force_fp16"
FAILURE = {"step": 40, "objective": "classifier", "reason": "the loss is not finite"}


class Trainer:
    """Stands where the CLI starts `jumar train`: writes run directories as a run would."""

    def __init__(self) -> None:
        self.started: list[RunRequest] = []
        self.resumed: list[bool] = []
        self.special: dict[str, Callable[[RunRequest], int]] = {}

    def __call__(self, request: RunRequest) -> int:
        self.started.append(request)
        self.resumed.append((request.directory / "recipe.json").is_file())
        for part, act in self.special.items():
            if part in str(request.directory):
                return act(request)
        return self.finish(request)

    def finish(self, request: RunRequest, **changes: Any) -> int:
        write_run(request.directory, assignments=request.assignments, **changes)
        return 0

    @property
    def names(self) -> list[str]:
        return [request.directory.name.partition("=")[2] for request in self.started]


class Case:
    """A sweep that can be called again."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.trainer = Trainer()
        self.said: list[str] = []
        self.settings = SETTINGS

    def run(self, vary: Sequence[str] = (MODES,), recipe: str = "alexnet", **changes: Any) -> Sweep:
        self.trainer.started.clear()
        self.trainer.resumed.clear()
        self.said.clear()
        arguments: dict[str, Any] = {
            "common_assignments": (),
            "baseline": (),
            "directory": self.directory,
            "repeats": 1,
            "open_place": lambda: CalledPlace(self.trainer),
            "command": lambda request, device: (request,),
            "resolve": self.resolve,
            "say": self.said.append,
        }
        return run_sweep(recipe, vary=vary, **{**arguments, **changes})

    def resolve(self, assignments: Sequence[str]) -> dict[str, Any]:
        try:
            return resolved(assignments, self.settings)
        except KeyError as error:
            raise unknown_name("field", str(error), self.settings) from None

    def table(self) -> dict[str, Any]:
        return json.loads((self.directory / "table.json").read_text())


@pytest.fixture
def case(tmp_path: Path) -> Case:
    return Case(tmp_path / "sweep")


def test_every_combination_runs_once_in_order_and_the_files_are_saved(case: Case) -> None:
    result = case.run(common_assignments=["optimizer.momentum=0.8"])
    assert case.trainer.names == ["must_keep_origin_dtype", "allow_mix_precision", "force_fp16"]
    assert case.trainer.started[1].assignments == (
        "optimizer.momentum=0.8",
        "precision.mode=allow_mix_precision",
    )
    assert result.stopped_by == 0
    assert [path.name for path in result.files] == [
        "table.md",
        "table.csv",
        "table.json",
        "report.html",
    ]
    assert all(path.is_file() for path in result.files)
    assert [row.num_finished for row in result.table.rows] == [1, 1, 1]


def test_table_and_paths_are_printed_at_the_end(case: Case) -> None:
    case.run()
    message = "\n".join(case.said)
    assert "= Baseline" in message
    assert str(case.directory / "report.html") in message
    assert case.said[0] == "Run 1 of 3: precision.mode=must_keep_origin_dtype"
    assert re.search(r"Run 3 of 3: .* so far, about .* to go", message)


def test_finished_runs_are_not_run_again(case: Case) -> None:
    case.run()
    case.run()
    assert case.trainer.names == []
    assert sum("is finished, skipping it" in line for line in case.said) == 3
    case.run([MODES + ",allow_fp32_to_fp16"])
    assert case.trainer.names == ["allow_fp32_to_fp16"]


def test_crash_of_one_run_does_not_end_the_sweep(case: Case) -> None:
    case.trainer.special["allow_mix"] = lambda _: -signal.SIGKILL
    result = case.run()
    assert case.trainer.names[-1] == "force_fp16"
    row = result.table.rows[1]
    assert row.notes[0].startswith("not available: its process was ended by SIGKILL")
    assert any("allow_mix_precision is not available" in line for line in case.said)


def test_crashed_run_is_restarted_as_a_resumed_one(case: Case) -> None:
    def crash(request: RunRequest) -> int:
        write_run(request.directory, assignments=request.assignments)
        (request.directory / "results.json").unlink()
        return 1

    case.trainer.special["allow_mix"] = crash
    case.run()
    case.trainer.special.clear()
    result = case.run()
    assert case.trainer.names == ["allow_mix_precision"]
    assert case.trainer.resumed[0]
    assert result.table.rows[1].num_finished == 1


def test_diverged_run_is_a_result_and_not_run_again(case: Case) -> None:
    def diverge(request: RunRequest) -> int:
        case.trainer.finish(request, state="failed", failure=FAILURE, metrics={})
        return 1

    case.trainer.special["force_fp16"] = diverge
    result = case.run()
    reason = "the loss is not finite (step 40, objective classifier)"
    assert result.table.rows[2].notes == (f"not available: {reason}",)
    case.run()
    assert case.trainer.names == []
    assert any("delete" in line and "to try again" in line for line in case.said)
    assert case.table()["rows"][2]["loss"]["reason"] == reason


@pytest.mark.parametrize("code", [130, -signal.SIGINT, 143, -signal.SIGTERM])
def test_ctrl_c_stops_the_sweep_and_says_how_to_resume(case: Case, code: int) -> None:
    def interrupt(request: RunRequest) -> int:
        case.trainer.finish(request, state="interrupted", steps=200, metrics={})
        return code

    case.trainer.special["allow_mix"] = interrupt
    result = case.run()
    assert case.trainer.names == ["must_keep_origin_dtype", "allow_mix_precision"]
    assert result.stopped_by == (code - 128 if code > 0 else -code)
    assert any("2 runs are left. The same command continues" in line for line in case.said)
    assert [row["notes"] for row in case.table()["rows"]] == [
        [],
        ["not available: interrupted at step 200"],
        ["not available: not run yet"],
    ]
    case.trainer.special.clear()
    result = case.run()
    assert case.trainer.names == ["allow_mix_precision", "force_fp16"]
    assert case.trainer.resumed == [True, False]
    assert result.stopped_by == 0


def test_run_that_finishes_despite_a_stop_request_counts(case: Case) -> None:
    def finish(request: RunRequest) -> int:
        case.trainer.finish(request)
        return 130

    case.trainer.special["allow_mix"] = finish
    assert case.run().stopped_by == signal.SIGINT
    assert any("1 run is left" in line for line in case.said)
    case.trainer.special["force_fp16"] = finish
    assert case.run().stopped_by == signal.SIGINT
    assert any("the last run and is finished" in line for line in case.said)


def test_ctrl_c_received_by_the_sweep_itself_stops_it(case: Case) -> None:
    def interrupt(request: RunRequest) -> int:
        raise KeyboardInterrupt

    case.trainer.special["must_keep"] = interrupt
    result = case.run()
    assert result.stopped_by == signal.SIGINT
    assert len(case.trainer.started) == 1


def test_run_with_a_changed_recipe_is_refused_naming_the_changes(case: Case) -> None:
    case.run()
    before = (case.directory / "table.json").read_bytes()
    with pytest.raises(UserError, match=r"optimizer.momentum was 0.9 and is now 0.8") as caught:
        case.run(common_assignments=["optimizer.momentum=0.8"])
    assert "another directory" in caught.value.todo
    assert case.trainer.names == []
    assert (case.directory / "table.json").read_bytes() == before


def test_changed_recipe_default_is_refused(case: Case) -> None:
    case.run()
    case.settings = {**SETTINGS, "threads": {"intra_op": 1, "inter_op": 1}, "new": 3}
    with pytest.raises(UserError, match=r"new was absent and is now 3; threads\.intra_op was 2"):
        case.run()


def test_setting_tuples_equal_lists_in_the_file(case: Case) -> None:
    case.run()
    case.settings = {**SETTINGS, "optimizer": {**SETTINGS["optimizer"], "milestones": (30, 60)}}
    result = run_sweep(
        "alexnet",
        vary=[MODES],
        common_assignments=[],
        baseline=[],
        directory=case.directory,
        repeats=1,
        open_place=lambda: CalledPlace(case.trainer),
        command=lambda request, device: (request,),
        resolve=lambda assignments: {
            **case.resolve(assignments),
            "optimizer": case.settings["optimizer"],
        },
        say=case.said.append,
    )
    assert result.table.rows[0].num_finished == 1


def test_sweep_of_another_recipe_and_single_run_are_refused(case: Case) -> None:
    case.run()
    with pytest.raises(UserError, match="a sweep of the recipe 'alexnet', not of 'resnext50'"):
        case.run(recipe="resnext50")
    shutil.rmtree(case.directory)
    write_run(case.directory)
    with pytest.raises(UserError, match="the directory of a single run"):
        case.run()
    shutil.rmtree(case.directory)
    case.directory.write_text("a file")
    with pytest.raises(UserError, match="is not a folder"):
        case.run()


@pytest.mark.parametrize(
    ("vary", "changes"),
    [
        (["precision.mod=a,b"], {}),
        ([MODES], {"common_assignments": ["optimiser.momentum=0.8"]}),
        ([MODES], {"baseline": ["precision.mode=x"]}),
        ([MODES], {"repeats": 0}),
    ],
)
def test_mistake_is_found_before_anything_runs_or_is_written(
    case: Case, vary: list[str], changes: dict[str, Any]
) -> None:
    with pytest.raises(UserError):
        case.run(vary, **changes)
    assert case.trainer.started == []
    assert not case.directory.exists()


def test_repeats_run_with_successive_seeds_and_give_the_tolerance(case: Case) -> None:
    case.run()
    result = case.run(repeats=3)
    assert [request.assignments[-1] for request in case.trainer.started] == [
        *["seed=1"] * 3,
        *["seed=2"] * 3,
    ]
    assert [row.num_finished for row in result.table.rows] == [3, 3, 3]
    assert "n = 3 seeds" in result.table.explanations[0]


@pytest.mark.parametrize(
    ("vary", "changes", "lost"),
    [
        ("precision.mode=must_keep_origin_dtype,allow_mix_precision", {}, "force_fp16"),
        ("optimizer.learning_rate=0.1,0.2", {}, "must_keep.*; .*allow_mix.*; .*force_fp16"),
        (MODES, {"repeats": 1}, "seed=1"),
    ],
)
def test_sweep_that_would_drop_another_sweeps_runs_from_its_table_is_refused(
    case: Case, vary: str, changes: dict[str, Any], lost: str
) -> None:
    case.run(repeats=2)
    before = {path.name: path.read_bytes() for path in case.directory.glob("*.*") if path.is_file()}
    with pytest.raises(UserError, match=f"would be dropped from the table.*{lost}") as caught:
        case.run([vary], **{"repeats": 2, **changes})
    assert "another directory" in caught.value.todo
    assert case.trainer.names == []
    after = {path.name: path.read_bytes() for path in case.directory.glob("*.*") if path.is_file()}
    assert after == before


def test_value_that_has_not_run_may_be_corrected(case: Case) -> None:
    case.trainer.special["momentum=5"] = lambda _: 2
    case.run(["optimizer.momentum=0.5,5.0"])
    result = case.run(["optimizer.momentum=0.5,0.8"])
    assert [row.num_finished for row in result.table.rows] == [1, 1]


@pytest.mark.parametrize("name", ["table.md", "table.csv", "table.json", "report.html"])
def test_foreign_files_are_not_overwritten(case: Case, name: str) -> None:
    case.directory.mkdir()
    (case.directory / name).write_text("mine")
    with pytest.raises(UserError, match=f"it contains '{name}'"):
        case.run()
    assert [path.read_text() for path in case.directory.iterdir()] == ["mine"]


def test_sweep_whose_plan_was_deleted_resumes(case: Case) -> None:
    case.run()
    (case.directory / "sweep.json").unlink()
    assert case.run().table.rows[0].num_finished == 1
    assert case.trainer.names == []


@pytest.mark.parametrize(
    ("vary", "first", "second"),
    [
        (
            "precision.mode=allow_mix_precision,force_fp16,mixed_float16",
            "precision.mode=allow_mix_precision",
            "precision.mode=mixed_float16",
        ),
        ("precision.mode=fp16,force_fp16", "precision.mode=fp16", "precision.mode=force_fp16"),
        ("optimizer.momentum=0.1,1e-1", "optimizer.momentum=0.1", "optimizer.momentum=1e-1"),
        ("threads.intra_op=1,2,01", "threads.intra_op=1", "threads.intra_op=01"),
    ],
)
def test_one_run_under_two_names_is_refused_and_both_are_named(
    case: Case, vary: str, first: str, second: str
) -> None:
    with pytest.raises(UserError, match=f"'{first}' and '{second}' are the same settings"):
        case.run([vary])
    assert not case.directory.exists()


def test_repeats_of_a_recipe_without_a_seed_are_refused(case: Case) -> None:
    case.settings = {name: value for name, value in SETTINGS.items() if name != "seed"}
    case.trainer.finish = lambda request, **changes: 0  # type: ignore[method-assign]
    with pytest.raises(UserError, match="no field 'seed'"):
        case.run(repeats=2)


def test_single_combination_is_a_sweep_of_one_run(case: Case) -> None:
    result = case.run([])
    assert [request.directory.name for request in case.trainer.started] == ["run"]
    assert [row.loss.relation for row in result.table.rows] == ["baseline"]


def test_two_sweeps_cannot_share_a_directory(case: Case) -> None:
    def start_another(request: RunRequest) -> int:
        with pytest.raises(UserError, match="another process"):
            Case(case.directory).run()
        return case.trainer.finish(request)

    case.trainer.special["must_keep"] = start_another
    assert case.run().table.rows[0].num_finished == 1


def test_sweep_killed_in_a_run_resumes_there(case: Case) -> None:
    """A separate process is killed without a chance to clean up, as by `kill -9`."""
    code = f"""
import os, sys
from pathlib import Path
from tests.experiments.test_sweep import Case, MODES
case = Case(Path({str(case.directory)!r}))
case.trainer.special["allow_mix"] = lambda request: os.kill(os.getpid(), 9)
case.run()
"""
    checkout = Path(__file__).resolve().parents[2]
    ended = subprocess.run([sys.executable, "-c", code], cwd=checkout, check=False)
    assert ended.returncode == -signal.SIGKILL
    result = case.run()
    assert case.trainer.names == ["allow_mix_precision", "force_fp16"]
    assert all(row.num_finished == 1 for row in result.table.rows)
