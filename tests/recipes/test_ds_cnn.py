import json
from pathlib import Path

import pytest
import torch

from jumar.devices.registry import open_device
from jumar.ground.errors import UserError
from jumar.precision.policy import PrecisionPolicy
from jumar.precision.settings import PrecisionSettings
from jumar.recipes.ds_cnn import KeywordRecipe
from jumar.recipes.registry import create_recipe
from jumar.settings import override
from jumar.training.checkpoint_retention import list_checkpoints
from jumar.training.schedules import learning_rate
from tests.data.tones import divided
from tests.training.small_tasks import trainer_for
from tests.training.test_trainer import everything, same


def recipe(name: str = "ds-cnn-s", *changes: str) -> KeywordRecipe:
    made = create_recipe(name)
    assert isinstance(made, KeywordRecipe)
    return override(made, changes)


def small(folder: Path, *changes: str) -> KeywordRecipe:
    return recipe(
        "ds-cnn-s",
        f"data.path={folder}",
        "data.words=low,middle,high",
        "data.batch_size=6",
        "data.workers=0",
        "training.duration=4it",
        "training.log_every=1it",
        "training.evaluate_every=2it",
        "checkpoints.every=2it",
        "checkpoints.keep=9",
        *changes,
    )


@pytest.mark.parametrize(
    ("name", "numbers"), [("ds-cnn-s", 23_180), ("ds-cnn-m", 136_580), ("ds-cnn-l", 413_736)]
)
def test_networks_match_the_paper(name: str, numbers: int) -> None:
    made = recipe(name)
    model = made.build_model()
    assert sum(parameter.numel() for parameter in model.parameters()) == numbers
    assert {variable.name for variable in made.tf_names(model).variables} <= set(model.state_dict())
    assert len(made.data.labels) == 12
    features = made.build_front_end()(torch.zeros(2, 16_000))
    assert features.shape == (2, 49, 10)
    assert model(features).shape == (2, 12)


def test_learning_rate_drops_after_ten_and_twenty_thousand_steps() -> None:
    made = recipe()
    rates = {
        step: learning_rate(
            made.schedule,
            made.optimizer.learning_rate,
            step,
            steps_per_epoch=300,
            total_steps=30_000,
        )
        for step in (0, 9_999, 10_000, 19_999, 20_000, 29_999)
    }
    assert list(rates.values()) == pytest.approx([5e-4, 5e-4, 1e-4, 1e-4, 2e-5, 2e-5])
    assert (made.optimizer.kind, made.optimizer.epsilon) == ("adam", 1e-8)
    assert (made.data.batch_size, made.training.duration) == (100, "30000it")


def test_clips_shorter_than_a_frame_are_refused() -> None:
    with pytest.raises(UserError, match="is shorter than a frame of 40 ms"):
        recipe("ds-cnn-s", "data.clip_ms=30").build_front_end()
    with pytest.raises(UserError, match="front_end"):
        recipe("ds-cnn-s", "data.sample_rate=4000").build_front_end()


@pytest.mark.parametrize(
    "changes",
    [
        ("data.speed=0.1", "data.gain_db=6", "data.background_snr_db=5,20"),
        ("training.micro_batch_size=4", "precision.mode=allow_mix_precision"),
    ],
)
def test_run_in_two_parts_is_bitwise_equal_to_the_whole(
    tmp_path: Path, changes: tuple[str, ...]
) -> None:
    made = small(divided(tmp_path / "set"), *changes)
    plan = made.plan("ds-cnn-s")
    trainers = []
    for name in ("whole", "part", "part"):
        torch.manual_seed(1)
        task = made.build_task(lambda _: None)
        trainer = trainer_for(task, plan, tmp_path / name)
        if len(trainers) == 2:
            trainer.resume(list_checkpoints(tmp_path / "part" / "checkpoints")[0])
            assert trainer.state.step == 2
        assert trainer.train().exit_code == 0
        trainers.append(trainer)
    assert same(everything(trainers[0]), everything(trainers[2]))
    pictures = json.loads(
        (tmp_path / "whole" / "pictures" / "step-00000004" / "captions.json").read_text()
    )
    assert "clips" in json.dumps(pictures)


@pytest.mark.parametrize("mode", ["allow_mix_precision", "force_fp16", "force_fp32", "origin"])
def test_front_end_returns_float32_in_every_mode(tmp_path: Path, mode: str) -> None:
    device = open_device("cpu")
    made = small(divided(tmp_path, train=2, val=1))
    task = made.build_task(lambda _: None)
    policy = PrecisionPolicy(PrecisionSettings(mode=mode), device_type=device.torch.type)
    policy.install()
    audio = torch.randn(2, 16_000, generator=torch.Generator().manual_seed(1)) * 0.1
    exact = made.build_front_end()(audio)
    try:
        with policy.forward():
            features = task.objectives[0].front_end(audio)
            loss = task.objectives[0]({"audio": audio, "label": torch.tensor([0, 1])})["loss"]
    finally:
        policy.close()
    assert torch.equal(features, exact)
    assert torch.isfinite(loss)
