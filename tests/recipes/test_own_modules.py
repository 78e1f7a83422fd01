"""Modules of the user's own: only those that were named, and none out of a run directory."""

import importlib
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from jumar.ground.errors import UserError
from jumar.recipes import own_modules
from jumar.recipes.own_modules import (
    check_named,
    enclosing_run,
    import_named,
    keep_runs_from_being_imported,
)
from tests.cli.command_line import environment
from tests.cli.in_process import here

PAYLOAD = "from pathlib import Path\nPath({!r}).write_text('was here')\n"
SETTINGS = {"recipe": "alexnet-demo", "imports": [], "settings": {}}


@pytest.fixture(autouse=True)
def clean(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """What a test imports and puts on the path is forgotten after it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(own_modules, "_named", set[str]())
    yield
    for name in list(sys.modules):
        if name.split(".")[0] in ("a", "runs", "link", "linked", "elsewhere"):
            del sys.modules[name]
    importlib.invalidate_caches()


def make_run(path: Path, **recipe: object) -> Path:
    path.mkdir(parents=True)
    (path / "recipe.json").write_text(json.dumps({**SETTINGS, **recipe}))
    return path


def lay(path: Path) -> Path:
    """A module that writes a file next to itself when it is executed; returns that file."""
    trace = path.parent / f"{path.stem}.trace"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(PAYLOAD.format(str(trace)))
    return trace


@pytest.mark.parametrize(
    ("file", "name", "here"),
    [
        ("runs/a/payload_1.py", "runs.a.payload_1", "."),
        ("runs/a/payload_2.py", "a.payload_2", "runs"),
        ("runs/a/payload_3.py", "payload_3", "runs/a"),
        ("runs/a/deep/payload_4.py", "payload_4", "runs/a/deep"),
        ("runs/a/__init__.py", "runs.a", "."),
        ("runs/a/payload_5/__init__.py", "payload_5", "runs/a"),
        ("runs/a/tensorboard/compat/payload_6.py", "tensorboard.compat.payload_6", "runs/a"),
    ],
)
def test_nothing_inside_a_run_is_imported_from_any_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file: str, name: str, here: str
) -> None:
    make_run(tmp_path / "runs" / "a")
    trace = lay(tmp_path / file)
    monkeypatch.chdir(tmp_path / here)
    with pytest.raises(UserError):
        import_named([name])
    assert not trace.exists()


def test_module_inside_a_run_is_refused_with_its_file_and_a_remedy(tmp_path: Path) -> None:
    make_run(tmp_path / "a")
    lay(tmp_path / "a" / "payload.py")
    with pytest.raises(UserError, match="from which nothing is imported") as found:
        import_named(["a.payload"])
    assert str(tmp_path / "a" / "payload.py") in found.value.what
    assert "outside the run" in found.value.todo


def test_symbolic_links_do_not_bypass_the_check(tmp_path: Path) -> None:
    run = make_run(tmp_path / "elsewhere" / "run")
    trace = lay(run / "payload.py")
    (tmp_path / "link.py").symlink_to(run / "payload.py")
    (tmp_path / "linked").symlink_to(run)
    outside = lay(tmp_path / "outside" / "payload.py")
    (run / "out").symlink_to(tmp_path / "outside")
    for name in ("link", "linked.payload", "elsewhere.run.out.payload"):
        with pytest.raises(UserError):
            import_named([name])
    assert not trace.exists()
    assert not outside.exists()


def test_later_imports_do_not_come_from_a_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A package that is missing here and that a library tries to import."""
    keep_runs_from_being_imported()
    run = make_run(tmp_path / "run")
    trace = lay(run / "json5_missing.py")
    monkeypatch.syspath_prepend(run)
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("json5_missing")
    assert importlib.util.find_spec("json5_missing") is None
    assert not trace.exists()


def test_run_does_not_hide_an_outside_module_of_the_same_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = make_run(tmp_path / "run")
    hidden = lay(run / "my_net_7.py")
    monkeypatch.syspath_prepend(run)
    trace = lay(tmp_path / "own" / "my_net_7.py")
    sys.path.append(str(tmp_path / "own"))
    import_named(["my_net_7"])
    assert trace.exists()
    assert not hidden.exists()


def test_modules_next_to_runs_are_imported_even_from_a_folder_named_like_the_run(
    tmp_path: Path,
) -> None:
    make_run(tmp_path / "my_net_8")
    lay(tmp_path / "my_part_8.py")
    (tmp_path / "my_net_8.py").write_text("import my_part_8\n")
    import_named(["my_net_8"])
    assert (tmp_path / "my_part_8.trace").exists()


def test_another_programs_recipe_json_does_not_make_a_run(tmp_path: Path) -> None:
    (tmp_path / "recipe.json").write_text('{"ingredients": ["flour"]}')
    trace = lay(tmp_path / "my_net_9.py")
    import_named(["my_net_9"])
    assert trace.exists()
    (tmp_path / "recipe.json").write_text("{")
    assert enclosing_run(tmp_path / "my_net_9.py") == tmp_path


def test_installed_packages_are_found_even_if_the_environment_is_inside_a_run() -> None:
    assert enclosing_run(Path(json.__file__)) is None
    assert enclosing_run(Path(own_modules.__file__)) is None


def test_recorded_modules_are_named_with_the_option_to_import_them(tmp_path: Path) -> None:
    lay(tmp_path / "my_named.py")
    import_named(["my_named"])
    check_named(["my_named"], "recipe.json")
    with pytest.raises(UserError) as result:
        check_named(["my_named", "my_other", "my.third"], "run/recipe.json")
    assert "my_other, my.third" in result.value.what
    assert result.value.todo.endswith("--import my_other --import my.third")


COMMANDS = {
    "evaluate": ("evaluate", "run"),
    "resume": ("train", "--resume", "--run-dir", "run"),
    "train": ("train", "alexnet-demo", "--run-dir", "run"),
    "profile": ("profile", "run"),
    "predict": ("predict", "run", "file.wav"),
    "denoise": ("denoise", "run", "in.png", "--to", "out.png"),
    "generate": ("generate", "run", "--to", "drawn"),
    "export": ("weights", "export", "run", "--to", "tf1"),
    "a first stage": ("train", "vqvae-prior", "--run-dir", "new", "--set", "vqvae.run=run"),
}


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS.keys())
def test_every_command_that_opens_a_run_requires_its_modules(
    tmp_path: Path, command: tuple[str, ...]
) -> None:
    trace = lay(tmp_path / "payload_10.py")
    make_run(tmp_path / "run", imports=["payload_10"])
    (tmp_path / "file.wav").touch()
    (tmp_path / "in.png").touch()
    done = here(*command, cwd=tmp_path, code=2)
    assert f"{Path('run', 'recipe.json')}: the run needs the module payload_10" in done.err
    assert "--import payload_10" in done.err
    assert not trace.exists()


@pytest.mark.parametrize("inside", [False, True])
def test_commands_execute_nothing_from_a_foreign_run(tmp_path: Path, inside: bool) -> None:
    """From the folder around the run and from that of the run, started as torchrun does."""
    run = make_run(tmp_path / "run", imports=["run.payload"])
    traces = [lay(run / f"{name}.py") for name in ("payload", "cyclopts", "torch", "tensorboard")]
    done = subprocess.run(
        [sys.executable, "-m", "jumar", "evaluate", "." if inside else "run"],
        cwd=run if inside else tmp_path,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 2, done.stderr
    assert "--import run.payload" in done.stderr
    assert [trace.name for trace in traces if trace.exists()] == []
