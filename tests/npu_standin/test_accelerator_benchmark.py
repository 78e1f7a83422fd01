"""`benchmarks/accelerator.py` where the device is another than the CPU: the stand-in."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.npu_standin.conftest import CHECKOUT

START = """
import runpy, sys
from tests.npu_standin import install
install()
sys.argv[0] = "benchmarks/accelerator.py"
runpy.run_path(sys.argv[0], run_name="__main__")
"""


@pytest.mark.slow
def test_parts_are_measured_on_the_stand_in(npu_process: dict[str, str], tmp_path: Path) -> None:
    out = tmp_path / "out"
    options = ["--device", "npu", "--small", "--minutes", "15", "--out", str(out)]
    # The part "tests" runs what test_accelerator_tests.py runs.
    parts = ["--part", "pretraining"]
    done = subprocess.run(
        [sys.executable, "-c", START, *options, *parts],
        cwd=CHECKOUT,
        env=npu_process,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr + (out / "log.txt").read_text()[-4000:]
    results = json.loads((out / "results.json").read_text())
    assert results["machine"]["device"] == "npu: stand-in NPU 0"
    rows = [row for each in results["parts"]["pretraining"] for row in each["rows"]]
    ours = [row for row in rows if row["of"].startswith("jumar")]
    assert len(ours) == 3
    assert all(row["samples_s"] > 0 and row["memory_mib"] > 0 for row in ours)
