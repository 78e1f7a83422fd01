"""Running the command line in the tests' own process: without the two seconds of importing torch.

For everything that signals, terminals, ranks or a dying process have no part in.
"""

import contextlib
import io
import os
from collections.abc import Generator
from pathlib import Path
from typing import NamedTuple

from jumar.cli.main import run

SMALL_RECIPE = ("small", "--import", "tests.cli.small_recipe", "--device", "cpu")


class Done(NamedTuple):
    """What a command printed and left."""

    code: int
    out: str
    err: str

    @property
    def message(self) -> str:
        """The error, without the line breaks of its hint."""
        return " ".join(self.err.split())


def here(*arguments: str | Path, cwd: Path, code: int = 0) -> Done:
    """Run a command in a folder and check its exit code; any exception is a defect."""
    done = any_end(*arguments, cwd=cwd)
    assert done.code == code, f"exit {done.code}\n{done.out}\n{done.err}"
    return done


def any_end(*arguments: str | Path, cwd: Path) -> Done:
    """Run a command in a folder with any exit code; any exception is a defect."""
    done = unchecked_end(*arguments, cwd=cwd)
    if done.code == 2:
        assert done.err.startswith("jumar: "), done.err
        assert "Traceback" not in done.err
    return done


def unchecked_end(*arguments: str | Path, cwd: Path) -> Done:
    """The same, also where lines of the standard error come before the error."""
    out, err = io.StringIO(), io.StringIO()
    left = 0
    with _inside(cwd), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            run([str(argument) for argument in arguments])
        except SystemExit as leaving:
            left = int(leaving.code or 0)
    return Done(left, out.getvalue(), err.getvalue())


def train(*arguments: str | Path, cwd: Path, code: int = 0) -> Done:
    """Train the small recipe."""
    return here("train", *SMALL_RECIPE, *arguments, cwd=cwd, code=code)


def settings(**values: object) -> list[str]:
    """`--set` options; `__` stands for the point."""
    options: list[str] = []
    for name, value in values.items():
        options += ["--set", f"{name.replace('__', '.')}={value}"]
    return options


@contextlib.contextmanager
def _inside(folder: Path) -> Generator[None]:
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)
