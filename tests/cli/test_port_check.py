import json
import sys
from pathlib import Path

import pytest

from tests.cli.in_process import here
from tests.tensorflow115 import tensorflow_python


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("JUMAR_TF115_PYTHON", raising=False)
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path / "none"))
    monkeypatch.setenv("PATH", str(tmp_path / "none"))
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "train.py").write_text("import sys\nsys.exit(len(sys.argv))\n")
    return tmp_path


@pytest.fixture
def python() -> str:
    return tensorflow_python()


def test_check_without_a_script_is_refused(project: Path):
    done = here("port", "check", "project", cwd=project, code=2)
    assert "the script is missing" in done.message
    only_variable = here("port", "check", "project", "--", "A=1", cwd=project, code=2)
    assert "the script is missing" in only_variable.err


def test_missing_folders_are_refused(project: Path):
    done = here("port", "check", "projekt", "--", "train.py", cwd=project, code=2)
    assert "projekt: there is no such folder" in done.message
    done = here(
        "port", "check", "project", "--against", "no", "--", "train.py", cwd=project, code=2
    )
    assert "no: there is no such folder" in done.message


def test_script_missing_on_either_side_is_refused_before_anything_runs(project: Path):
    (project / "original").mkdir()
    check = ("port", "check", "project", "--against", "original", "--")
    done = here(*check, "train.py", cwd=project, code=2)
    assert "no script 'train.py' in" in done.message
    done = here(*check, "-m", "train.run", cwd=project, code=2)
    assert "no module 'train.run' in" in done.message


def test_without_an_interpreter_the_commands_to_create_one_are_printed(project: Path):
    done = here("port", "check", "project", "--", "train.py", cwd=project, code=2)
    assert "no Python 3.7 with TensorFlow 1.15" in done.message
    assert "pip install tensorflow==1.15.0 protobuf==3.20.3" in done.message


def test_interpreter_with_the_wrong_version_is_refused(project: Path):
    done = here(
        *("port", "check", "project", "--python", sys.executable, "--", "train.py"),
        cwd=project,
        code=2,
    )
    assert "Python 3.7 with TensorFlow 1.15 is required" in done.message


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("--timeout", "soon", "'soon' is not a duration"),
        ("--timeout", "0s", "'0s' is not a duration"),
        ("--steps", "0", "0 steps"),
        ("--seed", "-1", "-1 is not a valid seed"),
        ("--tolerance", "2", "2.0 is not a valid tolerance"),
    ],
)
def test_wrong_values_are_refused(
    python: str, tmp_path: Path, option: str, value: str, message: str
):
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "train.py").write_text("")
    done = here(
        *("port", "check", "project", "--python", python, option, value, "--", "train.py"),
        cwd=tmp_path,
        code=2,
    )
    assert message in done.message


@pytest.mark.slow
def test_check_is_printed_and_written_and_passes_its_arguments_to_the_script(
    python: str, tmp_path: Path
):
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "train.py").write_text("import os, sys\nsys.exit(repr(sys.argv[1:]))\n")
    done = here(
        *("port", "check", "project", "--json", "--python", python, "--report", "report.md"),
        *("--", "A=b", "train.py", "--json", "--steps=3", "--", "-x"),
        cwd=tmp_path,
        code=1,
    )
    result = json.loads(done.out)
    assert result["passed"] is False
    assert result["command"] == ["A=b", "train.py", "--json", "--steps=3", "--", "-x"]
    failed = next(stage for stage in result["stages"] if stage["status"] == "failed")
    assert (
        failed["reason"] == "the script exited with sys.exit(['--json', '--steps=3', '--', '-x'])"
    )
    assert (tmp_path / "report.md").read_text().startswith("# Port check")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["project", "report.md"]
