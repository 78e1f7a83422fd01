"""The page of any number of runs in any state, and the files next to it."""

import csv
import json
from pathlib import Path

import pytest

from jumar.experiments.comparing import distinct_labels, run_directories, write_comparison
from jumar.ground.errors import UserError
from tests.experiments.run_files import metric_lines, results, write_run
from tests.report.page_reading import PageReader

HOSTILE = "</script><script>alert(1)</script>"
FEW = {"throughput": {**results()["throughput"], "counted_steps": 6}}


def compared(paths: list[Path], to: Path) -> PageReader:
    page = write_comparison(paths, to / "c.html")[-1]
    return PageReader(page.read_text(encoding="utf-8"))


def test_page_of_fifty_runs_is_below_three_megabytes(tmp_path: Path) -> None:
    for number in range(50):
        write_run(
            tmp_path / "runs" / f"run-{number:02}",
            assignments=[f"optimizer.learning_rate={0.001 * (number + 1)}", f"seed={number % 3}"],
            lines=metric_lines(8_000, every=20, rate=1 + number / 10),
            seed=number % 3,
        )
    markdown, comma, page = write_comparison([tmp_path / "runs"], tmp_path / "c.html")
    assert page.stat().st_size < 3_000_000
    reader = PageReader(page.read_text(encoding="utf-8"))
    assert (reader.open, reader.crossed) == ([], [])
    assert reader.texts["h1"] == ["50 runs compared"]
    data = json.loads(reader.texts["script"][0])
    assert len(data["charts"]) == 6
    assert {len(chart["lines"]) for chart in data["charts"]} == {1, 50}  # the rates are alike
    rows = list(csv.reader(comma.open(encoding="utf-8")))
    assert rows[0][:3] == ["run", "seed", "optimizer.learning_rate"]
    assert len(rows) == 51
    assert len(markdown.read_text(encoding="utf-8").splitlines()) >= 52


def test_runs_with_the_same_name_are_labelled_with_their_folders(tmp_path: Path) -> None:
    paths = [write_run(tmp_path / folder / "run") for folder in ("a", "b")]
    paths.append(write_run(tmp_path / "b" / "other"))
    assert distinct_labels(paths) == ["a/run", "b/run", "other"]
    assert run_directories([*paths, tmp_path / "b"]) == paths
    cells = compared([tmp_path / "a", tmp_path / "b"], tmp_path).texts["td"]
    assert {"a/run", "b/run", "other"} <= set(cells)


def test_killed_failed_and_half_written_runs_have_rows_with_the_reason(tmp_path: Path) -> None:
    good = write_run(tmp_path / "good")
    killed = write_run(tmp_path / "killed", lines=[*metric_lines()[:4], '{"kind": "tra'])
    (killed / "results.json").unlink()
    failed = write_run(
        tmp_path / "failed",
        state="failed",
        failure={"step": 40, "objective": "c", "reason": "the loss is not finite"},
        metrics={},
    )
    torn = write_run(tmp_path / "torn")
    (torn / "results.json").write_text('{"recipe": "alex')
    reader = compared([good, killed, failed, torn], tmp_path)
    notices = " ".join(reader.texts["p"])
    assert "killed: not finished, last record at step 80." in notices
    assert "failed: failed: the loss is not finite (step 40, objective c)." in notices
    assert "torn: results.json cannot be read, omitted." in notices
    assert reader.texts["td"].count("unfinished") == 2


def test_hostile_names_are_escaped(tmp_path: Path) -> None:
    paths = [
        write_run(tmp_path / f"<b>{number}", recipe=HOSTILE, device={"kind": HOSTILE, "name": "=1"})
        for number in (1, 2)
    ]
    reader = compared(paths, tmp_path)
    assert (reader.open, reader.crossed) == ([], [])
    assert len(reader.all("script")) == 2
    assert not reader.all("b")
    assert HOSTILE in reader.texts["dd"]
    assert not (tmp_path / "c.md").read_text().count("<b>")


def test_speed_over_a_handful_of_steps_is_omitted_with_a_note(tmp_path: Path) -> None:
    paths = [write_run(tmp_path / "short", **FEW), write_run(tmp_path / "long")]
    reader = compared(paths, tmp_path)
    assert reader.texts["td"].count("400.0") == 1
    assert any("fewer than 20 timed steps" in note for note in reader.texts["li"])


def test_different_numbers_of_evaluation_samples_are_noted_smallest_first(tmp_path: Path) -> None:
    note = "The scores come from different numbers of evaluation samples"
    a, b, c, unknown = (
        write_run(tmp_path / name, eval_samples=samples)
        for name, samples in (("a", 1000), ("b", 400), ("c", 1000), ("unknown", None))
    )
    assert f"{note}: 400, 1000." in compared([a, b, c, unknown], tmp_path).texts["li"]
    same = compared([a, c, unknown], tmp_path).texts["li"]
    assert not any(note in line for line in same)


def test_different_metrics_do_not_share_a_column(tmp_path: Path) -> None:
    other = {"name": "psnr", "unit": "dB", "higher_is_better": True}
    paths = [
        write_run(tmp_path / "a"),
        write_run(tmp_path / "b", headline=other, metrics={"psnr": 30.0}),
    ]
    reader = compared(paths, tmp_path)
    assert "The runs have different metrics, which are not compared." in reader.texts["li"]
    assert "top1 (%)" not in reader.texts["th"]


@pytest.mark.parametrize("made", [False, True])
def test_folders_that_are_not_runs_are_refused_before_anything_is_written(
    tmp_path: Path, made: bool
) -> None:
    place = tmp_path / "nothing"
    if made:
        place.mkdir()
    with pytest.raises(UserError, match=r"no such run|neither a run directory"):
        write_comparison([write_run(tmp_path / "run"), place], tmp_path / "c.html")
    with pytest.raises(UserError, match=r"does not end in \.html"):
        write_comparison([tmp_path / "run"], tmp_path / "c.txt")
    assert not list(tmp_path.glob("c.*"))
