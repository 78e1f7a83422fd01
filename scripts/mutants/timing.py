"""A plugin of pytest: how long each test took, as JSON in the file JUMAR_TEST_SECONDS."""

import json
import os
from collections import defaultdict
from pathlib import Path

import pytest

_seconds: defaultdict[str, float] = defaultdict(float)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Add a phase of a test that passed; one that fails anyway can tell nothing of a defect."""
    if report.outcome == "passed":
        _seconds[report.nodeid] += report.duration
    else:
        _seconds[report.nodeid] = float("nan")


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Write what was seen, from the process that hears of all tests."""
    if not hasattr(session.config, "workerinput"):
        passed = {name: took for name, took in _seconds.items() if took == took}
        path = Path(os.environ["JUMAR_TEST_SECONDS"])
        path.write_text(json.dumps(passed, indent=0), encoding="utf-8")
