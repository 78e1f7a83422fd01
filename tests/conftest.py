"""What every test may ask for."""

import os
import re
import signal
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

from tests.stalled_workers import note_tests, watch

if TYPE_CHECKING:
    from tests.stores.servers import Server

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
MOST_SKIP_LINES = 5

_DOCUMENT = re.compile(r"(^|/)test_docs\.py$")
_NAMED = re.compile(r"'[^']*'|(?<!\w)/\S+")


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


@pytest.fixture(scope="session")
def store_server() -> "Iterator[Server]":
    """A real server of an object store on this machine, with one bucket."""
    from tests.stores.servers import is_moto_installed, moto_server

    if not is_moto_installed():
        pytest.skip(
            "needs obstore and moto's server: pip install obstore 'moto[s3]' flask flask-cors"
        )
    with moto_server() as server:
        yield server


def pytest_configure(config: pytest.Config) -> None:
    """Have the workers of pytest-xdist watched."""
    note_tests(config)
    watch(config)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say what was skipped and why: hundreds of skips that nobody reads hide the one that should
    not be there.
    """
    skips: list[tuple[str, str]] = []
    for report in terminalreporter.stats.get("skipped", []):
        path, _, reason = report.longrepr
        skips.append((str(path), str(reason)))
    if skips:
        terminalreporter.section("skipped")
        for line in skip_summary(skips):
            terminalreporter.line(line)


def skip_reason(path: str, reason: str) -> str:
    """A reason as it is counted: without paths, and one for all commands of documents.

    Args:
        path: The file of the test.
        reason: What the test said, with or without pytest's `Skipped: `.
    """
    if _DOCUMENT.search(path):
        return "commands of documents that are shown and not run"
    plain = _NAMED.sub("...", reason.removeprefix("Skipped: "))
    return re.sub(r"^could not import .*", "needs a package that is not installed", plain)


def skip_summary(skips: Iterable[tuple[str, str]]) -> list[str]:
    """Lines with counts and reasons, the most frequent first; the rest in the last one.

    Args:
        skips: File and reason of each skipped test.
    """
    counts = Counter(skip_reason(path, reason) for path, reason in skips)
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    if len(ordered) > MOST_SKIP_LINES:
        ordered, rest = ordered[: MOST_SKIP_LINES - 1], ordered[MOST_SKIP_LINES - 1 :]
        others = "; ".join(f"{reason} ({count})" for reason, count in rest)
        ordered.append((others, sum(count for _, count in rest)))
    width = max((len(str(count)) for _, count in ordered), default=0)
    return [f"{count:{width}}  {reason}" for reason, count in ordered]
