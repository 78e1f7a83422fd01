"""Folders of tests that passed are gone when the run ends, those of a failed test are kept."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.checkout import CHECKOUT

CONFTEST = "from tests.conftest import _remove_folders\n"
TESTS = """
import pytest


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("shared")
    (folder / "checkpoint").write_text("large")
    return folder


def test_own(tmp_path, made):
    (tmp_path / "run").write_text("large")
    assert {outcome}


def test_next(tmp_path, made):
    kept = (tmp_path.parent / "test_own0").exists()
    assert kept != {outcome}
    assert (made / "checkpoint").exists()
"""


@pytest.mark.parametrize("passes", [True, False])
def test_folders_of_tests_and_of_their_files_are_removed_unless_one_failed(
    tmp_path: Path, passes: bool
) -> None:
    (tmp_path / "conftest.py").write_text(CONFTEST)
    (tmp_path / "test_a.py").write_text(TESTS.format(outcome=passes))
    base = tmp_path / "base"
    settings = ["-c", str(CHECKOUT / "pyproject.toml"), "--rootdir", str(tmp_path)]
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *settings]
    done = subprocess.run(
        [*command, "--basetemp", str(base), str(tmp_path / "test_a.py")],
        cwd=CHECKOUT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == (0 if passes else 1), done.stdout + done.stderr
    kept = sorted(path.name for path in base.iterdir() if path.is_dir() and not path.is_symlink())
    assert kept == ([] if passes else ["shared0", "test_own0"])
