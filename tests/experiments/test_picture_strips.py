import json
from pathlib import Path
from typing import Any

import pytest
import torch

from jumar.data.pixels.picture_grid import save_png
from jumar.experiments.reporting import write_report
from jumar.experiments.sweep_plan import plan_sweep, save_plan
from tests.experiments.run_files import write_run
from tests.report.page_reading import PageReader


def draw(run: Path, step: int, *names: str, caption: str = "", size: int = 300) -> Path:
    folder = run / "pictures" / f"step-{step:08d}"
    for name in names:
        value = (step * 7 + len(name)) % 256
        save_png(torch.full((size, size, 3), value, dtype=torch.uint8), folder / f"{name}.png")
    (folder / "captions.json").write_text(json.dumps(dict.fromkeys(names, caption)))
    return folder


def read(directory: Path) -> PageReader:
    reader = PageReader(write_report(directory).read_text(encoding="utf-8"))
    assert (reader.open, reader.crossed) == ([], [])
    assert all(address.startswith("data:image/") for address in reader.addresses)
    return reader


def alternatives(reader: PageReader) -> list[str]:
    return [picture["alt"] for picture in reader.all("img")]


def test_run_shows_the_first_and_newest_image_of_each_name(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run")
    for step in (20, 40, 60):
        draw(run, step, "samples", "strip", caption="cats")
    draw(run, 80, "new", caption="only <now>")
    reader = read(run)
    assert alternatives(reader) == [
        "new, step 80, only <now>",
        "samples, step 20, cats",
        "samples, step 60, cats",
        "strip, step 20, cats",
        "strip, step 60, cats",
    ]
    assert reader.texts["p"].count("cats") == 2


def test_different_captions_are_shown_with_their_image(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run")
    draw(run, 20, "strip", caption="21.3 dB")
    draw(run, 40, "strip", caption="28.9 dB")
    assert alternatives(read(run)) == ["strip, step 20, 21.3 dB", "strip, step 40, 28.9 dB"]


def test_damaged_and_missing_images_are_reported_and_the_next_ones_shown(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run")
    for step in (20, 40, 60):
        draw(run, step, "samples")
    (draw(run, 80, "samples") / "samples.png").write_bytes(b"\x89PNG half")
    (draw(run, 100, "samples") / "samples.png").unlink()
    (run / "pictures" / "step-00000020" / "captions.json").write_text("{")
    reader = read(run)
    assert alternatives(reader) == ["samples, step 20", "samples, step 60"]
    assert "samples.png of step 80 cannot be read and is omitted." in reader.texts["li"]
    assert "the captions of the images of step 20 cannot be read, omitted." in reader.texts["p"]


def test_run_with_only_damaged_images_has_a_page(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run")
    (draw(run, 20, "samples") / "samples.png").write_bytes(b"")
    reader = read(run)
    assert reader.all("img") == []
    assert "samples.png of step 20 cannot be read and is omitted." in reader.texts["li"]


def test_at_most_twelve_images_are_shown_and_the_rest_reported(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run")
    names = [f"p{number}" for number in range(9)]
    draw(run, 20, *names, size=20)
    draw(run, 40, *names, size=20)
    reader = read(run)
    assert len(alternatives(reader)) == 12
    assert any("first 6 of 9 names" in text for text in reader.texts["li"])


def test_page_with_the_largest_images_is_below_four_megabytes(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run")
    noise = torch.randint(0, 256, (500, 600, 3), dtype=torch.uint8)
    for step in (20, 40):
        for name in "abcdef":
            save_png(noise, run / "pictures" / f"step-{step:08d}" / f"{name}.png")
    assert write_report(run).stat().st_size < 4_000_000


def sweep(directory: Path, modes: int) -> list[Path]:
    rates = ",".join(str(number / 100) for number in range(1, modes + 1))
    plan = plan_sweep(
        "alexnet",
        vary=(f"optimizer.learning_rate={rates}",),
        common=(),
        baseline=(),
        repeats=1,
        first_seed=0,
    )
    save_plan(plan, directory)
    return [write_run(directory / run.name, assignments=run.assignments) for run in plan.runs]


def test_sweep_shows_the_newest_image_of_each_run_side_by_side(tmp_path: Path) -> None:
    runs = sweep(tmp_path, 3)
    for run, last in zip(runs, (40, 60), strict=False):
        draw(run, 20, "samples", "strip")
        draw(run, last, "samples", "strip")
    assert alternatives(read(tmp_path)) == [
        "samples, 0.01, step 40",
        "samples, 0.02, step 60",
        "strip, 0.01, step 40",
        "strip, 0.02, step 60",
    ]


def test_large_sweep_shows_twelve_images(tmp_path: Path) -> None:
    for run in sweep(tmp_path, 14):
        draw(run, 20, "samples", "strip", size=20)
    reader = read(tmp_path)
    assert len(alternatives(reader)) == 12
    assert any("first 12 of 14 runs" in text for text in reader.texts["li"])
    assert any("first 1 of 2 names" in text for text in reader.texts["li"])


def confusion(size: int, **changes: Any) -> dict[str, Any]:
    header = ["word", *(f"w{number}" for number in range(size))]
    rows = [[f"w{row}", *(f"{row * column}" for column in range(size))] for row in range(size)]
    return {"title": "Confusion matrix", "header": header, "rows": rows, **changes}


def test_score_tables_have_right_aligned_numbers(tmp_path: Path) -> None:
    reader = read(write_run(tmp_path / "run", score_tables=[confusion(3)]))
    assert "Confusion matrix" in reader.texts["h2"]
    assert "w2" in reader.texts["th"]
    cells = [cell.get("class") for cell in reader.all("td")]
    first = reader.texts["td"].index("w0")
    assert cells[first : first + 4] == [None, "number", "number", "number"]


@pytest.mark.parametrize(
    "damage",
    [{"rows": [["w0", "1"]]}, {"header": "text"}, {"rows": None}, {"header": [], "rows": [[]]}],
)
def test_damaged_table_is_reported_and_skipped(tmp_path: Path, damage: dict[str, Any]) -> None:
    reader = read(write_run(tmp_path / "run", score_tables=[confusion(3, **damage), "text"]))
    assert "Confusion matrix" not in reader.texts["h2"]
    assert "a score table in results.json is damaged, omitted." in reader.texts["p"]


def test_only_part_of_a_thousand_classes_is_shown(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", score_tables=[confusion(300)])
    reader = read(run)
    assert any("the complete table is in results.json" in text for text in reader.texts["li"])
    assert (run / "report.html").stat().st_size < 1_000_000
