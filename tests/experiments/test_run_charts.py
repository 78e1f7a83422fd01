"""Which curves of runs are drawn."""

import json
from pathlib import Path

from jumar.experiments.run_charts import ShownRun, charts_of
from jumar.experiments.run_reading import read_run
from tests.experiments.run_files import write_run


def _shown(folder: Path, *parts: dict[str, object], group: int = 0) -> ShownRun:
    lines = [
        json.dumps({"kind": "train", "step": step, "epoch": step / 10, "loss": 1.0, **part})
        for step, part in enumerate(parts, start=1)
    ]
    run = read_run(write_run(folder, lines=lines))
    return ShownRun(run=run, label=folder.name, group=group, reason="")


def test_each_objective_and_each_term_of_a_run_has_a_curve(tmp_path: Path) -> None:
    shown = _shown(
        tmp_path / "gan",
        {
            "losses": {"generator": 1.0, "discriminator": 2.0},
            "gradient_norms": {"generator": 5.0},
            "terms": {"pull": 0.5},
        },
        {"losses": {"generator": 3.0, "discriminator": None}},
    )
    charts = {chart.title: chart.curves for chart in charts_of([shown], "top1", "%")}
    losses = charts["Loss by objective"]
    assert [curve.label for curve in losses] == ["generator", "discriminator"]
    assert [list(curve.points) for curve in losses] == [
        [(0.1, 1.0), (0.2, 3.0)],
        [(0.1, 2.0), (0.2, None)],
    ]
    assert [curve.points for curve in charts["Terms of the loss"]] == [[(0.1, 0.5)]]
    assert [curve.points for curve in charts["Gradient norm by objective"]] == [[(0.1, 5.0)]]


def test_parts_of_several_runs_have_distinct_names_and_colours(tmp_path: Path) -> None:
    first = _shown(tmp_path / "a", {"terms": {"x": 1.0, "y": 2.0}})
    second = _shown(tmp_path / "b", {"terms": {"x": 4.0, "y": 3.0}}, group=1)
    charts = {chart.title: chart.curves for chart in charts_of([first, second], "top1", "%")}
    curves = charts["Terms of the loss"]
    assert [curve.label for curve in curves] == ["a: x", "a: y", "b: x", "b: y"]
    assert len({curve.group for curve in curves}) == 4


def test_malformed_table_of_parts_is_not_plotted(tmp_path: Path) -> None:
    shown = _shown(tmp_path / "run", {"losses": [1.0], "terms": 3, "gradient_norms": {}})
    titles = {chart.title for chart in charts_of([shown], "top1", "%")}
    assert titles == {"Training loss", "Total loss, with regularisation"}
