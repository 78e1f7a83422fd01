"""Every precision mode trains a network of one's own; op lists come from a file."""

import json
import math
from pathlib import Path

import pytest

from jumar.precision.modes import mode_names
from tests.cli.command_line import jumar
from tests.cli.in_process import here, settings, train

MODULE = '''
from torch import nn

from dataclasses import dataclass

from jumar.data.images.image_set import ImageData
from jumar.data.pixels.preprocessing import plain_preprocessing
from jumar.recipes.classification import ClassificationRecipe, Network
from jumar.recipes.registry import register
from jumar.training.settings import TrainingSettings


@dataclass(frozen=True, kw_only=True)
class Mine(Network):
    def create(self, *, num_classes, image_size):
        return nn.Sequential(
            nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Conv2d(4, 4, 3, groups=2),
            nn.LocalResponseNorm(2), nn.AdaptiveAvgPool2d(2), nn.Flatten(),
            nn.Dropout(0.1), nn.Linear(16, num_classes), nn.LogSoftmax(1),
        )


@register("mine")
def mine():
    """Mine."""
    data = ImageData(
        image_size=12, batch_size=4, workers=0, eval_path="none",
        preprocessing=plain_preprocessing(),
    )
    return ClassificationRecipe(
        model=Mine(), data=data, training=TrainingSettings(duration="2it", log_every="1it")
    )
'''
MIXED = "allow_mix_precision"


def losses(run: Path) -> list[float]:
    records = [json.loads(line) for line in (run / "metrics.jsonl").open()]
    return [record["loss"] for record in records if record["kind"] == "train"]


def precision(run: Path) -> dict[str, object]:
    return json.loads((run / "results.json").read_text())["precision"]


def test_network_from_a_user_module_trains_in_a_separate_process(tmp_path: Path) -> None:
    (tmp_path / "my_network.py").write_text(MODULE)
    mode = ["--set", f"precision.mode={MIXED}"]
    command = ["train", "mine", "--import", "my_network", "--run-dir", "r", "--device", "cpu"]
    done = jumar(*command, *mode, cwd=tmp_path)
    assert "computed in bfloat16" in done.stdout.splitlines()[0]
    assert all(map(math.isfinite, losses(tmp_path / "r")))


@pytest.mark.parametrize("emulated", [False, True])
@pytest.mark.parametrize("mode", mode_names())
def test_every_mode_trains_with_a_finite_loss(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: str, emulated: bool
) -> None:
    (tmp_path / "my_modes.py").write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    command = ["mine", "--import", "my_modes", "--run-dir", "r", "--device", "cpu"]
    command += ["--emulate-fp16"] if emulated else []
    done = here("train", *command, *settings(precision__mode=mode), cwd=tmp_path)
    assert len(losses(tmp_path / "r")) == 2
    assert all(map(math.isfinite, losses(tmp_path / "r")))
    result = precision(tmp_path / "r")
    assert (
        f"precision: {result['mode']} computed in {result['computed']}" in done.out.splitlines()[0]
    )


def test_op_list_from_a_file_takes_effect(tmp_path: Path) -> None:
    (tmp_path / "ops.json").write_text(json.dumps({"black-list": {"to-add": ["Conv2D", "MatMul"]}}))
    result: dict[str, list[float]] = {}
    for run, values in {
        "full": {"precision__mode": "must_keep_origin_dtype"},
        "mixed": {"precision__mode": MIXED},
        "listed": {"precision__mode": MIXED, "precision__modify_mixlist": "ops.json"},
    }.items():
        train("--run-dir", run, *settings(**values), cwd=tmp_path)
        result[run] = losses(tmp_path / run)
    assert result["mixed"] != result["full"]
    assert result["listed"] == result["full"]


def test_emulated_fp16_overflows_where_bf16_does_not_and_reports_the_loss_scale_exhausted(
    tmp_path: Path,
) -> None:
    """The exit code is that of a failed run, and the weights are those before the update."""
    scale = settings(
        precision__mode="force_fp16",
        precision__loss_scale__kind="fixed",
        precision__loss_scale__init_loss_scale=2.0**30,
    )
    train("--run-dir", "bf16", *scale, cwd=tmp_path)
    train("--run-dir", "fp16", *scale, "--emulate-fp16", cwd=tmp_path, code=2)
    skipped = {
        run: json.loads((tmp_path / run / "results.json").read_text())["skipped_steps"]
        for run in ("bf16", "fp16")
    }
    assert skipped == {"bf16": 0, "fp16": 2}


MISTAKES = {
    "an unknown op": (
        {"black-list": {"to-add": ["Conv2DD"]}},
        MIXED,
        "did you mean the CANN op type 'Conv2D'",
    ),
    "no such file": (None, MIXED, "the mixlist cannot be read"),
    "a mode that ignores it": ({}, "force_fp16", "'modify_mixlist' has no effect"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_invalid_op_list_is_refused_before_anything_is_opened(tmp_path: Path, name: str) -> None:
    content, mode, message = MISTAKES[name]
    if content is not None:
        (tmp_path / "ops.json").write_text(json.dumps(content))
    options = settings(precision__mode=mode, precision__modify_mixlist="ops.json")
    done = train("--run-dir", "r", *options, cwd=tmp_path, code=2)
    assert message in done.message
    assert "device:" not in done.out
    assert not (tmp_path / "r").exists()
