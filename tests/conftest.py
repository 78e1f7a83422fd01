"""What every test may ask for."""

import os
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

from tests.skips import (
    ALLOWED,
    UNEXPECTED,
    keep_allowed,
    reported_skips,
    skip_summary,
    unexpected_skips,
)
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


@pytest.fixture(scope="module", autouse=True)
def _remove_folders(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[None]:
    """Remove what the fixtures of a file made, as tmp_path's own folders are.

    Pytest would keep it to the end of the run, and small disks became full.
    """
    folder = tmp_path_factory.getbasetemp()
    before = set(folder.iterdir())
    failures = request.session.testsfailed
    yield
    if request.session.testsfailed == failures:
        for made in set(folder.iterdir()) - before:
            shutil.rmtree(made, ignore_errors=True)


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
    """Have the workers of pytest-xdist watched, and remember which skips are in order."""
    note_tests(config)
    keep_allowed(config)
    watch(config)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say what was skipped and why: hundreds of skips that nobody reads hide the one that should
    not be there.
    """
    skips = reported_skips(terminalreporter)
    if skips:
        terminalreporter.section("skipped")
        for line in skip_summary(skips):
            terminalreporter.line(line)
    for line in terminalreporter.config.stash.get(UNEXPECTED, []):
        terminalreporter.line(line, red=True)


# Files of few tests that take long, the longest first. A file is one worker's, so one that begins
# last keeps the other waiting. From `pytest --durations`.
SLOWEST = (
    "tests/test_docs.py",
    "tests/cli/test_precision_diverge.py",
    "tests/npu_standin/test_route.py",
    "tests/runs/test_elastic.py",
    "tests/training/parallel/test_replicated.py",
    "tests/porting/check/test_checking.py",
    "tests/benchmarks/test_accelerator.py",
    "tests/cli/test_precision_search.py",
    "tests/benchmarks/test_resume_faults.py",
    "tests/cli/test_train.py",
    "tests/training/parallel/test_exact.py",
    "tests/npu_standin/test_standin.py",
    "tests/cli/test_interruption.py",
    "tests/cli/test_several_ranks.py",
    "tests/cli/test_sweep.py",
    "tests/parity/test_videnn.py",
    "tests/parity/test_alexnet.py",
    "tests/npu_standin/test_accelerator_benchmark.py",
    "tests/test_stalled_workers.py",
    "tests/training/test_compile.py",
    "tests/test_make.py",
    "tests/runs/test_weights_of_every_recipe.py",
    "tests/test_packaging.py",
    "tests/cli/test_resume_with_other_ranks.py",
    "tests/benchmarks/test_fuzz_readers.py",
    "tests/attacks/test_every_command.py",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the slowest files; the tests of a file stay in their order."""
    place = {name: number for number, name in enumerate(SLOWEST)}
    items.sort(key=lambda item: place.get(item.nodeid.partition("::")[0], len(SLOWEST)))


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fail a run that skipped what it could have run, where the caller says what may skip."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    allowed = session.config.stash.get(ALLOWED, None)
    if reporter is None or allowed is None:
        return
    unexpected = unexpected_skips(reported_skips(reporter), allowed)
    session.config.stash[UNEXPECTED] = unexpected
    if unexpected and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
