"""Each known way to do harm with a file, against each command that reads files of others."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from cyclopts import App

from jumar.cli.main import app
from tests.attacks.commands import ATTACKS, REASONS, REFUSED_ANYWAY, RUN_COMMANDS, Attack, on_run
from tests.attacks.ground import Ground, attacked
from tests.attacks.runs import HARMS, IMPORTS, train_all
from tests.cli.in_process import here


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What others might have sent, before they harmed it."""
    folder = tmp_path_factory.mktemp("runs")
    small = ("small", "--import", IMPORTS["small"], "--device", "cpu")
    here("precision", "dump", *small, "--to", "dump", "--level", "tensors", cwd=folder)
    train_all(folder)
    (folder / "train.py").write_text("import tensorflow as tf\nx = tf.Session()\n")
    here("port", "train.py", "--report", "port.json", cwd=folder)
    return folder


@pytest.fixture
def ground(runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Ground:
    """A user's folders, with a separate home."""
    made = Ground(work=tmp_path / "user" / "work", outside=tmp_path / "user" / "outside", runs=runs)
    for folder in (made.work, made.outside, made.work.parent / "home"):
        folder.mkdir(parents=True)
    made.secret.write_text("secret")
    monkeypatch.setenv("HOME", str(made.work.parent / "home"))
    monkeypatch.setenv("COLUMNS", "200")
    return made


def commands(command: App = app, path: tuple[str, ...] = ()) -> Iterator[str]:
    """The commands that do something."""
    if command.default_command is not None and path:
        yield " ".join(path)
    for name in command:
        if not name.startswith("-"):
            yield from commands(command[name], (*path, name))


def test_each_command_is_attacked_or_says_why_not() -> None:
    attacked_ones = {*ATTACKS, *RUN_COMMANDS}
    assert set(commands()) == attacked_ones | set(REASONS)
    assert not attacked_ones & set(REASONS)


@pytest.mark.parametrize("harm", HARMS)
@pytest.mark.parametrize("command", RUN_COMMANDS)
def test_untrusted_run_does_no_harm(command: str, harm: str, ground: Ground) -> None:
    done = attacked(ground, *on_run(command, harm, ground))
    if harm == "nothing":
        # Else the other runs could be refused for anything.
        assert done.code == (2 if command in REFUSED_ANYWAY else 0), done


@pytest.mark.parametrize(
    "attack",
    [
        pytest.param(attack, id=f"{command}-{attack.__name__}")
        for command, its in ATTACKS.items()
        for attack in its
    ],
)
def test_untrusted_files_do_no_harm(attack: Attack, ground: Ground) -> None:
    for arguments in attack(ground):
        attacked(ground, *arguments)
