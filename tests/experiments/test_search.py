"""A search tries sets of op types by training runs; here a program writes what one leaves."""

import json
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from jumar.experiments.placing.chosen import open_place
from jumar.experiments.placing.contract import ExperimentStopped
from jumar.experiments.search import FILE, Found, Search, SearchRequest
from jumar.experiments.search_goal import parse_goal
from jumar.ground.errors import UserError
from jumar.precision.searching.attribution import OpEffect
from jumar.precision.searching.candidates import Candidate
from jumar.precision.searching.effects import Effect
from jumar.training.run_directory import read_json
from tests.experiments.run_files import results

NAMES = ("Conv2D", "SoftmaxV2", "BatchNorm", "Add", "MatMul", "Relu")
PROGRAM = """
import json, pathlib, sys
run, log, needed, plan = pathlib.Path(sys.argv[1]), *sys.argv[2:]
recipe = json.loads((run / "recipe.json").read_text())["settings"]
with open(log, "a") as file:
    file.write(run.name + "\\n")
plan = json.loads(plan)
if run.name in plan.get("codes", {}):
    print("it broke")
    sys.exit(plan["codes"][run.name])
results = json.loads(plan["results"])
top1 = 90 + recipe["seed"] * plan.get("spread", 0.1)
if recipe["op_list"]:
    lists = json.loads(pathlib.Path(recipe["op_list"]).read_text())
    kept = lists.get("black-list", {"to-add": []})["to-add"]
    missing = set(needed.split(",")) - {""} - set(kept)
    if plan.get("layer") in recipe["layers"]:
        missing -= {plan["layered_type"]}
    if recipe["seed"] > 1:
        missing |= set(plan.get("later", [])) - set(kept)
    top1 -= plan.get("harm", 5) * len(missing)
    top1 += plan.get("luck", [0, 0, 0])[recipe["seed"] - 1]
    if missing and plan.get("diverges"):
        results |= {"state": "failed", "failure": {"reason": "the loss is not finite", "step": 3}}
results["metrics"]["top1"] = top1
(run / "results.json").write_text(json.dumps(results))
"""


class Laboratory:
    """A folder to search in, with a run that needs some op types."""

    def __init__(self, folder: Path, needed: Collection[str], **plan: Any) -> None:
        self.folder, self.needed, self.plan = folder, needed, plan
        self.lines: list[str] = []
        self.num_measured = 0
        self.log = folder / "trained.txt"

    def measure(self) -> Sequence[Effect]:
        self.num_measured += 1
        sure = self.plan.get("sure", ())
        return [
            Effect(
                candidate=Candidate(name=name, types=(name,), ops=(name.lower(),)),
                calls=1,
                error=1e-3,
                loss_change=1e-4,
                largest=1.0,
                overflows=0,
                vanishing=0.0,
                gradient_error=float("inf") if name in sure else 0.01,
                layers=tuple(map(_layer, self.plan.get("layers", {}).get(name, ()))),
            )
            for name in NAMES
        ]

    def recorded(
        self, op_list: Path | None, seed: int, layers: Sequence[str] = ()
    ) -> Mapping[str, Any]:
        settings = {"op_list": op_list and str(op_list), "seed": seed, "layers": list(layers)}
        return {"recipe": "small", "imports": [], "settings": settings}

    def command(self, run: Path, device: str) -> Sequence[str]:
        plan = json.dumps({"results": json.dumps(results()), **self.plan})
        needed = ",".join(self.needed)
        return [sys.executable, "-c", PROGRAM, str(run), str(self.log), needed, plan]

    def search(
        self,
        *,
        most: int = 20,
        jobs: int = 1,
        recipe: str = "a",
        refines: bool = False,
        to: str = "ops_info.json",
    ) -> Found:
        request = SearchRequest(
            goal=parse_goal("top1=0.3"),
            to=self.folder / to,
            directory=self.folder / "runs",
            length="9it",
            first_seed=1,
            num_seeds=3,
            max_trainings=most,
            refines=refines,
            identity={"recipe": recipe},
        )
        return Search(
            request,
            measure=self.measure,
            recorded=self.recorded,
            command=self.command,
            open_place=lambda: open_place("this", jobs=jobs, device="cpu", say=self.lines.append),
            say=self.lines.append,
        ).run()

    @property
    def trained(self) -> list[str]:
        return self.log.read_text().split()


def _layer(name: str) -> OpEffect:
    return OpEffect(
        op="conv2d",
        layer=name,
        calls=1,
        error=0.0,
        loss_change=0.0,
        largest=1.0,
        overflows=0,
        vanishing=0,
        elements=1,
    )


@pytest.fixture
def laboratory(tmp_path: Path) -> Callable[..., Laboratory]:
    return lambda *needed, **plan: Laboratory(tmp_path, needed, **plan)


def test_op_types_that_training_needs_are_kept_and_confirmed(
    laboratory: Callable[..., Laboratory],
) -> None:
    lab = laboratory("SoftmaxV2", "Add")
    result = lab.search()
    assert (result.kept, result.is_minimal, result.is_confirmed) == (
        ("SoftmaxV2", "Add"),
        True,
        True,
    )
    assert result.reference == [90.1, 90.2, 90.3]
    assert result.worse == pytest.approx(0.0)
    assert result.num_trainings == len(lab.trained) == len(set(lab.trained))
    lists = json.loads((lab.folder / "ops_info.json").read_text())
    assert lists == {
        "black-list": {"to-add": ["SoftmaxV2", "Add"]},
        "white-list": {"to-add": ["Conv2D", "BatchNorm", "MatMul", "Relu"]},
    }


def test_nothing_is_kept_if_nothing_is_needed(laboratory: Callable[..., Laboratory]) -> None:
    result = laboratory().search()
    assert (result.kept, result.is_confirmed, result.num_trainings) == ((), True, 6)


def test_out_of_range_op_types_are_kept_without_a_trial(
    laboratory: Callable[..., Laboratory],
) -> None:
    lab = laboratory("Conv2D", sure=["Conv2D"])
    result = lab.search()
    assert (result.kept, result.num_trainings) == (("Conv2D",), 6)
    assert result.worse_without("Conv2D") is None


def test_diverging_training_fails_its_set(laboratory: Callable[..., Laboratory]) -> None:
    lab = laboratory("Conv2D", diverges=True)
    result = lab.search()
    assert result.kept == ("Conv2D",)
    assert result.worse_without("Conv2D") == float("inf")
    assert any("the loss is not finite" in line for line in lab.lines)


def test_gain_of_a_kept_type_is_the_loss_without_it(
    laboratory: Callable[..., Laboratory],
) -> None:
    result = laboratory("Conv2D").search()
    assert result.worse_without("Conv2D") == pytest.approx(5.0)


def test_other_seeds_may_require_one_more_type(laboratory: Callable[..., Laboratory]) -> None:
    lab = laboratory("SoftmaxV2", later=["Conv2D"])
    result = lab.search()
    assert (result.kept, result.is_confirmed) == (("Conv2D", "SoftmaxV2"), True)
    assert not result.is_minimal
    assert any("also keeping Conv2D in float32" in line for line in lab.lines)


@pytest.mark.parametrize("most", range(7, 15))
def test_number_of_runs_is_limited(laboratory: Callable[..., Laboratory], most: int) -> None:
    result = laboratory("Relu", "MatMul").search(most=most)
    assert result.num_trainings <= most
    assert {"Relu", "MatMul"} <= set(result.kept)
    assert result.is_confirmed, "runs for the other seeds are kept back"


def test_second_search_trains_nothing(laboratory: Callable[..., Laboratory]) -> None:
    lab = laboratory("SoftmaxV2")
    first, trained = lab.search(), lab.trained
    assert lab.search() == first
    assert lab.trained == trained
    assert lab.num_measured == 1


def test_stopped_search_resumes(laboratory: Callable[..., Laboratory]) -> None:
    lab = laboratory("SoftmaxV2", codes={"float32-seed-2": 143})
    with pytest.raises(ExperimentStopped) as stopped:
        lab.search()
    assert stopped.value.signal == 15
    lab.plan["codes"] = {}
    assert lab.search().kept == ("SoftmaxV2",)
    assert lab.trained.count("float32-seed-1") == 1


def test_parallel_runs_give_the_same_result(laboratory: Callable[..., Laboratory]) -> None:
    lab = laboratory("SoftmaxV2", "Relu")
    result = lab.search(jobs=3)
    assert (result.kept, result.is_confirmed) == (("SoftmaxV2", "Relu"), True)


def test_failing_run_ends_the_search_with_its_message(
    laboratory: Callable[..., Laboratory],
) -> None:
    with pytest.raises(UserError, match="a run was aborted: ") as error:
        laboratory(codes={"float32-seed-1": 2}).search()
    assert "it broke" in error.value.todo
    assert error.value.where.endswith("float32-seed-1")


def test_folder_of_another_search_is_refused(laboratory: Callable[..., Laboratory]) -> None:
    lab = laboratory()
    lab.search()
    with pytest.raises(UserError, match="another recipe"):
        lab.search(recipe="b")


def test_unrelated_folder_is_refused_and_left_alone(
    laboratory: Callable[..., Laboratory],
) -> None:
    lab = laboratory()
    (lab.folder / "runs").mkdir()
    (lab.folder / "runs" / "mine.txt").write_text("mine")
    with pytest.raises(UserError, match="not from a search"):
        lab.search()
    assert [path.name for path in (lab.folder / "runs").iterdir()] == ["mine.txt"]


def test_search_killed_before_its_ranking_restarts(
    laboratory: Callable[..., Laboratory],
) -> None:
    lab = laboratory()
    (lab.folder / "runs").mkdir()
    (lab.folder / "runs" / ".lock").touch()
    assert lab.search().kept == ()


@pytest.mark.parametrize("to", ["file/ops_info.json", "folder"])
def test_unwritable_list_path_is_refused_before_any_training(
    laboratory: Callable[..., Laboratory], to: str
) -> None:
    lab = laboratory()
    (lab.folder / "file").touch()
    (lab.folder / "folder").mkdir()
    with pytest.raises(UserError):
        lab.search(to=to)
    assert not lab.log.exists()
    assert lab.num_measured == 0


def test_run_with_other_settings_is_refused(laboratory: Callable[..., Laboratory]) -> None:
    lab = laboratory()
    lab.search()
    recipe = lab.folder / "runs" / "float32-seed-1" / "recipe.json"
    recipe.write_text(recipe.read_text().replace('"small"', '"large"'))
    with pytest.raises(UserError, match="other settings"):
        lab.search()


@pytest.mark.parametrize("jobs", [0, -1])
def test_zero_parallel_runs_are_refused(laboratory: Callable[..., Laboratory], jobs: int) -> None:
    with pytest.raises(UserError, match=f"cannot be {jobs}") as error:
        laboratory().search(jobs=jobs)
    assert error.value.where == "--jobs"


def test_search_reports_its_cost_before_training(
    laboratory: Callable[..., Laboratory],
) -> None:
    lab = laboratory()
    lab.search()
    assert lab.lines[0].startswith("ranking")
    assert "at most 20 runs of 9it" in lab.lines[1]


def test_too_few_runs_are_refused_before_training(
    laboratory: Callable[..., Laboratory],
) -> None:
    lab = laboratory()
    with pytest.raises(UserError, match=r"too few runs \(6\) for 3 seeds") as error:
        lab.search(most=6)
    assert "Allow 7 or more" in error.value.todo
    assert not lab.log.exists()


def test_ranking_with_infinities_is_saved(laboratory: Callable[..., Laboratory]) -> None:
    lab = laboratory("Conv2D", sure=["Conv2D"])
    first = lab.search()
    assert read_json(lab.folder / "runs" / FILE)["effects"][0]["gradient_error"] is None
    assert lab.search().effects == first.effects


def test_layer_replaces_an_op_type_if_it_suffices(
    laboratory: Callable[..., Laboratory],
) -> None:
    layers = [f"block.{number}" for number in range(6)]
    lab = laboratory(
        *("Conv2D", "SoftmaxV2"),
        layers={"Conv2D": layers, "SoftmaxV2": ["", "head"]},
        layered_type="Conv2D",
        layer="block.3",
    )
    result = lab.search(most=30, refines=True)
    assert result.kept == ("Conv2D", "SoftmaxV2")
    assert result.layered == (("SoftmaxV2",), ("block.3",))
    lists = json.loads((lab.folder / "ops_info-layers.json").read_text())
    assert lists["black-list"] == {"to-add": ["SoftmaxV2"]}
    assert result.worse_without("Conv2D") == pytest.approx(5.0), "layers have no part in that"
    assert lab.search(most=30).layered is None


def test_no_layers_are_named_if_all_are_needed_or_the_limit_is_reached(
    laboratory: Callable[..., Laboratory],
) -> None:
    layers = {"Conv2D": ["one", "two", "three"]}
    lab = laboratory("Conv2D", layers=layers)
    assert lab.search(most=30, refines=True).layered is None
    assert lab.search(most=8, refines=True).layered is None
    assert not (lab.folder / "ops_info-layers.json").exists()


def test_small_harm_with_every_seed_is_not_chance(
    laboratory: Callable[..., Laboratory],
) -> None:
    """The seeds of float32 differ by 2, and the harm of 1 is the same with each of them."""
    lab = laboratory("Conv2D", harm=1, spread=2)
    result = lab.search()
    assert result.kept == ("Conv2D",)
    assert any("may be chance" in line for line in lab.lines)


def test_harm_that_other_seeds_do_not_confirm_is_chance(
    laboratory: Callable[..., Laboratory],
) -> None:
    lab = laboratory("Conv2D", harm=1, spread=2, luck=[0, 2, 2.5])
    result = lab.search()
    assert (result.kept, result.is_confirmed, result.num_trainings) == ((), True, 6)
