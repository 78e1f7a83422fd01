"""What every test may ask for."""

import os
import signal
from pathlib import Path

import pytest
from hypothesis import settings

from tests.skip_summary import summary

# By default an example that takes longer than 200 ms fails, as any does now and then on a machine
# with something else to do.
settings.register_profile("any-machine", deadline=None)
settings.load_profile("any-machine")

# Background jobs of a script start with Ctrl-C ignored and those of nohup with SIGHUP, and so would
# every process of theirs: the tests that send it to one would wait for ever.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
    signal.signal(signal.SIGHUP, signal.SIG_DFL)

SHARED = Path(__file__).resolve().parents[1].parent / "shared"
REQUIRED = os.environ.get("JUMAR_REQUIRE_SHARED", "0") not in ("", "0")


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder with real data and the original TensorFlow numbers, beside the checkout.

    The project's CI sets JUMAR_REQUIRE_SHARED: there, a missing folder would otherwise turn the
    proof against the original numbers into skips that nobody reads.
    """
    if not (SHARED / "data").is_dir():
        if REQUIRED:
            pytest.fail(f"{SHARED} is missing; without it, set JUMAR_REQUIRE_SHARED=0 to skip")
        pytest.skip(f"needs the reference data in {SHARED}, which is not part of the checkout")
    return SHARED


@pytest.fixture(scope="session")
def parity(shared: Path) -> Path:
    """Numbers made with the original TensorFlow code."""
    return shared / "data" / "parity"


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say what was skipped and why; see `tests/skip_summary.py`."""
    skips: list[tuple[str, str]] = []
    for report in terminalreporter.stats.get("skipped", []):
        path, _, reason = report.longrepr
        skips.append((str(path), str(reason)))
    if skips:
        terminalreporter.section("skipped")
        for line in summary(skips):
            terminalreporter.line(line)
