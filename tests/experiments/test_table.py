from pathlib import Path
from typing import Any

import pytest

from jumar.experiments.run_reading import read_run
from jumar.experiments.table import Combination, Table, baseline_index, build_table
from jumar.experiments.tolerance import between_accuracies, between_losses, between_seeds
from jumar.ground.errors import UserError
from tests.experiments.run_files import precision, write_run

ORIGIN = "precision.mode=must_keep_origin_dtype"
MIXED = "precision.mode=allow_mix_precision"
FORCED = "precision.mode=force_fp16"


class Runs:
    """Combinations made of run directories with the results that a test gives."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.combinations: list[Combination] = []

    def add(self, *assignments: str, seeds: list[dict[str, Any]], ends: tuple[str, ...] = ()):
        runs = tuple(
            read_run(
                write_run(self.root / f"{len(self.combinations)}-{number}", lines=[], **changes)
            )
            for number, changes in enumerate(seeds)
        )
        self.combinations.append(Combination(assignments=assignments, runs=runs, ends=ends))

    def table(self, *baseline: str) -> Table:
        return build_table("alexnet", self.combinations, baseline)


@pytest.fixture
def runs(tmp_path: Path) -> Runs:
    return Runs(tmp_path)


def scored(top1: float, loss: float, **changes: Any) -> dict[str, Any]:
    return {"metrics": {"top1": top1, "top5": 99.0, "loss": loss}, **changes}


def timed(step_ms: float, **changes: Any) -> dict[str, Any]:
    return {"throughput": {"samples_per_second": 1.0, "step_ms_median": step_ms}, **changes}


def test_baseline_is_the_mode_that_keeps_the_dtype_or_the_first() -> None:
    assert baseline_index([[MIXED], [FORCED], [ORIGIN]]) == 2
    assert baseline_index([[MIXED, "t=1"], [ORIGIN, "t=1"], [ORIGIN, "t=2"]]) == 1
    assert baseline_index([["precision.mode=fp16"], ["precision.mode=origin"]]) == 1
    assert baseline_index([["t=1"], ["t=2"]]) == 0
    assert baseline_index([[]]) == 0


def test_repeats_are_not_recommended_if_the_others_have_no_result(runs: Runs) -> None:
    waiting = {"state": "interrupted", "metrics": {}}
    runs.add(ORIGIN, seeds=[scored(96.0, 0.25), waiting, waiting])
    runs.add(FORCED, seeds=[scored(95.0, 0.25), waiting, waiting])
    report = " ".join(runs.table().explanations)
    assert "One result from 3 seeds so far" in report
    assert "--repeats" not in report


def test_one_result_without_a_standard_error_says_how_many_runs_have_none(runs: Runs) -> None:
    psnr = {"headline": {"name": "psnr", "unit": "dB", "higher_is_better": True}}
    waiting = {"state": "interrupted", "metrics": {}}
    measured = {"metrics": {"psnr": 30.0, "loss": 0.25}, **psnr}
    runs.add(ORIGIN, seeds=[measured, waiting, waiting])
    runs.add(FORCED, seeds=[measured, waiting, waiting])
    assert runs.table().rows[1].headline.reason == (
        "no tolerance with a result of only one of the baseline's 3 runs"
    )


def test_requested_baseline_is_the_first_matching_combination() -> None:
    combinations = [[ORIGIN, "t=1"], [ORIGIN, "t=2"], [FORCED, "t=1"], [FORCED, "t=2"]]
    assert baseline_index(combinations, ["t=2"]) == 1
    assert baseline_index(combinations, ["t=2", FORCED]) == 3


def test_baseline_outside_the_grid_is_refused_and_valid_ones_listed() -> None:
    with pytest.raises(UserError, match="allow_mix_precision") as caught:
        baseline_index([[ORIGIN, "t=1"], [FORCED, "t=1"]], [MIXED])
    assert "--baseline precision.mode=force_fp16 --baseline t=1" in caught.value.todo
    with pytest.raises(UserError, match="nothing is varied"):
        baseline_index([[]], [MIXED])


def test_single_seed_accuracies_are_equal_within_the_binomial_error(
    runs: Runs,
) -> None:
    lower = next(
        right / 4
        for right in range(384, 0, -1)
        if 96.0 - right / 4 > between_accuracies(96.0, right / 4, 400).value
    )
    runs.add(ORIGIN, seeds=[scored(96.0, 0.25)])
    runs.add(MIXED, seeds=[scored(lower + 0.25, 0.25)])
    runs.add(FORCED, seeds=[scored(lower, 0.25)])
    relations = [row.headline.relation for row in runs.table().rows]
    assert relations == ["baseline", "equal", "below"]


def test_single_seed_losses_are_judged_by_the_relative_error_of_the_error_count(
    runs: Runs,
) -> None:
    half = between_losses(0.25, (96.0, 96.0), 400).value
    runs.add(ORIGIN, seeds=[scored(96.0, 0.25)])
    runs.add(MIXED, seeds=[scored(96.0, 0.25 + 0.999 * half)])
    runs.add(FORCED, seeds=[scored(96.0, 0.25 + 1.001 * half)])
    assert [row.loss.relation for row in runs.table().rows] == ["baseline", "equal", "above"]


def test_with_repeats_equality_follows_from_the_spread_of_the_baseline_seeds(runs: Runs) -> None:
    losses = [0.24, 0.25, 0.26]
    half = between_seeds(losses, 3).value
    assert half == pytest.approx(4.303 * 0.01 * (2 / 3) ** 0.5)
    runs.add(ORIGIN, seeds=[scored(96.0, loss) for loss in losses])
    runs.add(MIXED, seeds=[scored(96.0, loss + 0.999 * half) for loss in losses])
    runs.add(FORCED, seeds=[scored(96.0, loss + 1.001 * half) for loss in losses])
    table = runs.table()
    assert [row.loss.relation for row in table.rows] == ["baseline", "equal", "above"]
    assert table.rows[1].loss.tolerance == pytest.approx(half)
    assert "n = 3 seeds" in table.explanations[0]
    assert "evaluation loss 0.01" in table.explanations[0]


def test_one_sample_is_not_a_difference_if_all_seeds_agree(runs: Runs) -> None:
    runs.add(ORIGIN, seeds=[scored(96.0, 0.25)] * 3)
    runs.add(MIXED, seeds=[scored(95.75, 0.25)])
    runs.add(FORCED, seeds=[scored(95.5, 0.25)])
    table = runs.table()
    assert [row.headline.relation for row in table.rows] == ["baseline", "equal", "below"]
    assert any("one of the 400 evaluation samples" in text for text in table.explanations)


def test_metric_without_a_known_error_is_not_judged_on_one_seed(runs: Runs) -> None:
    fid = {"headline": {"name": "fid", "unit": "", "higher_is_better": False}}
    runs.add(ORIGIN, seeds=[{"metrics": {"fid": 20.0}, **fid}])
    runs.add(MIXED, seeds=[{"metrics": {"fid": 21.0}, **fid}])
    row = runs.table().rows[1]
    assert row.headline.value == 21.0
    assert row.headline.relation == "not available"
    assert "--repeats" in row.headline.reason


def test_failed_run_is_not_available_with_the_reason(runs: Runs) -> None:
    failure = {"step": 40, "objective": "classifier", "reason": "the loss is not finite"}
    runs.add(ORIGIN, seeds=[scored(96.0, 0.25)])
    runs.add(FORCED, seeds=[{"state": "failed", "failure": failure, "metrics": {}}])
    row = runs.table().rows[1]
    assert row.loss.relation == row.headline.relation == "not available"
    assert row.loss.reason == "the loss is not finite (step 40, objective classifier)"
    assert row.notes == (f"not available: {row.loss.reason}",)
    assert row.num_finished == 0


def test_process_exit_is_the_reason_if_the_run_recorded_none(runs: Runs, tmp_path: Path) -> None:
    runs.add(ORIGIN, seeds=[scored(96.0, 0.25)])
    runs.combinations.append(
        Combination(assignments=(MIXED,), runs=(read_run(tmp_path / "no"),), ends=("killed",))
    )
    runs.combinations.append(
        Combination(assignments=(FORCED,), runs=(read_run(tmp_path / "no"),), ends=("",))
    )
    reasons = [row.loss.reason for row in runs.table().rows]
    assert reasons == ["", "killed", "not run yet"]


def test_scores_of_an_interrupted_run_are_not_compared_but_its_times_are(runs: Runs) -> None:
    runs.add(ORIGIN, seeds=[scored(96.0, 0.25)])
    runs.add(MIXED, seeds=[timed(80.0, state="interrupted", **scored(50.0, 1.0))])
    row = runs.table().rows[1]
    assert row.headline.value is None
    assert row.batch_time_ms == 80.0
    assert row.speed_up == 2.0


def test_without_a_baseline_numbers_are_shown_without_relations(runs: Runs) -> None:
    runs.add(ORIGIN, seeds=[{"state": "failed", "failure": None, "metrics": {}}])
    runs.add(MIXED, seeds=[scored(96.0, 0.25)])
    table = runs.table()
    assert table.rows[1].headline.value == 96.0
    assert table.rows[1].headline.reason == "the baseline is not available"
    assert table.headline_name == "top1"
    assert table.loss_name == "evaluation loss"


def test_failed_seed_is_noted_and_the_others_count(runs: Runs) -> None:
    runs.add(ORIGIN, seeds=[scored(96.0, 0.25), scored(97.0, 0.23)])
    runs.add(MIXED, seeds=[scored(96.0, 0.25), {"state": "interrupted", "steps": 30}])
    row = runs.table().rows[1]
    assert (row.num_finished, len(row.runs)) == (1, 2)
    assert row.headline.value == 96.0
    assert row.notes == ("1-1: not available: interrupted at step 30",)


def test_substituted_type_is_noted_in_the_row(runs: Runs) -> None:
    runs.add(ORIGIN, seeds=[scored(96.0, 0.25)])
    why = "many CPU kernels compute fp16 slowly"
    runs.add(FORCED, seeds=[scored(96, 0.25, precision=precision("force_fp16", "bfloat16", why))])
    row = runs.table().rows[1]
    assert row.substituted
    assert row.computed == "bfloat16"
    assert row.notes == (f"computed in bfloat16: {why}",)


def test_modes_with_the_same_reason_share_a_footnote(runs: Runs) -> None:
    for mode in (MIXED, FORCED):
        name = mode.partition("=")[2]
        described = precision(name, "bfloat16", f"{name} asks for fp16, which is slow here")
        runs.add(mode, seeds=[scored(96.0, 0.25, precision=described)])
    message = "computed in bfloat16: the mode asks for fp16, which is slow here"
    assert [row.notes for row in runs.table().rows] == [(message,), (message,)]


def test_emulated_type_is_noted_even_without_a_substitution(runs: Runs) -> None:
    described = {
        "mode": "force_fp16",
        "computed": "float16 emulated",
        "substituted": False,
        "note": "says nothing about speed",
    }
    runs.add(FORCED, seeds=[scored(96.0, 0.25, precision=described)])
    assert runs.table().rows[0].notes == ("computed in float16 emulated: says nothing about speed",)


def test_speed_up_is_per_sample_if_the_batch_size_varies(runs: Runs) -> None:
    runs.add("batch_size=64", seeds=[timed(160.0, batch_size=64)])
    runs.add("batch_size=128", seeds=[timed(200.0, batch_size=128)])
    assert [row.speed_up for row in runs.table().rows] == [1.0, 1.6]


def test_another_device_or_torch_or_skipped_steps_are_noted(runs: Runs) -> None:
    runs.add(ORIGIN, seeds=[scored(96.0, 0.25)])
    runs.add(
        MIXED,
        seeds=[
            scored(
                96.0,
                0.25,
                device={"kind": "cuda", "name": "H100"},
                versions={"torch": "2.6.0"},
                skipped_steps=12,
            )
        ],
    )
    assert runs.table().rows[1].notes == (
        "steps skipped by the loss scale: 12 of 200",
        "ran on cuda: H100, the baseline on cpu: AMD EPYC",
        "torch 2.6.0, the baseline torch 2.13.0",
    )


def test_columns_are_named_before_the_first_run_is_finished(runs: Runs) -> None:
    runs.add(ORIGIN, seeds=[{"state": "interrupted", "metrics": {}}])
    table = runs.table()
    assert (table.loss_name, table.headline_name) == ("evaluation loss", "top1")


def test_single_combination_is_its_own_baseline(runs: Runs) -> None:
    runs.add(seeds=[scored(96.0, 0.25)])
    table = runs.table()
    assert table.fields == ()
    assert [row.loss.relation for row in table.rows] == ["baseline"]


def test_without_evaluations_the_training_loss_is_compared(runs: Runs) -> None:
    runs.add(ORIGIN, seeds=[{"metrics": {}, "train_loss": 0.3}, {"metrics": {}, "train_loss": 0.4}])
    runs.add(MIXED, seeds=[{"metrics": {}, "train_loss": 3.0}])
    table = runs.table()
    assert table.loss_name == "training loss"
    assert [row.loss.relation for row in table.rows] == ["baseline", "above"]


@pytest.mark.parametrize("counted", [6, 19, 20, None])
def test_no_speed_up_is_given_for_a_handful_of_steps_with_a_footnote(
    runs: Runs, counted: int | None
) -> None:
    steps = {} if counted is None else {"counted_steps": counted}
    runs.add(ORIGIN, seeds=[timed(100.0)])
    runs.add(MIXED, seeds=[{"throughput": {"step_ms_median": 50.0, **steps}}])
    table = runs.table()
    few = counted in (6, 19)
    assert table.rows[1].speed_up == (None if few else 2.0)
    text = " ".join(table.explanations)
    assert ("No speed-up if fewer than 20 steps" in text) is few
    assert "Speed-up: samples per second" in text


def test_repeats_are_not_recommended_if_the_seed_is_varied(runs: Runs) -> None:
    runs.add("seed=1", seeds=[scored(96.0, 0.25)])
    runs.add("seed=2", seeds=[scored(95.0, 0.26)])
    text = " ".join(runs.table().explanations)
    assert "The seed is one of the varied fields" in text
    assert "--repeats" not in text


def test_without_times_no_times_are_reported(runs: Runs) -> None:
    runs.add(ORIGIN, seeds=[{"throughput": None}])
    assert "Batch time" not in " ".join(runs.table().explanations)
