import json
from pathlib import Path

from jumar.experiments.repeating import repeating
from jumar.experiments.reporting import write_report
from jumar.experiments.run_reading import read_run
from jumar.experiments.run_tables import device_table, run_tables, time_table
from jumar.settings import to_json
from tests.experiments.run_files import metric_lines, write_run
from tests.report.page_reading import PageReader


def device(step: int, readings: int = 4, **numbers: object) -> str:
    return json.dumps({"kind": "device", "step": step, "readings": readings, **numbers})


def test_load_of_a_run_is_the_mean_weighted_by_readings(tmp_path: Path) -> None:
    lines = [
        device(50, 1, busy_percent=10, memory_used_bytes=2**30, memory_total_bytes=2**33),
        device(100, 3, busy_percent=90, power_w=100, temperature_c=61),
        device(100, 0, unreadable="it fell off the bus"),
    ]
    run = read_run(write_run(tmp_path / "run", lines=[*metric_lines(), *lines]))
    assert dict(device_table(run.loads).rows) == {
        "device busy, mean": "70 %",
        "memory in use, maximum": "1.00 GiB of 8.00 GiB",
        "power, mean": "100 W",
        "temperature, maximum": "61 °C",
        "readings": "4",
        "unreadable": "it fell off the bus",
    }


def test_idle_npu_is_a_finding_on_the_page(tmp_path: Path) -> None:
    lines = [*metric_lines(), device(100, busy_percent=0.0), device(200, busy_percent=0.0)]
    npu = {"kind": "npu", "name": "Ascend910B"}
    text = " ".join(_page(write_run(tmp_path / "idle", lines=lines, device=npu)).texts["p"])
    assert "npu was busy 0 % of the time in all 8 readings" in text
    cpu = " ".join(_page(write_run(tmp_path / "cpu", lines=lines)).texts.get("p", []))
    assert "busy 0 %" not in cpu


def test_time_breakdown_adds_up_to_the_total(tmp_path: Path) -> None:
    run = read_run(write_run(tmp_path / "run", elapsed_s=64.0))
    rows = time_table(run).rows
    assert [row[0] for row in rows] == [
        "200 steps of 160 ms",
        "of which waiting for data",
        "2 evaluations",
        "first steps, checkpoints, log lines",
    ]
    assert [float(row[2]) for row in rows] == [50.0, 0.1, 0.0, 50.0]


def test_command_names_differences_from_the_recipe(tmp_path: Path) -> None:
    from jumar.recipes.registry import create_recipe
    from jumar.settings import override

    wanted = [
        "optimizer.learning_rate=0.012345678901",
        "training.duration=7it",
        "seed=3",
        "schedule=polynomial",
    ]
    settings = to_json(override(create_recipe("alexnet"), wanted))
    directory = write_run(tmp_path / "my run", base=settings)
    again = repeating(read_run(directory))
    assert again.command.startswith("jumar train alexnet --run-dir 'my run-again' --device cpu")
    words = again.command.split()
    assignments = [words[at + 1] for at, word in enumerate(words) if word == "--set"]
    assert to_json(override(create_recipe("alexnet"), assignments)) == settings
    assert ("optimizer.learning_rate", "0.015", "0.012345678901") in again.differences
    reader = _page(directory)
    assert again.command in reader.texts["pre"]
    assert "Settings that differ from the recipe" in " ".join(reader.texts["h2"])


def test_custom_recipe_is_not_imported_but_all_settings_are_named(tmp_path: Path) -> None:
    run = read_run(write_run(tmp_path / "run", recipe="registered-nowhere"))
    again = repeating(run)
    assert "--set optimizer.milestones=30,60" in again.command
    assert "no recipe 'registered-nowhere'" in again.notes[0]


def test_data_and_environment_come_from_the_run(tmp_path: Path) -> None:
    directory = write_run(tmp_path / "run")
    (directory / "resolved.json").write_text(
        json.dumps(
            {
                "outputs": [f"class {number}" for number in range(14)],
                "settings": {"model": {"num_classes": 14}},
                "places": {"data.path": "/data/train"},
                "samples": {"train": 1501, "eval": 296},
                "fingerprints": {"train": "abc"},
            }
        )
    )
    (directory / "environment.json").write_text(json.dumps({"versions": {"torch": "2.13.0"}}))
    (table, *_) = run_tables(read_run(directory))
    assert ("train samples", "1,501") in table.rows
    assert ("data.path", "/data/train") in table.rows
    assert any("class 11 and 2 more" in value for _, value in table.rows)
    assert "versions.torch" in _page(directory).texts["td"]
    for name in ("resolved.json", "environment.json"):
        (directory / name).write_text('[{"a": ')
    assert (_page(directory).open, _page(directory).crossed) == ([], [])


def _page(directory: Path) -> PageReader:
    return PageReader(write_report(directory).read_text(encoding="utf-8"))
