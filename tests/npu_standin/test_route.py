"""Train, evaluate and go on through the command line, on the stand-in NPU."""

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from tests.npu_standin.conftest import CHECKOUT

SMALL = (
    "training.duration=4it",
    "checkpoints.every=2it",
    "checkpoints.keep=3",
    "data.batch_size=2",
    "data.eval_batch_size=64",
)
LOW = "precision.mode=allow_mix_precision_bf16"
FULL = "precision.mode=must_keep_origin_dtype"


class Jumar:
    """The command with the stand-in installed."""

    def __init__(self, environment: dict[str, str]) -> None:
        self._environment = environment

    def __call__(self, *arguments: str, ranks: int = 1) -> str:
        """What it prints; it has to end well."""
        command = [sys.executable, "-m", "tests.npu_standin.run", *arguments]
        if ranks > 1:
            torchrun = ["torch.distributed.run", "--nproc-per-node", str(ranks)]
            torchrun += ["--rdzv-backend", "c10d", "--rdzv-endpoint", "localhost:0", "-m"]
            command[2:2] = torchrun
        result = subprocess.run(
            command,
            cwd=CHECKOUT,
            env=self._environment,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert result.returncode == 0, result.stdout + result.stderr[-4000:]
        return result.stdout

    def train(self, run: Path, *assignments: str, ranks: int = 1) -> str:
        """A short run of AlexNet on the embedded digits."""
        fields = [text for field in (*SMALL, *assignments) for text in ("--set", field)]
        return self(
            "train", "alexnet-demo", "--device", "npu", "--run-dir", str(run), *fields, ranks=ranks
        )


@pytest.fixture(scope="module")
def jumar(npu_process: dict[str, str]) -> Jumar:
    return Jumar(npu_process)


@pytest.fixture(scope="module")
def trained(jumar: Jumar, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A run of four steps, and what it printed."""
    run = tmp_path_factory.mktemp("route") / "run"
    return run, jumar.train(run, LOW)


def results(run: Path) -> dict[str, Any]:
    return json.loads((run / "results.json").read_text())


def test_first_line_and_results_say_that_training_ran_on_the_npu(
    trained: tuple[Path, str],
) -> None:
    run, printed = trained
    assert printed.startswith("device: npu (stand-in NPU 0)")
    result = results(run)
    assert result["device"] == {"kind": "npu", "name": "stand-in NPU 0"}
    assert result["precision"]["computed"] == "bfloat16"
    assert result["memory_peak_bytes"] > 0
    environment = json.loads((run / "environment.json").read_text())
    assert [device["kind"] for device in environment["accelerators"]] == ["npu", "npu"]


def test_mixed_precision_works_on_the_npu(
    jumar: Jumar, trained: tuple[Path, str], tmp_path: Path
) -> None:
    """An autocast of another device type would leave the loss as it is in float32."""
    jumar.train(tmp_path / "full", FULL, "data.eval_path=none")
    low, full = results(trained[0])["train_loss"], results(tmp_path / "full")["train_loss"]
    assert low != full
    assert low == pytest.approx(full, rel=0.05)


def test_float16_with_a_moving_loss_scale_skips_overflows_on_the_npu(
    jumar: Jumar, tmp_path: Path
) -> None:
    run = tmp_path / "half"
    scale = ("precision.loss_scale.kind=exponential", "precision.loss_scale.init_loss_scale=2**40")
    sinking = (
        "precision.loss_scale.decr_every_n_nan_or_inf=2",
        "precision.loss_scale.decr_ratio=1e-9",
    )
    shorter = ("training.duration=3it", "data.eval_path=none")
    jumar.train(run, "precision.mode=allow_mix_precision", *scale, *sinking, *shorter)
    result = results(run)
    assert result["precision"]["computed"] == "float16"
    assert result["skipped_steps"] == 2


def test_evaluation_scores_every_checkpoint_on_the_npu(
    jumar: Jumar, trained: tuple[Path, str]
) -> None:
    printed = jumar("evaluate", str(trained[0]), "--device", "npu")
    assert printed.startswith("device: npu")
    rows = [line.split() for line in printed.splitlines() if line[:1] == " "]
    header = next(place for place, row in enumerate(rows) if row[0] == "step")
    assert [row[0] for row in rows[header : header + 3]] == ["step", "2", "4"]


def test_resumed_run_is_bitwise_equal_to_an_uninterrupted_one(
    jumar: Jumar, trained: tuple[Path, str], tmp_path: Path
) -> None:
    whole = trained[0]
    stopped = tmp_path / "stopped"
    shutil.copytree(whole, stopped)
    shutil.rmtree(stopped / "checkpoints" / "step-00000004")
    (stopped / "results.json").unlink()
    printed = jumar("train", "--resume", "--run-dir", str(stopped), "--device", "npu")
    assert "resuming from step 2" in printed
    one, other = (run / "checkpoints" / "step-00000004" for run in (whole, stopped))
    before, after = (load_file(place / "model.safetensors") for place in (one, other))
    assert before.keys() == after.keys()
    assert all(torch.equal(before[name], after[name]) for name in before)


def test_two_ranks_train_on_two_npus(jumar: Jumar, tmp_path: Path) -> None:
    run = tmp_path / "two"
    fields = ("training.duration=2it", "data.batch_size=1", "data.eval_path=none", LOW)
    printed = jumar.train(run, *fields, ranks=2)
    assert "batch: 2 = 2 ranks x 1" in printed
    assert results(run)["ranks"] == 2
