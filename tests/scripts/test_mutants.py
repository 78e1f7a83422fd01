"""Planted defects: the same ones for a seed, and the outcome that tests give them."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("cosmic_ray", reason="needs cosmic-ray: make mutants installs it")

from scripts.mutants.__main__ import score
from scripts.mutants.covering import Covering, chosen_tests, time_mirrors
from scripts.mutants.drawing import Mutant, code_lines, draw
from scripts.mutants.trying import Copy, Trial

from tests.checkout import CHECKOUT

SOURCE = '''"""A room."""

LIMIT: int | None = 3  # not zero


def over(value: int | None = None) -> bool:
    """Whether it is over the limit."""
    print(value)
    return value is not None and value > LIMIT
'''
TESTS = """import pytest

from jumar.models.limits import over


@pytest.mark.parametrize("_case", [0], ids=["a name with blanks"])
def test_three_is_not_over(_case):
    assert not over(3)
    assert over(4)
"""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A project of one file and its test."""
    root = tmp_path / "project"
    for name, text in {
        "src/jumar/models/limits.py": SOURCE,
        "src/jumar/models/__init__.py": "",
        "src/jumar/__init__.py": "",
        "tests/models/test_limits.py": TESTS,
        "ignored/big.bin": "x",
        ".gitignore": "ignored/\n",
    }.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")
    subprocess.run(["git", "init", "-q", str(root)], check=True)
    return root


def test_code_lines_exclude_comments_docstrings_and_blanks() -> None:
    assert code_lines(SOURCE) == {3, 6, 8, 9}


def test_seed_determines_the_defects_and_each_changes_the_code(checkout: Path) -> None:
    first = draw(checkout, 5, 6, ["models"])
    assert first == draw(checkout, 5, 6, ["models"])
    assert first != draw(checkout, 6, 6, ["models"])
    for mutant in first:
        assert mutant.room == "models"
        assert mutant.before in SOURCE
        assert ast.dump(ast.parse(mutant.text)) != ast.dump(ast.parse(SOURCE))
    changes = {(mutant.before, mutant.after) for mutant in draw(checkout, 1, 30, ["models"])}
    assert ("print(value)", "pass") in changes
    assert not any("None |" in after or "int &" in after for _, after in changes)


def test_defects_in_the_real_packages_are_importable() -> None:
    for mutant in draw(CHECKOUT, 3, 4):
        compile(mutant.text, mutant.file, "exec")
        assert (CHECKOUT / mutant.file).read_text(encoding="utf-8") != mutant.text


def planted(checkout: Path, before: str, after: str) -> Mutant:
    file = "src/jumar/models/limits.py"
    text = (checkout / file).read_text(encoding="utf-8")
    assert before in text
    return Mutant(
        file=file,
        line=9,
        operator="x",
        before=before,
        after=after,
        text=text.replace(before, after),
    )


def test_defect_is_killed_survives_or_times_out(checkout: Path, tmp_path: Path) -> None:
    copy = Copy(checkout, tmp_path / "copies")
    assert not (copy.path / "ignored").exists()
    copy.python = Path(sys.executable)
    tests = ["tests/models/test_limits.py::test_three_is_not_over[a name with blanks]"]
    killed = copy.attempt(planted(checkout, "> LIMIT", ">= LIMIT"), tests, 60)
    assert (killed.outcome, killed.killer) == ("killed", tests[0])
    # The same size within the same second: what was compiled before must not be taken.
    assert copy.attempt(planted(checkout, "> LIMIT", "< LIMIT"), tests, 60).outcome == "killed"
    survived = copy.attempt(planted(checkout, "print(value)", "pass"), tests, 60)
    assert survived.outcome == "survived"
    endless = planted(checkout, "print(value)", "while 1: pass")
    assert copy.attempt(endless, tests, 5).outcome == "timeout"
    assert copy.attempt(endless, [], 5).outcome == "not run"
    source = (copy.path / "src/jumar/models/limits.py").read_text(encoding="utf-8")
    assert source == SOURCE
    table = score([killed, survived], set())
    assert "| `models` | 2 | 1 | 50% |" in table
    same = {(survived.mutant.file, survived.mutant.before, survived.mutant.after)}
    assert "| all | 1 | 1 | 100% |" in score([killed, survived], same)
    assert "equivalent, not counted: 1" in score([killed, survived], same)


def test_survivor_is_excused_only_by_its_own_change() -> None:
    mutant = Mutant(
        file="src/jumar/data/a.py", line=1, operator="x", before="a", after="b", text="b"
    )
    survived = Trial(mutant=mutant, outcome="survived", killer="", tests=1)
    assert "| all | 1 | 0 | 0% |" in score([survived], {("src/jumar/data/a.py", "a", "c")})


def test_tests_are_selected_by_line_own_first_within_the_time_limit(checkout: Path) -> None:
    own, other = "tests/models/test_limits.py::test_three_is_not_over", "tests/test_x.py::test_y"
    covering = Covering(
        seconds={own: 5.0, other: 1.0, "tests/test_x.py::test_z": 90.0},
        tests={"src/jumar/models/limits.py": {9: [other, "tests/test_x.py::test_z", own]}},
    )
    file = "src/jumar/models/limits.py"
    assert chosen_tests(covering, checkout, file, 9, 60.0) == [own, other]
    assert chosen_tests(covering, checkout, file, 9, 5.5) == [own]
    assert chosen_tests(covering, checkout, file, 3, 60.0) == [own], "no test runs the line itself"


def test_mirroring_tests_are_timed_and_selected_without_coverage(
    checkout: Path, tmp_path: Path
) -> None:
    file = "src/jumar/models/limits.py"
    (checkout / "tests/parity").mkdir()
    for package in ("tests", "tests/models", "tests/parity"):
        (checkout / package / "__init__.py").touch()
    (checkout / "tests/parity/test_limits.py").write_text("def test_same(): pass\n")
    (checkout / "tests/models/test_others.py").write_text("def test_other(): pass\n")
    (checkout / "tests/models/test_importing.py").write_text(
        "from jumar.models import limits\ndef test_limit(): assert limits.LIMIT == 3\n"
    )
    copy = Copy(checkout, tmp_path / "copies")
    environment = {**copy.environment, "PYTHONPATH": f"{copy.path / 'src'}:{CHECKOUT}"}
    covering = time_mirrors(copy.path, copy.python, tmp_path / "kept", 1, environment, [file])
    importing = "tests/models/test_importing.py::test_limit"
    own = [
        "tests/models/test_limits.py::test_three_is_not_over[a name with blanks]",
        "tests/parity/test_limits.py::test_same",
    ]
    assert sorted(covering.seconds) == [importing, *own]
    chosen = chosen_tests(covering, checkout, file, 9, 60.0)
    assert sorted(chosen[:2]) == own
    assert chosen[2:] == [importing]
    assert chosen_tests(covering, checkout, file, 9, 0.0) == []
    # Of a later call only what has no times yet is run.
    changed = copy.path / "tests/models/test_importing.py"
    arguments = (copy.path, copy.python, tmp_path / "kept", 1, environment, [file])
    changed.write_text("raise SystemExit(1)\ndef test_limit(): pass\n")
    assert time_mirrors(*arguments, keep=True).seconds == covering.seconds
    changed.write_text("from jumar.models import limits\ndef test_renamed(): pass\n")
    again = time_mirrors(*arguments, keep=True)
    assert sorted(again.seconds) == ["tests/models/test_importing.py::test_renamed", *own]


def test_unknown_test_is_an_error_instead_of_a_detected_defect(
    checkout: Path, tmp_path: Path
) -> None:
    copy = Copy(checkout, tmp_path / "copies")
    with pytest.raises(RuntimeError, match="leave out --keep-coverage"):
        copy.run(["tests/models/test_limits.py::test_renamed"], 60.0)
    # A case by another name, as a changed parameter gives it, is run with its function.
    changed = "tests/models/test_limits.py::test_three_is_not_over[another name]"
    assert copy.run([changed], 60.0) == ("passed", "")


def test_defects_are_drawn_only_from_the_files_requested(checkout: Path) -> None:
    (checkout / "src/jumar/models/others.py").write_text("ONE = 1\nTWO = 2\nTHREE = 3\n")
    drawn = draw(checkout, 1, 8, ["models"], ["models/oth"])
    assert {mutant.file for mutant in drawn} == {"src/jumar/models/others.py"}
    with pytest.raises(ValueError, match="models/nothing"):
        draw(checkout, 1, 8, ["models"], ["models/nothing"])
