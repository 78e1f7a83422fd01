import sys
from pathlib import Path

import pytest

from jumar.ground.errors import UserError
from jumar.porting.check.interpreter import PINS, find_interpreter, probe
from tests.tensorflow115 import tensorflow_python

NOWHERE = {"PATH": "/nonexistent", "PYENV_ROOT": "/nonexistent"}


def test_without_an_interpreter_the_commands_to_create_one_are_given():
    with pytest.raises(UserError) as caught:
        find_interpreter(python=None, make_env=None, environment=NOWHERE)
    text = str(caught.value)
    assert "no Python 3.7 with TensorFlow 1.15" in text
    assert "python3.7 -m venv ~/tf115" in text
    assert f"pip install {' '.join(PINS)}" in text
    assert "export JUMAR_TF115_PYTHON=" in text
    assert "--make-env" in text


@pytest.mark.parametrize("where", ["--python", "JUMAR_TF115_PYTHON"])
def test_unsuitable_interpreter_is_refused_with_its_version(where: str):
    here = Path(sys.executable)
    environment = {**NOWHERE, **({} if where == "--python" else {where: str(here)})}
    with pytest.raises(UserError, match=f"{where}: .* is Python 3.1") as caught:
        find_interpreter(
            python=here if where == "--python" else None, make_env=None, environment=environment
        )
    assert "Python 3.7 with TensorFlow 1.15 is required" in str(caught.value)


def test_missing_path_and_non_python_file_are_distinguished(tmp_path: Path):
    with pytest.raises(UserError, match="does not exist"):
        find_interpreter(python=tmp_path / "python", make_env=None, environment=NOWHERE)
    text = tmp_path / "text"
    text.write_text("hello")
    with pytest.raises(UserError, match="is not a Python interpreter"):
        find_interpreter(python=text, make_env=None, environment=NOWHERE)


@pytest.mark.parametrize("where", ["--python", "JUMAR_TF115_PYTHON"])
def test_command_on_the_path_is_found_and_both_places_are_named(where: str, tmp_path: Path):
    (tmp_path / "snake").symlink_to(sys.executable)

    def refused(name: str) -> str:
        by_option = where == "--python"
        environment = {**NOWHERE, "PATH": str(tmp_path), **({} if by_option else {where: name})}
        with pytest.raises(UserError) as caught:
            find_interpreter(
                python=Path(name) if by_option else None, make_env=None, environment=environment
            )
        return str(caught.value)

    assert f"'{tmp_path / 'snake'}' is Python 3.1" in refused("snake")
    assert "'adder' does not exist in this folder, nor as a command on PATH" in refused("adder")
    assert "'no/snake' does not exist\n" in refused("no/snake")


def test_environment_is_not_created_over_other_files(tmp_path: Path):
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(UserError, match="exists but is not a virtual environment"):
        find_interpreter(python=None, make_env=tmp_path, environment=NOWHERE)
    assert (tmp_path / "thesis.tex").read_text() == "years of work"


def test_environment_is_not_created_without_python_3_7(tmp_path: Path):
    with pytest.raises(UserError, match="nor any Python 3"):
        find_interpreter(python=None, make_env=tmp_path / "new", environment=NOWHERE)
    assert not (tmp_path / "new").exists()


def test_current_interpreter_is_inspected_without_imports():
    found = probe(Path(sys.executable))
    assert found is not None
    assert found.python == ".".join(str(part) for part in sys.version_info[:3])
    assert not found.is_suitable


def test_interpreter_from_the_variable_is_suitable():
    path = tensorflow_python()
    found = find_interpreter(
        python=None, make_env=None, environment={**NOWHERE, "JUMAR_TF115_PYTHON": path}
    )
    assert found.is_suitable
    assert found.path == Path(path)
