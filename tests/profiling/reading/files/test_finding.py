"""Which files a path refers to, and which belong to one capture."""

from pathlib import Path

import pytest

from jumar.ground.errors import UserError
from jumar.profiling.reading.file_content import Source
from jumar.profiling.reading.files import finding
from jumar.profiling.reading.files.finding import sources_of
from tests.other_user import open_folder, run_without_rights

STEPS = "Step,Computing,Communication,Free\n1,2,3,4\n"


def written(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(STEPS if not name.endswith("odd.csv") else "a,b\n")


def test_explicitly_given_file_is_read_with_any_name(tmp_path: Path) -> None:
    path = tmp_path / "x.anything"
    path.write_text(STEPS)
    assert sources_of(path, "shown") == [
        Source(path=path, display_name="shown", capture=str(tmp_path), kind="step_trace_time")
    ]
    with pytest.raises(UserError) as caught:
        sources_of(tmp_path / "missing", "shown")
    assert caught.value.todo.endswith(
        "Pass a profile: a folder of torch_npu or msprof, or a CSV, JSON, .db or zip file."
    )


def test_tables_below_a_folder_are_found_in_order_without_raw_data(tmp_path: Path) -> None:
    written(
        tmp_path,
        *("b/2.csv", "b/1.CSV", "a/x.txt", "odd.csv", "readme.md", "a/info.json.11", "z.csv.gz"),
        *("FRAMEWORK/x.csv", "logs/x.csv", "log/x.csv", "sqlite/x.csv"),
        *("device_0/data/x.csv", "data/y.csv", "device_x/data/z.csv"),
    )
    (tmp_path / "folder.csv").mkdir()
    (tmp_path / "unknown.json").write_text("{}")
    found = [source.display_name for source in sources_of(tmp_path, "top/")]
    assert found == [
        *("top/odd.csv", "top/z.csv.gz", "top/a/info.json.11", "top/a/x.txt", "top/b/1.CSV"),
        *("top/b/2.csv", "top/data/y.csv", "top/device_x/data/z.csv"),
    ]
    assert {one.display_name: one.kind for one in sources_of(tmp_path, "top")}["top/odd.csv"] == ""


def test_folder_with_too_many_files_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(finding, "MAX_FILES", 2)
    written(tmp_path, "a.csv", "b.csv")
    assert len(sources_of(tmp_path, "x")) == 2
    written(tmp_path, "c.csv")
    with pytest.raises(UserError) as caught:
        sources_of(tmp_path, "x")
    assert (caught.value.what, caught.value.where, caught.value.todo) == (
        *("contains more than 2 files", str(tmp_path), "Pass the folder of one capture."),
    )


@pytest.mark.parametrize(
    ("file", "capture"),
    [
        ("w_1_ascend_pt/PROF_1/device_0/x.csv", "w_1_ascend_pt"),
        ("w_1_ascend_pt/y_ascend_ms/x.csv", "w_1_ascend_pt"),
        ("renamed/ASCEND_PROFILER_OUTPUT/x.csv", "renamed"),
        ("PROF_000001_x/device_3/summary/x.csv", "PROF_000001_x/device_3"),
        ("PROF_000001_x/device_3/x.csv", "PROF_000001_x/device_3"),
        ("PROF_000001_x/mindstudio_profiler_output/x.csv", "PROF_000001_x/"),
        ("PROF_000001_x/host/x.csv", "PROF_000001_x/"),
        ("PROF_000001_x/x.csv", "PROF_000001_x/"),
        ("PROF_x/device_3/x.csv", "PROF_x/device_3"),
        # Under another name than msprof's, or alone.
        ("renamed/device_3/timeline/x.csv", "renamed/device_3"),
        ("renamed/device_3/summary/x.csv", "renamed/device_3"),
        ("renamed/device_3/x.csv", "renamed/device_3"),
        ("renamed/device_3/run_1/x.csv", "renamed/device_3/run_1"),
        ("renamed/node_3/timeline/x.csv", "renamed/node_3/timeline"),
        ("plain/deep/x.csv", "plain/deep"),
    ],
)
def test_files_of_a_capture_have_its_folder(tmp_path: Path, file: str, capture: str) -> None:
    written(tmp_path, file)
    (source,) = sources_of(tmp_path, "x")
    assert source.capture == str(tmp_path / capture)


READ = """
import sys
from jumar.ground.errors import UserError
from jumar.profiling import read
from jumar.profiling.advice.gate import gate
from jumar.profiling.views import VIEWS
list(VIEWS)
"""
SHOW = """
try:
    profile = read(sys.argv[1])
    print(profile.ranks, [(gap.file, gap.what) for gap in profile.missing])
    print(gate(profile, {"step-ms": 1e9})[0].needs)
except UserError as error:
    print(error)
"""
OPS = "Name,Duration(us),Accelerator Core,Start Time(us),Type,Input Shapes,Input Data Types\n"


@pytest.mark.parametrize("mode", [0o700, 0o711, 0o744])
def test_folder_that_may_not_be_entered_is_refused_with_the_reason(mode: int) -> None:
    with open_folder() as place:
        closed = place / "closed"
        written(closed, "kernel_details.csv")
        closed.chmod(mode)
        said = run_without_rights(READ, SHOW, "closed", cwd=place)
    assert said.startswith("closed: cannot be read: Permission denied")


def test_unreadable_parts_of_a_folder_are_listed_and_not_measured() -> None:
    with open_folder() as place:
        for name in ("a", "b", "c", "d"):
            file = place / "p" / name / "kernel_details.csv"
            file.parent.mkdir(parents=True)
            file.write_text(OPS + f"x,2.5,AI_CORE,{ord(name)},Add,1,FLOAT\n")
        (place / "p" / "a").chmod(0o700)
        (place / "p" / "b").chmod(0o744)
        (place / "p" / "c" / "kernel_details.csv").chmod(0o600)
        ranks, needs = run_without_rights(READ, SHOW, "p", cwd=place).splitlines()
    denied = "cannot be read: Permission denied"
    listed = [("p/b", denied), ("p/c/kernel_details.csv", denied), ("p/a", denied)]
    assert ranks.startswith("(0,) ")
    for pair in listed:
        assert repr(pair) in ranks
    assert needs.endswith("; it cannot be read")
