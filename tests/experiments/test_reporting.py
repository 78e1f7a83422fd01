import json
from pathlib import Path
from typing import Any

import pytest

from jumar.experiments.reporting import write_report
from jumar.experiments.sweep_plan import SweepPlan, plan_sweep, save_plan
from jumar.ground.errors import UserError
from tests.experiments.run_files import metric_lines, precision, write_run
from tests.report.page_reading import PageReader

MODES = ("precision.mode=must_keep_origin_dtype,allow_mix_precision,force_fp16",)
FAILURE = {"step": 40, "objective": "classifier", "reason": "the loss is not finite"}


def planned(directory: Path, repeats: int = 1, vary: tuple[str, ...] = MODES) -> SweepPlan:
    plan = plan_sweep("alexnet", vary=vary, common=(), baseline=(), repeats=repeats, first_seed=0)
    save_plan(plan, directory)
    return plan


def sweep(directory: Path, changes: dict[str, dict[str, Any]], **planning: Any) -> PageReader:
    """The page of a sweep with a run for each planned one that `changes` does not omit."""
    for number, run in enumerate(planned(directory, **planning).runs):
        given = next((value for part, value in changes.items() if part in run.name), {})
        if given.get("omitted"):
            continue
        write_run(
            directory / run.name,
            assignments=run.assignments,
            **{"lines": metric_lines(rate=1 + number / 10), **given},
        )
    return read(directory)


def read(directory: Path) -> PageReader:
    return PageReader(write_report(directory).read_text(encoding="utf-8"))


def everything(reader: PageReader) -> str:
    return "\n".join(text for texts in reader.texts.values() for text in texts)


def test_sweep_shows_table_curves_and_differences(tmp_path: Path) -> None:
    reader = sweep(tmp_path, {})
    assert reader.texts["h1"] == ["alexnet: precision.mode compared"]
    assert [text for text in reader.texts["h3"] if text] == [
        "top1 (%)",
        "Evaluation loss",
        "Training loss",
        "Total loss, with regularisation",
        "Learning rate",
        "Speed (samples per second)",
    ]
    assert "= Baseline" in reader.texts["td"]
    assert "Settings that differ between the runs (1)" in reader.texts["summary"]
    assert "cpu: AMD EPYC" in reader.texts["dd"]
    assert "3 of 3 finished" in reader.texts["dd"]
    assert {path.name for path in tmp_path.iterdir() if path.is_file()} == {
        "sweep.json",
        "table.md",
        "table.csv",
        "table.json",
        "report.html",
    }


def test_runs_that_failed_or_were_not_run_are_shown_as_such(tmp_path: Path) -> None:
    reader = sweep(
        tmp_path,
        {
            "force_fp16": {"state": "failed", "failure": FAILURE, "metrics": {}},
            "allow_mix": {"omitted": True},
        },
    )
    notices = reader.texts["p"]
    assert "force_fp16: failed: the loss is not finite (step 40, objective classifier)." in notices
    assert "allow_mix_precision: not run yet." in notices
    assert any(
        text == "force_fp16: the loss is not finite (step 40, objective classifier)"
        for text in reader.texts["title"]
    )


def test_sweep_without_any_started_run_has_a_page(tmp_path: Path) -> None:
    planned(tmp_path)
    reader = read(tmp_path)
    assert "0 of 3 finished" in reader.texts["dd"]
    assert "N/A" in reader.texts["td"]
    assert not [svg for svg in reader.all("svg") if "aria-hidden" not in svg]


def test_substitution_is_reported_once_for_all_runs_that_share_it(tmp_path: Path) -> None:
    why = "many CPU kernels compute fp16 slowly"
    low = {"precision": precision("any", "bfloat16", why)}
    reader = sweep(tmp_path, {"force_fp16": low, "allow_mix": low})
    assert reader.texts["p"] == [f"allow_mix_precision, force_fp16: computed in bfloat16: {why}."]


def test_loss_scale_is_plotted_if_a_run_has_one(tmp_path: Path) -> None:
    lines = [json.dumps({**json.loads(line), "loss_scale": 65536.0}) for line in metric_lines()]
    assert "Loss scale" in sweep(tmp_path, {"force_fp16": {"lines": lines}}).texts["h3"]


def test_speed_not_measured_yet_does_not_break_the_curve(tmp_path: Path) -> None:
    lines = [json.dumps({**json.loads(line), "fps": None}) for line in metric_lines()[:1]]
    reader = read(write_run(tmp_path / "run", lines=lines + metric_lines()[1:]))
    assert not [path for path in reader.all("path") if path.get("class") == "cross"]


def test_seeds_of_one_combination_share_a_colour(tmp_path: Path) -> None:
    reader = sweep(tmp_path, {}, repeats=2)
    groups = [group["class"] for group in reader.all("g") if group["class"] != "drawn"]
    assert sorted(groups[:6]) == [
        f"c{group} d{group}{kind}" for group in range(3) for kind in ("", " repeat")
    ]


def test_several_varied_fields_are_named_in_the_labels(tmp_path: Path) -> None:
    vary = ("precision.mode=must_keep_origin_dtype,force_fp16", "threads.intra_op=1,2")
    text = everything(sweep(tmp_path, {}, vary=vary))
    assert "mode=force_fp16, intra_op=2" in text


def test_single_run_has_a_page(tmp_path: Path) -> None:
    reader = read(write_run(tmp_path / "alexnet-1"))
    assert reader.texts["h1"] == ["alexnet: alexnet-1"]
    assert "finished" in reader.texts["dd"]
    assert "must_keep_origin_dtype computed in float32" in reader.texts["dd"]
    assert reader.texts["td"][:2] == ["top1 (%)", "96.00"]
    assert "Settings" in reader.texts["summary"]
    assert "optimizer.learning_rate" in reader.texts["td"]


def test_averaged_weights_of_a_single_run_have_their_own_curve(tmp_path: Path) -> None:
    averaged = {"kind": "evaluation", "top1": 97.0, "weights": "ema"}
    lines = metric_lines()
    lines += [json.dumps({**averaged, "step": s, "epoch": s / 50}) for s in (100, 200)]
    text = everything(read(write_run(tmp_path / "run", lines=lines)))
    assert "run (averaged weights)" in text


@pytest.mark.parametrize("missing", ["results.json", "recipe.json", "metrics.jsonl"])
def test_run_without_one_of_its_files_still_has_a_page(tmp_path: Path, missing: str) -> None:
    directory = write_run(tmp_path / "run")
    (directory / missing).unlink()
    reader = read(directory)
    assert reader.crossed == []
    if missing == "results.json":
        assert reader.texts["p"] == ["not finished, last record at step 200."]


def test_null_nan_and_damaged_lines_are_reported_and_the_rest_plotted(tmp_path: Path) -> None:
    lines = metric_lines()
    lines[3] = '{"kind": "train", "step": 80, "epoch": 1.6, "loss": NaN, "total_loss": null}'
    lines[5] = '{"kind": "tra'
    run = write_run(tmp_path / "run", lines=lines)
    notices: list[str] = []
    write_report(run, notices.append)
    assert notices == [f"{run}: 1 damaged line in metrics.jsonl (line 6), omitted"]
    reader = read(run)
    assert "1 damaged line in metrics.jsonl (line 6), omitted." in reader.texts["p"]
    assert "run: not a finite number at 1.6" in reader.texts["title"]
    assert not any("nan" in path.get("d", "").lower() for path in reader.all("path"))


def test_axis_shows_steps_if_epochs_are_unknown(tmp_path: Path) -> None:
    lines = [json.dumps({"kind": "train", "step": step, "loss": 1 / step}) for step in (1, 2, 3)]
    reader = read(write_run(tmp_path / "run", lines=lines))
    assert "step" in reader.texts["text"]
    assert "epoch" not in reader.texts["text"]


def test_hostile_values_are_shown_escaped(tmp_path: Path) -> None:
    vary = ('data.path=<script>alert(1)</script>,"><img src=x onerror=alert(1)>',)
    plan = planned(tmp_path, vary=vary)
    for run in plan.runs:
        write_run(tmp_path / run.name, recipe="alexnet", device={"kind": "<b>", "name": "&amp;"})
    reader = read(tmp_path)
    assert len(reader.all("script")) == 2
    assert not reader.all("img")
    assert not reader.all("b")
    assert "<script>alert(1)</script>" in everything(reader)
    assert "<b>: &amp;" in reader.texts["dd"]


def test_directory_that_is_neither_run_nor_sweep_is_refused(tmp_path: Path) -> None:
    for directory in (tmp_path, tmp_path / "not there"):
        with pytest.raises(
            UserError, match=r"neither a run directory nor a sweep|no such run or sweep"
        ):
            write_report(directory)
