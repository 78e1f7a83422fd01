"""The cost of a training step in jumar's trainer, against the best loop written by hand.

    python benchmarks/training_step.py --network resnext50 --size 64 --batch 16
    python benchmarks/training_step.py --network ds-cnn-s --batch 100 --steps 60

Three rivals take turns at every step, in one process on the same batch of bytes:

- `jumar`: the real trainer. The benchmark is its data set: from handing over a batch to being
  asked for the next one is a step, with loop, loss sums, checks, schedule and data loader.
- `hand`: a loop over the same network with bf16 autocast, channels_last, fused SGD and images
  that are normalised already; forward, loss, backward, update, zero_grad, nothing else.
- `timm`: the same loop over timm's resnext50_32x4d, where timm can be imported.

For ds-cnn-s the batch is one-second clips, the MFCC front end is part of the step on both sides,
and the optimizer is a fused Adam: the smallest step of all recipes, for which the trainer's own
work counts most.

Time is the process's CPU time on one thread, which neighbours on the machine disturb least; the
medians over the steps are compared. Exit code 1 if jumar costs over 2 % (ds-cnn-s: 5 %) more than
`hand` or is slower than `timm`.
"""

import argparse
import itertools
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median

import torch
from torch import nn
from torch.nn import functional

from jumar.data.samples import Fetched, SampleKey
from jumar.devices.process import set_threads
from jumar.devices.registry import open_device
from jumar.models.keyed_random import set_random_position
from jumar.precision.policy import PrecisionPolicy
from jumar.recipes.classification import ClassificationRecipe
from jumar.recipes.ds_cnn import KeywordRecipe
from jumar.recipes.registry import create_recipe
from jumar.settings import override
from jumar.tasks.classification import ClassificationTask
from jumar.tasks.keywords import KeywordTask
from jumar.tasks.task import Task
from jumar.training.parallel.ranks import Ranks
from jumar.training.progress import Console
from jumar.training.run_directory import RunDirectory
from jumar.training.settings import Plan
from jumar.training.signals import StopRequest
from jumar.training.trainer import Trainer
from model_step import INSTALL, import_timm

WARM_UP = 3
ALLOWED, ALLOWED_FOR_CLIPS = 1.02, 1.05
CLIPS = "ds-cnn-s"


class Rivals:
    """A data set whose `fetch` is the referee: it times the trainer and runs the other loops."""

    def __init__(
        self, batch: dict[str, torch.Tensor], others: dict[str, Callable[[], None]]
    ) -> None:
        self.batch = batch
        self.others = others
        self.times: dict[str, list[float]] = {name: [] for name in ("jumar", *others)}
        self._handed_over: float | None = None

    def __len__(self) -> int:
        return 10_000_000

    def fetch(self, keys: Sequence[SampleKey]) -> Fetched:
        del keys
        if self._handed_over is not None:
            self.times["jumar"].append(time.process_time() - self._handed_over)
        # The order changes, since the second finds the caches full of the first one's data.
        turn = list(self.others.items())
        for name, step in turn if len(self.times["jumar"]) % 2 else reversed(turn):
            start = time.process_time()
            step()
            self.times[name].append(time.process_time() - start)
        self._handed_over = time.process_time()
        return Fetched(batch=self.batch)


def hand_written(
    network: nn.Module,
    optimizer: torch.optim.Optimizer,
    loss: Callable[[], torch.Tensor],
) -> Callable[[], None]:
    """The best training loop that a person would write for a network."""
    network.train()
    steps = itertools.count()

    def step() -> None:
        set_random_position(network, next(steps), 0)
        with torch.autocast("cpu", torch.bfloat16):
            value = loss()
        value.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    return step


def over_pictures(
    network: nn.Module, images: torch.Tensor, labels: torch.Tensor
) -> Callable[[], None]:
    """The plain loop over an image classifier, whose images are already normalised."""
    network.to(memory_format=torch.channels_last)  # pyright: ignore[reportCallIssue]
    optimizer = torch.optim.SGD(
        network.parameters(), lr=0.01, momentum=0.9, nesterov=True, weight_decay=1e-4, fused=True
    )
    return hand_written(
        network,
        optimizer,
        lambda: functional.cross_entropy(network(images), labels, label_smoothing=0.1),
    )


def over_clips(
    network: nn.Module, front_end: nn.Module, audio: torch.Tensor, labels: torch.Tensor
) -> Callable[[], None]:
    """The plain loop over a network that takes clips through its front end."""
    network.to(memory_format=torch.channels_last)  # pyright: ignore[reportCallIssue]
    optimizer = torch.optim.Adam(network.parameters(), lr=5e-4, fused=True)
    return hand_written(
        network,
        optimizer,
        lambda: functional.cross_entropy(network(front_end(audio)), labels),
    )


def settings(chosen: argparse.Namespace) -> list[str]:
    """Settings common to both kinds of network."""
    return [
        f"data.batch_size={chosen.batch}",
        "data.workers=0",
        "precision.mode=allow_mix_precision_bf16",
        "precision.loss_scale=none",
        f"training.duration={chosen.steps + WARM_UP}it",
        "training.evaluate_every=",
    ]


def pictures(chosen: argparse.Namespace) -> tuple[Rivals, Task, Plan]:
    """The rivals over an image classifier, with the trainer's task and plan."""
    recipe = override(
        create_recipe(chosen.network), [f"data.image_size={chosen.size}", *settings(chosen)]
    )
    assert isinstance(recipe, ClassificationRecipe)
    pixels = torch.randint(0, 256, (chosen.batch, chosen.size, chosen.size, 3), dtype=torch.uint8)
    batch = {
        "image": pixels.permute(0, 3, 1, 2),
        "label": torch.randint(0, 1000, (chosen.batch,)),
    }
    images = recipe.data.preprocessing.on_device(batch, training=False)

    def network() -> nn.Module:
        return recipe.model.create(num_classes=1000, image_size=chosen.size)

    others = {"hand": over_pictures(network(), images, batch["label"])}
    timm = import_timm() if chosen.network == "resnext50" else None
    if timm is not None:
        model = timm.create_model("resnext50_32x4d", num_classes=1000)
        others["timm"] = over_pictures(model, images, batch["label"])
    rivals = Rivals(batch, others)
    task = ClassificationTask(
        network(),
        recipe.data.preprocessing,
        train_data=rivals,
        eval_data=None,
        label_smoothing=0.1,
        decays=recipe.model.decays,
        num_classes=1000,
    )
    return rivals, task, recipe.plan(chosen.network)


def clips(chosen: argparse.Namespace) -> tuple[Rivals, Task, Plan]:
    """The rivals over DS-CNN-S on clips of noise, with the trainer's task and plan."""
    recipe = override(create_recipe(chosen.network), settings(chosen))
    assert isinstance(recipe, KeywordRecipe)
    batch = {
        "audio": 0.1 * torch.randn(chosen.batch, recipe.data.clip_samples),
        "label": torch.randint(0, len(recipe.data.labels), (chosen.batch,)),
    }
    by_hand = over_clips(
        recipe.build_model(), recipe.build_front_end(), batch["audio"], batch["label"]
    )
    rivals = Rivals(batch, {"hand": by_hand})
    front_end = recipe.build_front_end()
    task = KeywordTask(
        recipe.build_model(),
        front_end,
        picture=front_end.log_mel,
        labels=recipe.data.labels,
        train_data=rivals,
        eval_data=None,
    )
    return rivals, task, recipe.plan(chosen.network)


def main() -> int:
    """Run the benchmark; the exit code says whether the promise holds."""
    parser = argparse.ArgumentParser(description=str(__doc__).split("\n")[0])
    parser.add_argument("--network", choices=("resnext50", "alexnet", CLIPS), default="resnext50")
    parser.add_argument("--size", type=int, default=64, help="px; pictures only")
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--steps", type=int, default=15)
    chosen = parser.parse_args()
    set_threads(1)
    torch.manual_seed(1)
    rivals, task, plan = (clips if chosen.network == CLIPS else pictures)(chosen)
    with tempfile.TemporaryDirectory() as folder:
        policy = PrecisionPolicy(plan.precision, device_type="cpu")
        policy.install()
        Trainer(
            task,
            plan,
            device=open_device("cpu"),
            ranks=Ranks(),
            run=RunDirectory(Path(folder)),
            console=Console(silent=True),
            stop=StopRequest(),
            policy=policy,
            versions={},
        ).train()
        policy.close()
    return report(rivals.times, chosen)


def report(times: dict[str, list[float]], chosen: argparse.Namespace) -> int:
    """Print medians and ratios; 1 if the promise does not hold."""
    medians = {name: median(values[WARM_UP:]) for name, values in times.items()}
    size = "" if chosen.network == CLIPS else f" {chosen.size} px"
    print(
        f"{chosen.network}{size}, batch {chosen.batch}, bf16, channels_last, fused; "
        f"torch {torch.__version__}, 1 thread, median CPU time of {chosen.steps} steps"
    )
    for name, value in medians.items():
        print(
            f"  {name:<6} {1000 * value:8.1f} ms  {chosen.batch / value:7.1f} samples/s  "
            f"jumar costs {medians['jumar'] / value:.3f} of it"
        )
    if "timm" not in medians and chosen.network == "resnext50":
        print(INSTALL)
    allowed = ALLOWED_FOR_CLIPS if chosen.network == CLIPS else ALLOWED
    slow = medians["jumar"] > allowed * medians["hand"]
    return int(slow or medians["jumar"] > medians.get("timm", float("inf")))


if __name__ == "__main__":
    sys.exit(main())
