"""A small network of the layers that recipes have, and images for it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image
from torch import nn

from jumar.data.images.image_set import ImageData
from jumar.data.pixels.preprocessing import plain_preprocessing
from jumar.devices.contract import Device
from jumar.models.keyed_dropout import KeyedDropout
from jumar.recipes.classification import ClassificationRecipe, Network
from jumar.recipes.registry import register
from jumar.runs.train import TrainRequest, train_recipe
from jumar.training.optimizers import Momentum
from jumar.training.run_directory import RunDirectory
from jumar.training.schedules import Cosine
from jumar.training.settings import CheckpointSettings, TrainingSettings

NAME = "small-on-accelerators"
STEPS, HALF = 6, 3
CLASSES, SIDE = 3, 24
FULL, LOW, HALF_PRECISION = (
    f"precision.mode={mode}"
    for mode in ("must_keep_origin_dtype", "allow_mix_precision_bf16", "allow_mix_precision")
)


@dataclass(frozen=True, kw_only=True)
class SmallNetwork(Network):
    """Convolutions, also grouped, batch norm, pooling, keyed dropout and a dense layer."""

    def create(self, *, num_classes: int, image_size: int) -> nn.Module:
        return nn.Sequential(
            nn.Conv2d(3, 16, 3, stride=2, padding=1, bias=False),
            nn.BatchNorm2d(16),
            nn.ReLU(),
            nn.Conv2d(16, 32, 3, padding=1, groups=4),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Flatten(),
            KeyedDropout(0.2),
            nn.Linear(32 * (image_size // 4) ** 2, num_classes),
        )


@register(NAME)
def small_images() -> ClassificationRecipe:
    """A small network on written images."""
    return ClassificationRecipe(
        model=SmallNetwork(),
        data=ImageData(
            image_size=SIDE,
            batch_size=8,
            workers=0,
            preprocessing=replace(plain_preprocessing(), flip=True),
        ),
        optimizer=Momentum(learning_rate=0.02, momentum=0.9, weight_decay=1e-4),
        schedule=Cosine(),
        training=TrainingSettings(
            duration=f"{STEPS}it",
            log_every="1it",
            evaluate_every=f"{HALF}it",
            ema_decay=0.9,
            deterministic=True,
        ),
        checkpoints=CheckpointSettings(every=f"{HALF}it", keep=3),
    )


def write_images(folder: Path) -> Path:
    """PNG files whose class is their colour, in noise."""
    random = np.random.default_rng(3)
    for part, count in (("train", 32), ("val", 11)):
        for number in range(count):
            label = number % CLASSES
            pixels = random.integers(0, 156, (SIDE, SIDE, 3))
            pixels[..., label] += 100
            place = folder / part / f"class-{label}"
            place.mkdir(parents=True, exist_ok=True)
            Image.fromarray(pixels.astype(np.uint8)).save(place / f"{number}.png")
    return folder


def train(
    run: Path,
    device: Device | str,
    images: Path,
    assignments: Sequence[str] = (),
    *,
    resume: bool = False,
) -> dict[str, Any]:
    """Train, or go on; returns the run's results."""
    request = TrainRequest(
        recipe=None if resume else NAME,
        assignments=() if resume else [f"data.path={images}", *assignments],
        run_dir=run,
        device=str(device),
        resume=resume,
    )
    assert train_recipe(request) == 0
    results = RunDirectory(run).read_results()
    assert results is not None
    return results
