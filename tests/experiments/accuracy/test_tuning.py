"""Which settings a tuning trains, from what the runs before them left."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from jumar.experiments.accuracy.target import Target
from jumar.experiments.accuracy.tuning import Tuned, TuningRequest, tune_accuracy
from jumar.experiments.placing.contract import ExperimentStopped
from jumar.experiments.sweep_plan import plan_sweep, save_plan
from jumar.ground.errors import UserError
from tests.experiments.run_files import precision, results, write_run

ORIGIN, MIXED, CUBE, FORCED = (
    "must_keep_origin_dtype",
    "allow_mix_precision",
    "allow_fp32_to_fp16",
    "force_fp16",
)
NUMBERS = {ORIGIN: (96.0, 200), MIXED: (96.0, 50), CUBE: (96.0, 170), FORCED: (93.0, 50)}


class Bench:
    """Leaves runs with given accuracies and step times, as a sweep would."""

    def __init__(self, folder: Path, numbers: dict[str, tuple[float, float]]) -> None:
        self.folder, self.numbers = folder, numbers
        self.trained: list[tuple[str, tuple[str, ...], tuple[str, ...]]] = []
        self.searched: list[tuple[str, str]] = []
        self.signal = 0
        self.note = ""
        self.op_list: Path | None = folder / "ops_info.json"
        self.said: list[str] = []

    def train(self, place: Path, vary: Sequence[str], common: Sequence[str]) -> int:
        self.trained.append((place.name, tuple(vary), tuple(common)))
        if self.signal:
            return self.signal
        plan = plan_sweep("a", vary=vary, common=common, baseline=(), repeats=3, first_seed=0)
        place.mkdir(parents=True, exist_ok=True)
        save_plan(plan, place)
        for number, run in enumerate(plan.runs):
            values = dict(each.split("=", 1) for each in run.assignments)
            name = values["precision.mode"]
            name += " + list" if "precision.modify_mixlist" in values else ""
            name += " + scale" if "precision.loss_scale" in values else ""
            top1, step_ms = self.numbers[name]
            write_run(
                place / run.name,
                metrics={"top1": top1 + number % 2 * 0.01, "loss": 0.2},
                throughput={"step_ms_median": step_ms},
                precision=precision(values["precision.mode"], "float16", self.note),
                eval_samples=100_000,
            )
        return 0

    def find_list(self, mode: str, tolerance: str, place: Path) -> Path | None:
        self.searched.append((mode, tolerance))
        return self.op_list

    def tune(self, target: float = 95.0, *, has_loss_scale: bool = False, **changes: Any) -> Tuned:
        request = TuningRequest(
            target=Target(metric=changes.get("metric", "top1"), value=target),
            modes=changes.get("modes", (ORIGIN, MIXED, CUBE, FORCED)),
            directory=self.folder / "tuning",
            has_loss_scale=has_loss_scale,
        )
        return tune_accuracy(
            request, train=self.train, find_list=self.find_list, say=self.said.append
        )


def test_modes_suffice_if_the_fastest_keeps_the_target(tmp_path: Path) -> None:
    bench = Bench(tmp_path, NUMBERS)
    tuned = bench.tune()
    assert tuned.decision.chosen is not None
    assert tuned.decision.chosen.assignments == (f"precision.mode={MIXED}",)
    assert [stage for stage, *_ in bench.trained] == ["modes"]
    assert [line.partition(":")[0] for line in tuned.not_tried] == ["op list", "loss scale"]
    saved = json.loads((tmp_path / "tuning" / "accuracy.json").read_text())
    assert saved["chosen"] == [f"precision.mode={MIXED}"]
    assert "misses the target | 50 ms" in (tmp_path / "tuning" / "accuracy.md").read_text()


def test_op_list_and_then_a_loss_scale_are_tried_for_faster_modes(tmp_path: Path) -> None:
    numbers = {
        **NUMBERS,
        MIXED: (90.0, 50),
        f"{MIXED} + list": (96.0, 60),
        f"{FORCED} + scale": (96.0, 45),
        f"{MIXED} + scale": (90.0, 50),
    }
    bench = Bench(tmp_path, numbers)
    tuned = bench.tune()
    assert bench.searched == [(MIXED, "top1=1")]
    assert [stage for stage, *_ in bench.trained] == ["modes", "op-list", "loss-scale"]
    assert tuned.decision.chosen is not None
    assert tuned.decision.chosen.name == f"{FORCED} + loss scale"
    assert set(tuned.decision.chosen.assignments) == {
        f"precision.mode={FORCED}",
        "precision.loss_scale=exponential",
    }
    assert tuned.not_tried == ()


def test_existing_op_list_or_unconfirmed_search_is_reported(tmp_path: Path) -> None:
    bench = Bench(tmp_path, {**NUMBERS, MIXED: (90.0, 50)})
    bench.op_list = None
    tuned = bench.tune(has_loss_scale=True)
    assert tuned.not_tried[0].startswith("op list: none was confirmed")
    assert "the recipe has one" in tuned.not_tried[1]
    assert tuned.decision.chosen is not None
    assert tuned.decision.chosen.name == CUBE


def test_target_that_float32_misses_needs_no_op_list(tmp_path: Path) -> None:
    bench = Bench(
        tmp_path, {**NUMBERS, f"{FORCED} + scale": (90, 50), f"{MIXED} + scale": (90, 50)}
    )
    bench.numbers |= {f"{CUBE} + scale": (90, 170)}
    tuned = bench.tune(99.0)
    assert bench.searched == []
    assert tuned.decision.chosen is None
    assert tuned.sentence.startswith("None of 7 precision settings meets top1=99")


def test_device_computing_in_another_dtype_needs_no_loss_scale(tmp_path: Path) -> None:
    bench = Bench(tmp_path, {**NUMBERS, FORCED: (93.0, 40)})
    bench.note = "computed in another type"
    tuned = bench.tune()
    assert [stage for stage, *_ in bench.trained] == ["modes"]
    assert "no mode that computed in fp16" in tuned.not_tried[1]


def test_interruption_or_unknown_score_ends_the_tuning(tmp_path: Path) -> None:
    bench = Bench(tmp_path, NUMBERS)
    with pytest.raises(UserError, match="unknown score 'top2'"):
        bench.tune(metric="top2")
    bench.signal = 2
    with pytest.raises(ExperimentStopped):
        bench.tune()
    assert results()["headline"]["name"] == "top1"
