"""Code that runs as a user without rights, since root may enter every folder."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

NOBODY = 65534


@contextmanager
def open_folder() -> Generator[Path]:
    """A folder that every user may enter; those of pytest are their owner's alone."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o777)
        yield Path(name)


def run_without_rights(imports: str, code: str, *arguments: str | Path, cwd: Path) -> str:
    """Run code in a process without rights and give back what it prints.

    Args:
        imports: Runs before the rights are dropped: the checkout may be readable for us alone.
        code: Runs afterwards.
        arguments: `sys.argv[1:]` of both.
        cwd: Where.
    """
    drop = f"import os\nif os.geteuid() == 0: os.setgroups([]); os.setresuid(*[{NOBODY}] * 3)"
    done = subprocess.run(
        [sys.executable, "-c", f"{imports}\n{drop}\n{code}", *map(str, arguments)],
        cwd=cwd,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    if "PermissionError" in done.stderr and "setgroups" in done.stderr:
        pytest.skip("needs the right to become another user")
    return done.stdout + done.stderr
