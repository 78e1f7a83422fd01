"""Divisions of a program in Python 2 are reported in all its scripts."""

from pathlib import Path

from jumar.porting.edits import TreeReport
from jumar.porting.options import PortOptions
from jumar.porting.tree.porting import port_tree
from tests.porting.trees import SESSION, write_files

GRID = "import numpy\n\n\ndef rows(images, cols):\n    return len(images) / cols\n"
OLD = f"import grid\n{SESSION}print grid.rows([1], 2)\n"


def divisions(report: TreeReport) -> list[tuple[str, str]]:
    return [
        (file.path, str(finding.place))
        for file in report.files
        for finding in file.findings
        if finding.rule == "python2-division"
    ]


def test_module_imported_by_a_python_2_script_is_python_2(tmp_path: Path) -> None:
    folder = write_files(tmp_path, {"grid.py": GRID, "main.py": OLD, "other.py": GRID})
    assert divisions(port_tree(folder, PortOptions())) == [("grid.py", "5:12")]


def test_python_2_name_marks_the_module(tmp_path: Path) -> None:
    named = OLD.replace("print grid.rows([1], 2)", "xrange(grid.rows([1], 2))")
    folder = write_files(tmp_path, {"grid.py": GRID, "main.py": named})
    assert divisions(port_tree(folder, PortOptions())) == [("grid.py", "5:12")]


def test_divisions_in_python_3_programs_are_left_alone(tmp_path: Path) -> None:
    new = OLD.replace("print grid.rows([1], 2)", "print(grid.rows([1], 2))")
    folder = write_files(tmp_path, {"grid.py": GRID, "main.py": new})
    assert not divisions(port_tree(folder, PortOptions()))


def test_location_in_a_ported_module_follows_the_moved_line(tmp_path: Path) -> None:
    grid = GRID + f"\n\n{SESSION}"
    report = port_tree(write_files(tmp_path, {"grid.py": grid, "main.py": OLD}), PortOptions())
    file = next(file for file in report.files if file.path == "grid.py")
    (finding,) = [one for one in file.findings if one.rule == "python2-division"]
    assert finding.place_after is not None
    line = file.after.split("\n")[finding.place_after.line - 1]
    assert line.strip() == "return len(images) / cols"
    assert finding.place_after.line > finding.place.line
