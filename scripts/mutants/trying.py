"""A defect put into a copy of the checkout, and what the tests say to it."""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from scripts.mutants.drawing import Mutant

_USAGE = 4
"""Pytest's exit code for names of tests that it does not know."""

Outcome = Literal["killed", "timeout", "survived", "not run"]


@dataclass(frozen=True, kw_only=True)
class Trial:
    """What became of a defect.

    Attributes:
        mutant: The defect.
        outcome: `killed` by a test, by a `timeout`, `survived`, or `not run` by any test.
        killer: The test that failed first; empty where none did.
        tests: How many tests were to run.
    """

    mutant: Mutant
    outcome: Outcome
    killer: str
    tests: int


class Copy:
    """A copy of the checkout to plant defects in, with the interpreter of the checkout."""

    def __init__(self, checkout: Path, folder: Path) -> None:
        """Copy the files that git knows.

        Args:
            checkout: The checkout, with `.venv`.
            folder: Where the copy lies; the checkout's neighbour `shared` is linked beside it.
        """
        self.path = folder / "jumar"
        self.python = Path(sys.executable)
        shutil.rmtree(self.path, ignore_errors=True)
        self.path.mkdir(parents=True)
        known = subprocess.run(
            ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
            cwd=checkout,
            capture_output=True,
            check=True,
        ).stdout.split(b"\0")
        for name in filter(None, known):
            source, to = checkout / os.fsdecode(name), self.path / os.fsdecode(name)
            if source.is_file():
                to.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(source, to)
                shutil.copymode(source, to)
        shared = folder / "shared"
        if not shared.exists() and (checkout.parent / "shared").exists():
            shared.symlink_to((checkout.parent / "shared").resolve())

    @property
    def environment(self) -> dict[str, str]:
        """That in which the copy's own modules are imported."""
        return {
            **os.environ,
            "PYTHONPATH": f"{self.path / 'src'}{os.pathsep}{self.path}",
            "OMP_NUM_THREADS": "1",
        }

    def run(self, tests: Sequence[str], seconds: float) -> tuple[str, str]:
        """Run tests until one fails.

        Args:
            tests: Their names.
            seconds: How long they may take.

        Returns:
            `passed`, `failed` or `timeout`, and the first that failed.

        Raises:
            RuntimeError: There is no test of one of these names, which says nothing of the defect.
        """
        names = self.path.parent / "tests.txt"
        names.write_text("".join(f"{name}\n" for name in tests), encoding="utf-8")
        command = [str(self.python), "-m", "pytest", "-x", "-q", "-o", "addopts=", "-rfE"]
        process = subprocess.Popen(
            [*command, "--no-header", "--tb=no", "-p", "no:cacheprovider", f"@{names}"],
            cwd=self.path,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        try:
            printed, _ = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            return "timeout", ""
        finally:
            _end_session(process)
        if process.returncode == _USAGE and "not found:" in printed:
            # A defect in a constant that is also a test's parameter changes the name of the case.
            functions = list(dict.fromkeys(name.partition("[")[0] for name in tests))
            if functions != list(tests):
                return self.run(functions, seconds)
            raise RuntimeError(f"tests were renamed; leave out --keep-coverage:\n{printed}")
        failed = [line for line in printed.splitlines() if line.startswith(("FAILED", "ERROR"))]
        if process.returncode == 0:
            return "passed", ""
        if not failed:
            return "failed", f"exit {process.returncode}"
        # "FAILED name - reason"; what is in a name's brackets may have blanks.
        return "failed", failed[0].partition(" ")[2].partition(" - ")[0]

    def attempt(self, mutant: Mutant, tests: Sequence[str], seconds: float) -> Trial:
        """Plant a defect, run tests, and take it out again."""
        if not tests:
            return Trial(mutant=mutant, outcome="not run", killer="", tests=0)
        path = self.path / mutant.file
        whole = path.read_text(encoding="utf-8")
        try:
            self._write(path, mutant.text)
            result, killer = self.run(tests, seconds)
        finally:
            self._write(path, whole)
        outcomes: dict[str, Outcome] = {"passed": "survived", "failed": "killed"}
        outcome = outcomes.get(result, "timeout")
        return Trial(mutant=mutant, outcome=outcome, killer=killer, tests=len(tests))

    def _write(self, path: Path, text: str) -> None:
        """Write a file, and remove what was compiled of it: a file of the same size that is written
        within the same second counts as unchanged.
        """
        path.write_text(text, encoding="utf-8")
        for compiled in path.parent.glob(f"__pycache__/{path.stem}.*.pyc"):
            compiled.unlink()


def _end_session(process: "subprocess.Popen[str]") -> None:
    """End a process and all that it started."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        return
    process.wait()
