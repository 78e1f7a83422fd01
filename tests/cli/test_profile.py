"""`jumar profile show` and `gate`: what they print, write, and leave with."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.in_process import here, unchecked_end

PROGRAM = "from jumar.cli.main import run; run()"

HEADER = (
    "Step Id,Device_id,Model ID,Task ID,Stream ID,Name,Type,Accelerator Core,Start Time(us),"
    "Duration(us),Wait Time(us),Block Num,Input Shapes,Input Data Types,Input Formats,"
    "Output Shapes,Output Data Types,Output Formats\n"
)


def row(index: int, kind: str, core: str, duration: str, name: str = "") -> str:
    start = f"17364088837046{index:02d}.000"
    return (
        f"1,0,4294967295,{index},2,{name or kind},{kind},{core},{start}\t,{duration},0,20,"
        '"""2,3""",FLOAT,ND,"""2,3""",FLOAT,ND\n'
    )


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """Three ops back to back: 10 us of Add, 5 of Cast, 5 on the AI CPU."""
    file = tmp_path / "kernels.csv"
    file.write_text(
        HEADER
        + row(0, "Add", "AI_VECTOR_CORE", "10.000")
        + row(10, "Cast", "AI_VECTOR_CORE", "5.000")
        + row(15, "TopK", "AI_CPU", "5.000")
    )
    return file


def test_default_view_has_the_to_do_list_the_steps_and_three_rankings(small: Path) -> None:
    out = here("profile", "show", small.name, cwd=small.parent).out
    for part in ("What to do", "TopK runs on the AI CPU", "op_statistic", "op_summary", "0.02"):
        assert part in out
    assert "More views (--view): aicpu" in out


def test_profile_of_another_device_has_no_section_on_the_ai_cpu(tmp_path: Path) -> None:
    event = {"ph": "X", "cat": "kernel", "name": "k", "ts": 1, "dur": 2, "pid": 0, "tid": 7}
    trace = tmp_path / "x.json"
    trace.write_text(json.dumps({"schemaVersion": 1, "traceEvents": [event]}))
    out = here("profile", "show", trace, cwd=tmp_path).out
    assert "op_summary" in out
    assert "aicpu-time" not in out
    assert "AI CPU" not in out
    asked = here("profile", "show", trace, "--view", "aicpu-time", cwd=tmp_path, code=2)
    assert "needs a profile of an NPU, the only device with an AI CPU" in asked.message


def test_json_has_the_rows_of_the_requested_views(small: Path) -> None:
    report = json.loads(
        here("profile", "show", small, "--view", "types", "--json", cwd=small.parent).out
    )
    assert list(report["views"]) == ["types"]
    assert [line["type"] for line in report["views"]["types"]] == ["Add", "Cast", "TopK"]
    assert report["views"]["types"][0]["total_ms"] == 0.01
    assert report["peak_rates"] is None


def test_figures_that_differ_from_the_captures_own_are_marked_in_every_output(
    small: Path,
) -> None:
    header = "Step,Computing,Communication(Not Overlapped),Overlapped,Communication,Free\n"
    (small.parent / "step_trace_time.csv").write_text(header + "1,90,0,0,0,0\n")
    ask = ("profile", "show", small.parent, "--view", "types")
    line = "computing is 0.020 ms according to the ops, but 0.090 ms in the capture's own"
    assert f"note: {line}" in here(*ask, cwd=small.parent).out
    assert json.loads(here(*ask, "--json", cwd=small.parent).out)["contradictions"][0].startswith(
        line
    )
    page = small.parent.parent / "page.html"
    here(*ask, "--page", page, cwd=small.parent)
    assert line.replace("'", "&#39;") in page.read_text()


def test_headroom_is_shown_with_the_source_of_the_chips_rates(small: Path) -> None:
    ask = ("profile", "show", small, "--view", "roofline")
    assert "Ascend 910B3 (assumed" in here(*ask, cwd=small.parent).out
    source = "Ascend 910B3 (assumed from the cores that ops used), estimate: computed from Huawei"
    assert source in " ".join(here(*ask, cwd=small.parent).out.split())
    report = json.loads(here(*ask, "--json", cwd=small.parent).out)
    assert source in report["peak_rates"]


def test_every_view_is_written_as_csv(small: Path, tmp_path: Path) -> None:
    here("profile", "show", small, "--view", "all", "--csv", tmp_path / "out", cwd=tmp_path)
    written = {path.name for path in (tmp_path / "out").iterdir()}
    assert {"todo.csv", "steps.csv", "types.csv", "roofline.csv"} <= written
    assert not [name for name in written if name.startswith(".")]
    first = (tmp_path / "out" / "types.csv").read_text().splitlines()
    assert first[1].startswith("Add,AI_VECTOR_CORE,1,0.01")


def test_impossible_view_exits_with_2_and_says_what_it_needs(small: Path) -> None:
    done = here("profile", "show", small, "--view", "memory", cwd=small.parent, code=2)
    assert "memory_record.csv" in done.message
    # Asked for by `all` or by nobody, it is only listed.
    out = here("profile", "show", small, "--view", "all", cwd=small.parent).out
    assert "memory: needs memory over time" in out


def test_wrong_names_and_numbers_are_user_errors(small: Path) -> None:
    ask = ("profile", "show", small)
    assert "collectives" in here(*ask, "--view", "colectives", cwd=small.parent, code=2).message
    here(*ask, "--view", "all", "--view", "colectives", cwd=small.parent, code=2)
    assert "0 or more" in here(*ask, "--top", "-1", cwd=small.parent, code=2).message
    here("profile", "show", cwd=small.parent, code=2)
    here("profile", "show", "nowhere", cwd=small.parent, code=2)
    here(*ask, "--view", "roofline", "--chip", "nowhere", cwd=small.parent, code=2)
    blocked = small.parent / "file"
    blocked.write_text("")
    here(*ask, "--csv", blocked / "out", cwd=small.parent, code=2)


def test_truncated_ranking_says_how_many_rows_it_has(small: Path) -> None:
    ask = ("profile", "show", small, "--view", "types")
    line = "the first 2 of 3 rows; all: jumar profile show PROFILE --view types --top 0"
    assert line in here(*ask, "--top", "2", cwd=small.parent).out
    assert json.loads(here(*ask, "--top", "2", "--json", cwd=small.parent).out)["cut"] == {
        "types": 3
    }
    for top in ("3", "0"):
        assert "rows; all" not in here(*ask, "--top", top, cwd=small.parent).out
        as_json = here(*ask, "--top", top, "--json", cwd=small.parent).out
        assert json.loads(as_json)["cut"] == {}
    assert json.loads(here(*ask, "--json", cwd=small.parent).out)["cut"] == {}


def test_top_shortens_the_to_do_list_and_says_by_how_much(tmp_path: Path) -> None:
    file = tmp_path / "kernels.csv"
    rows = [row(0, "TopK", "AI_CPU", "5.000"), row(10, "Cast", "AI_VECTOR_CORE", "9.000")]
    file.write_text(HEADER + "".join(rows))
    ask = ("profile", "show", file, "--view", "todo")
    whole, first = (here(*ask, *top, cwd=tmp_path).out for top in ((), ("--top", "1")))
    assert "TopK runs on the AI CPU" in whole
    count = whole.count("try: ")
    assert count > 1
    assert first.count("try: ") == 1
    assert f"the first 1 of {count} rows; all" in first
    assert here(*ask, "--top", "0", cwd=tmp_path).out == whole


def test_control_characters_in_names_are_escaped(tmp_path: Path) -> None:
    file = tmp_path / "kernels.csv"
    evil = "\x1b[2J\u202egnp.exe[bold]"
    file.write_text(HEADER + row(0, evil, "AI_CORE", "3.000", name=evil), encoding="utf-8")
    out = here("profile", "show", file, "--view", "all", cwd=tmp_path).out
    assert "\x1b" not in out
    assert "\u202e" not in out
    assert "\\x1b[2J" in out
    assert "[bold]" in out


def test_gate_exits_with_1_if_a_limit_is_exceeded(small: Path) -> None:
    ask = ("profile", "gate", small)
    here(*ask, "--max-step-ms", "0.02", "--max-aicpu-share", "25", cwd=small.parent)
    done = here(*ask, "--max-cast-share", "24", "--max-step-ms", "1", cwd=small.parent, code=1)
    assert "cast-share: 25.000 %, limit 24 %: EXCEEDED" in done.out
    assert "step-ms: 0.020 ms, limit 1 ms: ok" in done.out
    report = json.loads(here(*ask, "--max-cast-share", "1", "--json", cwd=small.parent, code=1).out)
    assert report[0]["measured"] == 25.0


def test_gate_exits_with_2_if_it_cannot_measure_or_has_no_limit(small: Path) -> None:
    out = subprocess.run(
        [sys.executable, "-c", PROGRAM, "profile", "gate", str(small), "--max-rank-spread", "5"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert out.returncode == 2
    assert "rank-spread: unknown" in out.stdout
    assert "two ranks" in out.stdout
    here("profile", "gate", small, cwd=small.parent, code=2)


def test_gate_names_what_was_left_out_with_its_table_or_json(tmp_path: Path) -> None:
    file = tmp_path / "kernels.csv"
    file.write_text(HEADER + row(0, "Mul", "AI_CORE", "3.000"), encoding="utf-8")
    assert here("profile", "gate", file, "--max-step-ms", "1", cwd=tmp_path).err == ""
    cut = row(0, "Add", "AI_CORE", "3.000")[:9]
    file.write_text(HEADER + row(0, "Mul", "AI_CORE", "3.000") + cut, encoding="utf-8")
    for more in ((), ("--json",)):
        done = unchecked_end("profile", "gate", file, "--max-step-ms", "1", *more, cwd=tmp_path)
        assert done.code == 2
        assert "it ends in the middle" in done.out
        assert f"missing: {file}: 1 line dropped: line 3 has " in done.err
        assert "missing" not in done.out


def test_showing_a_profile_does_not_import_torch(small: Path) -> None:
    program = (
        "import sys\n"
        "from jumar.cli.main import app\n"
        f"app(['profile', 'show', {str(small)!r}], result_action='return_value')\n"
        "assert 'torch' not in sys.modules, 'torch'\n"
        "assert 'pandas' not in sys.modules, 'pandas'\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
