"""What a run imports: a machine that only trains needs no packages for tables and commands."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.checkout import CHECKOUT

NOT_FOR_TRAINING = ("polars", "jinja2", "cyclopts", "fissix", "sklearn", "scipy", "nltk", "cv2")
TRAIN = f"""
import sys

# An import of what is None here fails, as of what is not installed.
sys.modules |= dict.fromkeys({NOT_FOR_TRAINING!r})
sys.path.insert(0, "benchmarks")

import time
from pathlib import Path

from on_accelerator.cases import OTHERS, PRETRAINING
from on_accelerator.measuring import Context
from jumar.runs.evaluate import EvaluateRequest, evaluate_run
from jumar.runs.train import TrainRequest, train_recipe

out = Path(sys.argv[1])
context = Context(
    device="cpu", small=True, out=out, work=out, data=None, deadline=time.time() + 600
)
for case in (*OTHERS, *PRETRAINING):
    if case.name not in sys.argv[2:]:
        continue
    run = out / case.recipe
    for duration in ("2it", "3it"):
        request = TrainRequest(
            recipe=case.recipe,
            assignments=[*case.settings(context), f"training.duration={{duration}}"],
            run_dir=run,
            device="cpu",
        )
        assert train_recipe(request) == 0
    if case.recipe != "bert-base":
        assert evaluate_run(EvaluateRequest(run_dir=run, which="last", device="cpu")) == 0
    print("trained", case.name)
"""
FAMILIES = ("ViDeNN spatial, 50 px", "DS-CNN S", "VQ-VAE, 128 px", "BERT-base, 128")


@pytest.mark.slow
def test_training_resuming_and_evaluating_do_not_import_tables_or_commands(
    tmp_path: Path,
) -> None:
    done = subprocess.run(
        [sys.executable, "-c", TRAIN, str(tmp_path), *FAMILIES],
        cwd=CHECKOUT,
        env={**os.environ, "PYTHONPATH": str(CHECKOUT / "src"), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    trained = [line for line in done.stdout.splitlines() if line.startswith("trained ")]
    assert sorted(trained) == sorted(f"trained {name}" for name in FAMILIES)
