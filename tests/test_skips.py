"""The end of a run of the tests says what was skipped and why, in five lines."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import SLOWEST
from tests.skips import MAX_SKIP_LINES, VARIABLE, skip_reason, skip_summary, unexpected_skips

CHECKOUT = Path(__file__).resolve().parents[1]


def test_reasons_are_counted_without_their_paths() -> None:
    skips = [("a.py", f"Skipped: needs data in /home/{n}/x, beside") for n in range(3)]
    assert skip_summary(skips) == ["3  needs data in ... beside"]


def test_commands_of_documents_count_as_one_reason() -> None:
    assert skip_reason("tests/test_docs.py", "Skipped: jumar train: needs hours") == skip_reason(
        "/x/tests/test_docs.py", "jumar port: needs a device"
    )


def test_summary_has_at_most_five_lines_and_loses_no_reason() -> None:
    skips = [("a.py", f"needs thing {n}") for n in range(9) for _ in range(n + 1)]
    lines = skip_summary(skips)
    assert len(lines) == MAX_SKIP_LINES
    assert lines[0] == " 9  needs thing 8"
    assert lines[-1].startswith("15  needs thing 4 (5); ")
    assert "needs thing 0 (1)" in lines[-1]
    assert skip_summary([]) == []


def test_run_says_what_it_skipped(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text("from tests.conftest import pytest_terminal_summary\n")
    (tmp_path / "test_x.py").write_text(
        "import pytest\n\n\ndef test_one():\n    pytest.skip('needs a device')\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-n", "1", str(tmp_path)],
        cwd=CHECKOUT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "1 skipped" in done.stdout
    assert "1  needs a device" in done.stdout


def test_disallowed_skip_is_named_once_with_its_count() -> None:
    skips = [("a.py", "Skipped: needs chromium")] * 2 + [("tests/b.py", "Skipped: needs hours")]
    assert unexpected_skips(skips, ["needs hours"]) == [
        "skipped, but could have been run: needs chromium (2)"
    ]
    assert unexpected_skips(skips, [r"b\.py", "^a.py: needs chromium$"]) == []


@pytest.mark.parametrize(("allowed", "code"), [("needs a device", 0), ("# needs a device", 1)])
def test_run_fails_on_a_disallowed_skip(allowed: str, code: int, tmp_path: Path) -> None:
    hooks = ("configure", "sessionfinish", "terminal_summary")
    (tmp_path / "conftest.py").write_text(
        "".join(f"from tests.conftest import pytest_{hook}\n" for hook in hooks)
    )
    (tmp_path / "test_x.py").write_text(
        "import os\n\nimport pytest\n\n\ndef test_one():\n"
        f"    assert '{VARIABLE}' not in os.environ\n    pytest.skip('needs a device')\n"
    )
    (tmp_path / "allowed").write_text(allowed + "\n")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-n", "1", str(tmp_path)],
        cwd=CHECKOUT,
        env={**os.environ, VARIABLE: str(tmp_path / "allowed")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == code, done.stdout
    assert ("could have been run: needs a device (1)" in done.stdout) == bool(code)


def test_files_scheduled_first_exist() -> None:
    assert not [name for name in SLOWEST if not (CHECKOUT / name).is_file()]
