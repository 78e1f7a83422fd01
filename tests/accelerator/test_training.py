"""Train, evaluate and resume on the available device."""

import math
import shutil
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from jumar.devices.contract import Device
from jumar.precision.modes import MODES
from jumar.runs.evaluate import EvaluateRequest, evaluate_run
from jumar.training.run_directory import RunDirectory
from tests.accelerator.small_images import FULL, HALF, LOW, STEPS, train

pytestmark = pytest.mark.accelerator
SAVED = ("model.safetensors", "ema.safetensors", "optimizer.safetensors")


@pytest.fixture(scope="module")
def whole(device: Device, images: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run in bfloat16."""
    run = tmp_path_factory.mktemp("runs") / "whole"
    train(run, device, images, [LOW])
    return run


@pytest.fixture(scope="module")
def float32_loss(device: Device, images: Path, tmp_path_factory: pytest.TempPathFactory) -> float:
    """The loss of the last step in float32."""
    return train(tmp_path_factory.mktemp("full") / "run", device, images, [FULL])["train_loss"]


def checkpoint(run: Path, step: int) -> Path:
    return run / "checkpoints" / f"step-{step:08d}"


def assert_equal_bits(one: Path, other: Path) -> None:
    for name in SAVED:
        first, second = load_file(one / name), load_file(other / name)
        assert first.keys() == second.keys()
        odd = [key for key in first if not torch.equal(first[key], second[key])]
        assert odd == [], f"{name} differs"


def test_run_names_the_device_and_its_memory(device: Device, whole: Path) -> None:
    results = RunDirectory(whole).read_results()
    assert results is not None
    assert results["device"] == {"kind": device.kind, "name": device.name}
    assert results["memory_peak_bytes"] > 0
    assert results["steps"] == STEPS


def test_training_lowers_the_loss(whole: Path) -> None:
    losses = [
        record["loss"] for record in RunDirectory(whole).read_metrics() if record["kind"] == "train"
    ]
    assert len(losses) == STEPS
    assert losses[-1] < losses[0]


def test_evaluation_reproduces_the_training_scores(
    device: Device, whole: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    again = tmp_path / "again"
    shutil.copytree(whole, again)
    assert evaluate_run(EvaluateRequest(run_dir=again, which="last", device=str(device))) == 0
    results = RunDirectory(whole).read_results()
    assert results is not None
    assert results["eval_samples"] == 11
    last = capsys.readouterr().out.splitlines()[-1].split()
    assert last[0] == str(STEPS)
    assert float(last[2]) == pytest.approx(results["metrics"]["top1"], abs=1e-3)


def test_resumed_run_is_bitwise_equal_to_an_uninterrupted_one(
    device: Device, images: Path, whole: Path, tmp_path: Path
) -> None:
    stopped = tmp_path / "stopped"
    shutil.copytree(whole, stopped)
    shutil.rmtree(checkpoint(stopped, STEPS))
    (stopped / "results.json").unlink()
    assert_equal_bits(checkpoint(whole, HALF), checkpoint(stopped, HALF))
    train(stopped, device, images, resume=True)
    assert_equal_bits(checkpoint(whole, STEPS), checkpoint(stopped, STEPS))


def test_two_runs_are_bitwise_equal(
    device: Device, images: Path, whole: Path, tmp_path: Path
) -> None:
    train(tmp_path / "twin", device, images, [LOW])
    assert_equal_bits(checkpoint(whole, STEPS), checkpoint(tmp_path / "twin", STEPS))


def test_another_seed_gives_different_results(
    device: Device, images: Path, whole: Path, tmp_path: Path
) -> None:
    """Otherwise the equality of two runs would say nothing."""
    train(tmp_path / "other", device, images, [LOW, "seed=2"])
    with pytest.raises(AssertionError, match="differs"):
        assert_equal_bits(checkpoint(whole, STEPS), checkpoint(tmp_path / "other", STEPS))


@pytest.mark.parametrize("mode", [mode.name for mode in MODES])
def test_every_precision_mode_trains_like_float32(
    device: Device, images: Path, tmp_path: Path, float32_loss: float, mode: str
) -> None:
    run = tmp_path / mode
    scale = ["precision.loss_scale.init_loss_scale=1024", "data.eval_path=none"]
    results = train(
        run, device, images, [f"precision.mode={mode}", "precision.loss_scale=fixed", *scale]
    )
    assert results["skipped_steps"] == 0
    assert math.isfinite(results["train_loss"])
    # Six steps on one network: bfloat16 moves its loss by up to 1 %.
    assert results["train_loss"] == pytest.approx(float32_loss, rel=0.05)
