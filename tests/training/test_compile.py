"""training.compile: the same numbers through torch.compile, or a clear refusal."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from jumar.training.settings import TrainingSettings
from tests.cli.command_line import environment
from tests.training.small_tasks import point_task, small_plan, trainer_for

CHECKOUT = Path(__file__).resolve().parents[2]
COMPILER = os.environ.get("CXX", "g++")


@pytest.mark.slow
@pytest.mark.skipif(" " in sys.prefix, reason="torch.compile needs a path without a space")
@pytest.mark.skipif(shutil.which(COMPILER) is None, reason=f"needs a C++ compiler ({COMPILER})")
def test_compiled_run_learns_like_an_uncompiled_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The common cache may hold code for vector units that ATEN_CPU_CAPABILITY rules out here.
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path / "cache"))
    losses: dict[bool, list[float]] = {}
    for compiled in (False, True):
        training = TrainingSettings(log_every="1it", evaluate_every="", compile=compiled)
        task = point_task(torch_dropout=0.0)  # whose numbers a compiled kernel draws otherwise
        trainer = trainer_for(
            task, small_plan(training=training, duration="4it"), tmp_path / str(compiled)
        )
        assert trainer.train().state == "finished"
        records = trainer.run.read_metrics()
        losses[compiled] = [record["loss"] for record in records if record["kind"] == "train"]
    assert losses[True] == pytest.approx(losses[False], rel=1e-4)


def test_without_a_compiler_the_run_is_refused_with_a_remedy(tmp_path: Path) -> None:
    paths = f"{CHECKOUT}:{CHECKOUT / 'src'}"
    nothing = {"CXX": "/nowhere/c++", "TORCHINDUCTOR_CACHE_DIR": str(tmp_path / "cache")}
    arguments = ["train", "small", "--import", "tests.cli.small_recipe", "--device", "cpu"]
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "jumar",
            *arguments,
            "--set",
            "training.compile=true",
            "--run-dir",
            "r",
        ],
        cwd=tmp_path,
        env={**environment(), **nothing, "PYTHONPATH": paths},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 2, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    assert "training.compile: torch.compile failed: " in done.stderr
    assert "--set training.compile=false" in done.stderr
    assert not (tmp_path / "r").exists()
