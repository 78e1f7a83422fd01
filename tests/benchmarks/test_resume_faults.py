"""The script that kills runs: what goes on is equal, and what is not equal is named."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from resume_faults import STEPS, arguments, differences
from tests.checkout import CHECKOUT
from tests.cli.in_process import here


@pytest.mark.slow
@pytest.mark.parametrize(("ranks", "kills"), [(1, 12), (2, 5), (3, 3)])
def test_killed_runs_resume_as_if_undisturbed(tmp_path: Path, ranks: int, kills: int) -> None:
    chosen = ("--kills", str(kills), "--seed", "5", "--ranks", str(ranks), "--to", str(tmp_path))
    done = subprocess.run(
        [sys.executable, str(CHECKOUT / "benchmarks" / "resume_faults.py"), *chosen],
        check=False,
        capture_output=True,
        text=True,
        timeout=800,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert " 0 of them not as if undisturbed" in done.stdout
    assert list(tmp_path.iterdir()) == []


def test_differences_after_a_resume_are_named(tmp_path: Path) -> None:
    for name, *more in (("run",), ("same",), ("other", "--set", "seed=2")):
        here(*arguments(tmp_path / name, 0), *more, cwd=tmp_path)
    run, same = tmp_path / "run", tmp_path / "same"
    assert differences(same, run) == []

    state, losses = differences(tmp_path / "other", run)
    assert "parts of the state, first " in state
    assert losses == "losses of steps"

    metrics = same / "metrics.jsonl"
    lines = metrics.read_text(encoding="utf-8").splitlines(keepends=True)
    last = next(line for line in reversed(lines) if json.loads(line)["kind"] == "train")
    metrics.write_text("".join([*lines, last]), encoding="utf-8")
    shutil.copytree(same / "checkpoints", same / "checkpoints" / ".step-00000081.unfinished")
    assert differences(same, run) == [
        f"{STEPS + 1} log lines for {STEPS} steps",
        ".step-00000081.unfinished is left",
    ]
