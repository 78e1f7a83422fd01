import json
import signal
from pathlib import Path

import pytest

from jumar.experiments.sweep_plan import (
    SweepPlan,
    combinations_of,
    exit_text,
    plan_sweep,
    read_plan,
    save_plan,
    stopping_signal,
)
from jumar.ground.errors import UserError
from tests.experiments.run_files import write_run

VARY = ("precision.mode=must_keep_origin_dtype,force_fp16",)


def planned(**changes: object) -> SweepPlan:
    arguments = {
        "vary": VARY,
        "common": ("training.duration=2ep",),
        "baseline": (),
        "repeats": 1,
        "first_seed": 7,
    }
    return plan_sweep("alexnet", **{**arguments, **changes})  # type: ignore[arg-type]


def test_run_has_the_common_assignments_then_its_own_then_its_seed() -> None:
    runs = planned(repeats=3).runs
    assert [run.assignments[1:] for run in runs] == [
        ("precision.mode=must_keep_origin_dtype",),
        ("precision.mode=force_fp16",),
        ("precision.mode=must_keep_origin_dtype", "seed=8"),
        ("precision.mode=force_fp16", "seed=8"),
        ("precision.mode=must_keep_origin_dtype", "seed=9"),
        ("precision.mode=force_fp16", "seed=9"),
    ]
    assert all(run.assignments[0] == "training.duration=2ep" for run in runs)


def test_repeats_requested_later_reuse_existing_runs() -> None:
    once, thrice = planned().runs, planned(repeats=3).runs
    assert thrice[: len(once)] == once
    assert len({run.name for run in thrice}) == len(thrice)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"repeats": 0}, "cannot be 0"),
        ({"common": ("precision.mode=force_fp16",)}, "both varied and set"),
        ({"vary": ("seed=1,2",), "repeats": 2}, "both varied and repeated"),
        ({"baseline": ("precision.mode=allow_mix_precision",)}, "no run of the sweep"),
    ],
)
def test_contradiction_is_refused(changes: dict[str, object], said: str) -> None:
    with pytest.raises(UserError, match=said):
        planned(**changes)


def test_plan_round_trips_through_its_file(tmp_path: Path) -> None:
    plan = planned(repeats=2).with_exit_code("precision.mode=force_fp16", -9)
    save_plan(plan, tmp_path)
    assert read_plan(tmp_path) == plan
    assert [path.name for path in tmp_path.iterdir()] == ["sweep.json"]


@pytest.mark.parametrize(
    "content",
    [
        "{",
        "[]",
        "{}",
        json.dumps({"recipe": "a", "vary": 3, "common": [], "baseline": [], "repeats": 1}),
        json.dumps(
            {
                "recipe": "a",
                "vary": [],
                "common": [],
                "baseline": [],
                "repeats": 1,
                "runs": [{"name": "../../etc", "varied": [], "assignments": []}],
            }
        ),
    ],
)
def test_damaged_file_is_an_error_that_names_it(tmp_path: Path, content: str) -> None:
    (tmp_path / "sweep.json").write_text(content)
    with pytest.raises(UserError, match=r"sweep\.json"):
        read_plan(tmp_path)


def test_directory_without_a_sweep_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="not a sweep directory"):
        read_plan(tmp_path)


def test_seeds_of_a_combination_are_adjacent(tmp_path: Path) -> None:
    plan = planned(repeats=2)
    write_run(tmp_path / plan.runs[0].name)
    first, second = combinations_of(plan.with_exit_code(plan.runs[1].name, -9), tmp_path)
    assert first.assignments == ("precision.mode=must_keep_origin_dtype",)
    assert [run.state for run in first.runs] == ["finished", "not run"]
    assert second.ends == ("its process was ended by SIGKILL, often for lack of memory", "")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_stop_request_is_distinguished_from_a_crash(number: int) -> None:
    assert stopping_signal(128 + number) == stopping_signal(-number) == number
    assert exit_text(128 + number) == ""
    assert stopping_signal(-signal.SIGKILL) == stopping_signal(1) == stopping_signal(0) == 0


@pytest.mark.parametrize(
    ("code", "said"),
    [
        (None, ""),
        (0, "exit code 0 and no results"),
        (1, "exit code 1"),
        (2, "rejected"),
        (-11, "SIGSEGV"),
        (139, "SIGSEGV"),
        (255, "exit code 255"),
    ],
)
def test_exit_of_a_process_is_described_in_words(code: int | None, said: str) -> None:
    assert said in exit_text(code)
    assert bool(exit_text(code)) == (code is not None)
