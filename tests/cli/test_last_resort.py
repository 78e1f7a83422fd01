"""Uncaught errors: those that the user can fix become a message, bugs keep their traceback."""

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from jumar.cli.last_resort import as_user_error, headline
from jumar.ground import paths
from tests.cli.in_process import here
from tests.other_user import open_folder, run_without_rights

FAILING = ("train", "failing", "--import", "tests.cli.failing_recipe", "--device", "cpu")


@pytest.mark.parametrize(
    ("number", "todo"),
    [
        (errno.EACCES, "ls -ld"),
        (errno.ENAMETOOLONG, "Its longest name has"),
        (errno.ELOOP, "form a loop"),
        (errno.ENOTDIR, ""),
        (errno.EISDIR, "name a file"),
        (errno.EROFS, "a writable disk"),
        (errno.ENOSPC, "Free some space"),
        (errno.EDQUOT, "quota"),
        (errno.EIO, "dmesg"),
        (errno.EMFILE, "ulimit -n"),
    ],
)
def test_system_errors_on_user_paths_are_user_errors(
    number: int, todo: str, tmp_path: Path
) -> None:
    error = as_user_error(OSError(number, os.strerror(number), str(tmp_path / "there")))
    assert error is not None
    assert error.where == str(tmp_path / "there")
    assert todo in error.todo


def test_suggested_command_quotes_a_path_with_spaces(tmp_path: Path) -> None:
    folder = tmp_path / "dir w"
    folder.mkdir()
    error = as_user_error(OSError(errno.EACCES, os.strerror(errno.EACCES), str(folder / "there")))
    assert error is not None
    assert error.todo.endswith(f"ls -ld '{folder}'")


def test_missing_package_files_are_a_defect(tmp_path: Path) -> None:
    missing = FileNotFoundError(
        errno.ENOENT, "No such file", str(Path(paths.__file__).parent / "x")
    )
    assert as_user_error(missing) is None
    installed = tmp_path / "lib" / "site-packages" / "torch" / "x"
    assert as_user_error(FileNotFoundError(errno.ENOENT, "No such file", str(installed))) is None


@pytest.mark.parametrize(
    ("number", "is_fixable"),
    [(errno.ENOSPC, True), (errno.EIO, True), (errno.EBADF, False), (errno.ECONNREFUSED, False)],
)
def test_without_a_path_only_disk_and_limit_errors_are_user_errors(
    number: int, is_fixable: bool
) -> None:
    assert (as_user_error(OSError(number, os.strerror(number))) is not None) == is_fixable


@pytest.mark.parametrize(
    ("command", "field"),
    [("train", "data.batch_size"), ("generate", "--batch"), ("denoise", "model.tile")],
)
def test_out_of_memory_error_names_the_setting_to_lower(command: str, field: str) -> None:
    error = as_user_error(MemoryError(), [command, "x", "--set", "model.width=9", "--to", "a=b"])
    assert error is not None
    assert field in error.todo
    assert "Your settings: model.width=9" in error.todo
    assert "a=b" not in error.todo


def test_network_too_large_for_memory_is_refused_with_the_requested_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAILS_WITH", "torch")
    done = here(*FAILING, cwd=tmp_path, code=2)
    assert "there is not enough memory: 10.0 GiB were requested at once" in done.err
    assert "fields of `model`" in done.err
    assert list(tmp_path.iterdir()) == []


def test_defect_is_one_line_followed_by_its_traceback(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FAILS_WITH", "key")
    with pytest.raises(KeyError):
        here(*FAILING, cwd=tmp_path)
    line = headline(KeyError("x"), FAILING)
    assert line.startswith("jumar: internal error: KeyError: 'x' (a bug in jumar, or in a module")
    assert line.endswith("please report it with the traceback below)")
    assert "\n" not in headline(ValueError("one\ntwo"))


def test_defect_prints_its_line_first_and_exits_with_1(tmp_path: Path) -> None:
    code = (
        "import os, sys; os.environ['FAILS_WITH'] = 'key'\n"
        "from jumar.cli.main import run; run(sys.argv[1:])"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run(
        [sys.executable, "-c", code, *FAILING],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr.startswith("jumar: internal error: KeyError: 'x' (a bug in jumar")
    assert done.stderr.count("internal error") == 1
    assert "Traceback (most recent call last)" in done.stderr


COMMANDS = [
    ("evaluate", "PATH"),
    ("predict", "PATH", "x.png"),
    ("train", "small", "--import", "tests.cli.small_recipe", "--set", "data.path=PATH"),
    ("train", "small", "--import", "tests.cli.small_recipe", "--set", "transfer.start_from=PATH"),
    ("train", "small", "--import", "tests.cli.small_recipe", "--run-dir", "PATH"),
    ("report", "PATH"),
    ("weights", "show", "PATH"),
    ("weights", "import", "alexnet", "PATH", "--to", "x.safetensors"),
    ("data", "tfrecord", "PATH", "--to", "x"),
    ("profile", "show", "PATH"),
    ("port", "PATH"),
    ("port", "lint", "PATH"),
    ("port", "check", "PATH", "--", "x.py"),
    ("port", "report", "PATH"),
]


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_every_command_handles_paths_that_the_system_refuses(
    command: tuple[str, ...], tmp_path: Path
) -> None:
    (tmp_path / "loop").symlink_to("loop")
    for path, reason in (
        ("y" * 300, "File name too long"),
        ("loop", "Too many levels of symbolic links"),
    ):
        tokens = [token.replace("PATH", path) for token in command]
        done = here(*tokens, cwd=tmp_path, code=2)
        assert reason in done.err
    assert [result.name for result in tmp_path.iterdir()] == ["loop"]


def test_every_command_names_an_inaccessible_folder() -> None:
    code = (
        "for command in COMMANDS:\n"
        "    for kind in ('closed', 'none'):\n"
        "        if (os.geteuid() == 0) == (kind == 'none'):\n"
        "            try: run([each.replace('PATH', f'{kind}/inside') for each in command])\n"
        "            except SystemExit as left: print(left.code, *command)\n"
    )
    with open_folder() as place:
        (place / "closed").mkdir(mode=0o600)
        message = run_without_rights(
            # With a path that is missing first: it loads what a command needs.
            f"import os, sys; sys.path[:0] = {sys.path!r}\n"
            f"from jumar.cli.main import run\nCOMMANDS = {COMMANDS!r}\n{code}print('=' * 9)",
            code,
            cwd=place,
        )
    answers = message.partition("=" * 9)[2]
    assert answers.count("2 ") >= len(COMMANDS)
    assert "Traceback" not in answers
    assert answers.count(f"This user may not enter {place}/closed.") == len(COMMANDS), answers


@pytest.mark.parametrize("command", [("recipes", "list"), ("data", "--help")])
def test_closed_pipe_ends_a_command_silently_with_141(
    command: tuple[str, ...],
) -> None:
    """As in `jumar recipes list | true`: a shell sees what a signal of the pipe would have left."""
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "wb") as gone:
        done = subprocess.run(
            [sys.executable, "-m", "jumar", *command],
            stdout=gone,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert done.returncode == 141
    assert done.stderr == ""
