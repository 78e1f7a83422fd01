"""Two small tasks to train in tests: a classifier with dropout and batch norm, and a GAN."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from jumar.data.samples import Batch, Fetched, SampleKey
from jumar.devices.registry import open_device
from jumar.models.keyed_dropout import KeyedDropout
from jumar.observer import Observer
from jumar.precision.policy import PrecisionPolicy
from jumar.precision.settings import PrecisionSettings
from jumar.tasks.task import Headline, Illustration, Objective, ScoreTable, Task
from jumar.training.optimizers import Momentum, OptimizerSettings
from jumar.training.parallel.ranks import Ranks
from jumar.training.progress import Console
from jumar.training.run_directory import RunDirectory
from jumar.training.schedules import Cosine
from jumar.training.settings import (
    CheckpointSettings,
    Optimization,
    Plan,
    ThreadSettings,
    TrainingSettings,
    TransferSettings,
)
from jumar.training.signals import StopRequest
from jumar.training.trainer import Trainer

CLASSES, FEATURES = 3, 6


class Points:
    """Gaussian clouds; a sample gets noise by its key, as augmentation does."""

    def __init__(self, size: int, seed: int = 0) -> None:
        random = np.random.default_rng(seed)
        self.labels = random.integers(0, CLASSES, size)
        self.points = random.normal(size=(size, FEATURES)) + 2.0 * self.labels[:, None]

    def __len__(self) -> int:
        return len(self.labels)

    def fetch(self, keys: Sequence[SampleKey]) -> Fetched:
        rows = [
            self.points[key.index]
            + 0.1 * np.random.default_rng((key.epoch, key.index)).normal(size=FEATURES)
            for key in keys
        ]
        labels = [int(self.labels[key.index]) for key in keys]
        return Fetched(
            batch={
                "point": torch.tensor(np.array(rows), dtype=torch.float32).reshape(-1, FEATURES),
                "label": torch.tensor(labels, dtype=torch.int64),
            }
        )


class SmallNet(nn.Module):
    """Dense layers with keyed dropout, torch's own dropout and, if asked, batch norm."""

    def __init__(self, *, batch_norm: bool = True, torch_dropout: float = 0.1) -> None:
        super().__init__()
        self.first = nn.Linear(FEATURES, 16)
        self.norm = nn.BatchNorm1d(16) if batch_norm else nn.Identity()
        self.keyed = KeyedDropout(0.2)
        self.own = nn.Dropout(torch_dropout)
        self.last = nn.Linear(16, CLASSES)

    def forward(self, points: torch.Tensor) -> torch.Tensor:
        return self.last(self.own(self.keyed(torch.relu(self.norm(self.first(points))))))


class PointObjective(Objective):
    name = "points"

    def __init__(self, net: nn.Module) -> None:
        super().__init__()
        self.trained = net

    def decays(self, name: str, parameter: nn.Parameter) -> bool:
        return "norm" not in name

    def sums(self, batch: Batch) -> dict[str, torch.Tensor]:
        logits = self.trained(batch["point"])
        return {"loss": functional.cross_entropy(logits, batch["label"], reduction="sum")}


class PointTask(Task):
    name = "points"
    headline = Headline(name="top1", unit="%", higher_is_better=True)

    def __init__(self, net: nn.Module, *, size: int = 40, eval_size: int = 11) -> None:
        self.model = net
        self.objectives = [PointObjective(net)]
        self.train_data = Points(size)
        self.eval_data = Points(eval_size, seed=7) if eval_size else None

    def evaluate_batch(self, batch: Batch) -> dict[str, torch.Tensor]:
        logits = self.model(batch["point"])
        right = (logits.argmax(1) == batch["label"]).sum()
        loss = functional.cross_entropy(logits, batch["label"], reduction="sum")
        return {"count": torch.ones_like(batch["label"]).sum(), "right": right, "loss": loss}

    def summarize(self, sums: Mapping[str, torch.Tensor]) -> dict[str, float]:
        count = sums["count"].item()
        return {"top1": 100 * sums["right"].item() / count, "loss": sums["loss"].item() / count}


class Discriminate(Objective):
    name = "discriminator"

    def __init__(self, pair: nn.ModuleDict) -> None:
        super().__init__()
        self.pair = pair
        self.trained = pair["d"]

    def sums(self, batch: Batch) -> dict[str, torch.Tensor]:
        real = batch["point"]
        fake = self.pair["g"](real[:, :2]).detach()
        loss = (
            torch.relu(1 - self.pair["d"](real)).mean(dim=1).sum()
            + torch.relu(1 + self.pair["d"](fake)).mean(dim=1).sum()
        )
        return {"loss": loss, "real": self.pair["d"](real).mean(dim=1).sum()}


class Generate(Objective):
    name = "generator"

    def __init__(self, pair: nn.ModuleDict) -> None:
        super().__init__()
        self.pair = pair
        self.trained = pair["g"]

    def is_due(self, step: int) -> bool:
        return step % 2 == 0

    def sums(self, batch: Batch) -> dict[str, torch.Tensor]:
        return {"loss": -self.pair["d"](self.pair["g"](batch["point"][:, :2])).mean(dim=1).sum()}


class GanTask(PointTask):
    """Two objectives over one model, each with its own optimizer; scored by rows, not by sums."""

    name = "gan"
    headline = Headline(name="median", unit="", higher_is_better=False)
    gathered = ("generated",)

    def __init__(self) -> None:
        pair = nn.ModuleDict({"g": nn.Linear(2, FEATURES), "d": nn.Linear(FEATURES, 1)})
        super().__init__(pair)
        self.objectives = [Discriminate(pair), Generate(pair)]
        self.averaged = pair["g"]

    def evaluate_batch(self, batch: Batch) -> dict[str, torch.Tensor]:
        generated = self.model["g"](batch["point"][:, :2])
        labels = functional.one_hot(batch["label"], CLASSES).sum(dim=0)
        return {"count": labels.sum(), "labels": labels, "generated": generated}

    def summarize(self, sums: Mapping[str, torch.Tensor]) -> dict[str, float]:
        return {"median": sums["generated"].median().item()}

    def score_tables(self, sums: Mapping[str, torch.Tensor]) -> list[ScoreTable]:
        labels = [str(round(value)) for value in sums["labels"].tolist()]
        rows = len(sums["generated"])
        return [ScoreTable(title="labels", header=["rows", *"abc"], rows=[[str(rows), *labels]])]

    def illustrate(self) -> list[Illustration]:
        image = torch.full((2, 3, 3), 7, dtype=torch.uint8)
        return [Illustration(name="weights", caption="nothing <to> see", image=image)]


class MaskedObjective(Objective):
    """A loss of the points on one side alone, and one of all: sums with different weights."""

    name = "masked"
    minimized = ("one_side", "size")

    def __init__(self, net: nn.Module) -> None:
        super().__init__()
        self.trained = net

    def sums(self, batch: Batch) -> dict[str, torch.Tensor]:
        logits = self.trained(batch["point"])
        losses = functional.cross_entropy(logits, batch["label"], reduction="none")
        mask = self.mask(batch)
        return {
            "one_side": (losses * mask).sum(),
            "size": 0.1 * logits.square().sum(),
            "hits": ((logits.argmax(dim=1) == batch["label"]) * mask).sum(),
        }

    def weights(self, batch: Batch) -> dict[str, torch.Tensor]:
        count = self.mask(batch).sum()
        return {"one_side": count, "hits": count}

    @staticmethod
    def mask(batch: Batch) -> torch.Tensor:
        return batch["point"][:, 0] > 0.3


class MaskedTask(PointTask):
    """Scored as the points are, and trained on some of them."""

    def __init__(self) -> None:
        super().__init__(nn.Linear(FEATURES, CLASSES))
        self.objectives = [MaskedObjective(self.model)]


def small_plan(
    *,
    duration: str = "10it",
    objectives: Sequence[str] = ("points",),
    optimizer: OptimizerSettings | None = None,
    training: TrainingSettings | None = None,
    precision: PrecisionSettings | None = None,
    checkpoints: CheckpointSettings | None = None,
    batch_size: int = 8,
    seed: int = 3,
) -> Plan:
    chosen = training or TrainingSettings(log_every="2it", evaluate_every="1ep")
    schedule = Cosine(warmup="2it")
    best = optimizer or Momentum(learning_rate=0.05, momentum=0.9, nesterov=True, weight_decay=1e-3)
    return Plan(
        recipe="points",
        seed=seed,
        batch_size=batch_size,
        eval_batch_size=4,
        workers=0,
        prefetch=2,
        skip_corrupt=0,
        training=replace(chosen, duration=duration),
        checkpoints=checkpoints or CheckpointSettings(every="3it", keep=10),
        precision=precision or PrecisionSettings(mode="must_keep_origin_dtype"),
        threads=ThreadSettings(),
        transfer=TransferSettings(),
        optimization={name: Optimization(optimizer=best, schedule=schedule) for name in objectives},
    )


def trainer_for(
    task: Task,
    plan: Plan,
    path: Path,
    stop: StopRequest | None = None,
    observers: Sequence[Observer] = (),
    console: Console | None = None,
) -> Trainer:
    path.mkdir(parents=True, exist_ok=True)
    policy = PrecisionPolicy(plan.precision, device_type="cpu")
    policy.install()
    return Trainer(
        task,
        plan,
        device=open_device("cpu"),
        ranks=Ranks(),
        run=RunDirectory(path),
        console=console or Console(silent=True),
        stop=StopRequest() if stop is None else stop,
        policy=policy,
        versions={},
        observers=observers,
    )


def point_task(seed: int = 5, **net: object) -> PointTask:
    torch.manual_seed(seed)
    return PointTask(SmallNet(**net))
