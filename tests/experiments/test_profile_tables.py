"""The parts of a run's profile on its page."""

from pathlib import Path

import pytest

from jumar.experiments import profile_tables as module
from jumar.experiments.profile_tables import profile_tables
from jumar.experiments.run_reading import Run, read_run
from tests.experiments.run_files import write_run

KERNELS = (
    "Step Id,Device_id,Model ID,Task ID,Stream ID,Name,Type,Accelerator Core,Start Time(us),"
    "Duration(us),Wait Time(us),Block Num,Input Shapes,Input Data Types,Input Formats,"
    "Output Shapes,Output Data Types,Output Formats\n"
    "1,0,4294967295,0,2,add,Add,AI_VECTOR_CORE,1736408883704600.000\t,10.000,0,20,"
    '"""2,3""",FLOAT,ND,"""2,3""",FLOAT,ND\n'
    "1,0,4294967295,1,2,topk,TopK,AI_CPU,1736408883704610.000\t,5.000,0,20,"
    '"""2,3""",FLOAT,ND,"""2,3""",FLOAT,ND\n'
)


def _run(folder: Path, content: str | None) -> Run:
    run = write_run(folder / "run")
    if content is not None:
        (run / "profile").mkdir()
        (run / "profile" / "kernel_details.csv").write_text(content)
    return read_run(run)


def test_profile_shows_recommendations_and_where_the_time_went(tmp_path: Path) -> None:
    todo, *others = profile_tables(_run(tmp_path, KERNELS))
    assert todo.title == "Profile: What to do, by possible saving per step"
    assert "TopK runs on the AI CPU" in str(todo.rows)
    assert all(row[3] for row in todo.rows)
    assert todo.notes == [
        f"The whole table: jumar profile show {tmp_path / 'run' / 'profile'} --view todo --top 0"
    ]
    types = others[-1]
    assert [row[0] for row in types.rows] == ["Add", "TopK"]
    assert all(len(row) == len(table.header) for table in (todo, *others) for row in table.rows)


def test_run_without_a_profile_has_no_profile_table(tmp_path: Path) -> None:
    assert profile_tables(_run(tmp_path, None)) == []


def test_unreadable_profile_is_named_with_the_reason(tmp_path: Path) -> None:
    (table,) = profile_tables(_run(tmp_path, "neither,a,profile\n1,2,3\n"))
    assert table.title == "Profile"
    ((reason, command),) = table.rows
    assert reason
    assert command == f"jumar profile show {tmp_path / 'run' / 'profile'}"


def test_large_profile_refers_to_its_own_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_MAX_BYTES", 100)
    (table,) = profile_tables(_run(tmp_path, KERNELS))
    assert "too large for this page" in table.rows[0][0]
