"""Several ranks: torchrun with gloo on the CPU."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

from jumar.training.checkpoint import STATE, load_weights
from jumar.training.checkpoint_retention import list_checkpoints
from jumar.training.checkpoint_state import read_values
from tests.cli.command_line import SMALL, environment, jumar
from tests.running import is_running

CHECKOUT = Path(__file__).resolve().parents[3]
COMMON = [
    *SMALL,
    "--device",
    "cpu",
    "--set",
    "training.duration=4it",
    "--set",
    "precision.mode=must_keep_origin_dtype",
]


def torchrun(arguments: list[str], cwd: Path, ranks: int = 2) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [
            sys.executable,
            "-m",
            "torch.distributed.run",
            "--standalone",
            "--nproc-per-node",
            str(ranks),
            "-m",
            "jumar",
            *arguments,
        ],
        cwd=cwd,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def losses(run: Path) -> list[float]:
    lines = (run / "metrics.jsonl").read_text().splitlines()
    return [record["loss"] for record in map(json.loads, lines) if record["kind"] == "train"]


def test_two_ranks_give_the_loss_curve_of_one_with_the_same_global_batch(tmp_path: Path) -> None:
    one = ["train", "alexnet-demo", *COMMON, "--run-dir", "one", "--set", "data.batch_size=8"]
    jumar(*one, cwd=tmp_path)
    two = ["train", "alexnet-demo", *COMMON, "--run-dir", "two", "--set", "data.batch_size=4"]
    child = torchrun(two, tmp_path)
    out, err = child.communicate(timeout=240)
    assert child.returncode == 0, out + err
    assert "batch: 8 = 2 ranks x 4" in out
    assert losses(tmp_path / "two") == pytest.approx(losses(tmp_path / "one"), rel=1e-4)
    results = [
        json.loads((tmp_path / name / "results.json").read_text()) for name in ("one", "two")
    ]
    assert results[0]["eval_samples"] == results[1]["eval_samples"]
    assert results[1]["ranks"] == 2
    assert results[1]["metrics"]["loss"] == pytest.approx(results[0]["metrics"]["loss"], rel=1e-4)


@pytest.mark.parametrize("task", ["gan", "masked"])
def test_small_task_trains_alike_on_one_and_on_two_ranks(tmp_path: Path, task: str) -> None:
    """A GAN with two objectives, and a loss whose weights differ between ranks and parts."""
    weights, result, windows = [], [], []
    for ranks in (1, 2):
        folder = tmp_path / str(ranks)
        folder.mkdir()
        torchrun = ["torch.distributed.run", "--standalone", "--nproc-per-node", str(ranks)]
        done = subprocess.run(
            [
                sys.executable,
                "-m",
                *torchrun,
                "-m",
                "tests.training.small_task_on_ranks",
                task,
                str(folder),
            ],
            cwd=CHECKOUT,
            env=environment(),
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        last = list_checkpoints(folder / "checkpoints")[-1]
        weights.append(load_weights(last.model_file(ema=False)))
        objectives = read_values(last.path / STATE)["objectives"].values()
        windows.append([objective["window"] for objective in objectives])
        result.append(json.loads((folder / "results.json").read_text()))
    assert result[0]["metrics"] == pytest.approx(result[1]["metrics"], rel=1e-4)
    assert result[0].get("score_tables") == result[1].get("score_tables")
    assert bool(result[0].get("score_tables")) == (task == "gan")
    for one, two in zip(*windows, strict=True):
        assert one["steps"] == two["steps"] > 0
        assert one["sums"] == pytest.approx(two["sums"], rel=1e-4)
    for name, value in weights[0].items():
        torch.testing.assert_close(weights[1][name], value, rtol=1e-5, atol=1e-6)


def test_every_rank_exits_when_one_dies(tmp_path: Path) -> None:
    arguments = [
        "train",
        "alexnet-demo",
        *COMMON,
        "--run-dir",
        "r",
        "--set",
        "training.duration=5000it",
    ]
    child = torchrun(arguments, tmp_path)
    assert child.stdout is not None
    for line in child.stdout:
        if line.startswith("step: "):
            break
    workers = _children(child.pid)
    assert len(workers) == 2
    os.kill(workers[1], signal.SIGKILL)
    start = time.monotonic()
    child.communicate(timeout=90)
    assert child.returncode != 0
    assert time.monotonic() - start < 60
    assert not any(is_running(pid) for pid in workers)


def _children(pid: int) -> list[int]:
    text = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    return sorted(int(child) for child in text.split())
