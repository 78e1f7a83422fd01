"""The tests that need a device: `pytest -m accelerator`, a file a measurement."""

import importlib.util
import os
import subprocess
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from xml.etree import ElementTree

from on_accelerator.measuring import Context, Failed, Measurement, Missing, Row

_CHECKOUT = Path(__file__).resolve().parents[2]
_TESTS = _CHECKOUT / "tests" / "accelerator"
_IN_SMALL = "test_keyed_random"
DEVICE_VARIABLE = "JUMAR_ACCELERATOR"
"""Names the device to the tests."""


def measurements(context: Context) -> Sequence[Measurement]:
    """One a file."""
    return [
        Measurement(name=path.stem, measure=partial(tested, path=path), seconds=30)
        for path in sorted(_TESTS.glob("test_*.py"))
        if not context.small or path.stem == _IN_SMALL
    ]


def tested(context: Context, *, path: Path) -> list[Row]:
    """Run a file's tests; a row a test."""
    if importlib.util.find_spec("pytest") is None:
        raise Missing("needs pytest, which is not installed")
    report = context.work / f"{path.stem}.xml"
    report.unlink(missing_ok=True)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "accelerator"]
    paths = [str(_CHECKOUT / "src"), str(_CHECKOUT), os.environ.get("PYTHONPATH", "")]
    done = subprocess.run(
        [*command, str(path), f"--junitxml={report.absolute()}"],
        cwd=_CHECKOUT,
        env={
            **os.environ,
            DEVICE_VARIABLE: context.device,
            "PYTHONPATH": os.pathsep.join(filter(None, paths)),
        },
        check=False,
    )
    rows = _rows(report) if report.is_file() else []
    failed = [row["test"] for row in rows if row["outcome"] == "failed"]
    if failed or done.returncode or not rows:
        raise Failed(rows, f"pytest left with exit code {done.returncode}; see log.txt")
    return rows


def _rows(report: Path) -> list[Row]:
    rows: list[Row] = []
    for case in ElementTree.parse(report).iter("testcase"):  # noqa: S314 - pytest's, from above
        found = {each.tag: each.get("message") or "" for each in case}
        bad = found.get("failure", found.get("error"))
        why = bad or found.get("skipped", "")
        outcome = "passed" if not found.keys() & {"failure", "error", "skipped"} else "skipped"
        rows.append(
            {
                "test": case.get("name"),
                "outcome": "failed" if bad is not None else outcome,
                "seconds": float(case.get("time", 0)),
                "why": why.partition("\n")[0][:200],
            }
        )
    return rows
