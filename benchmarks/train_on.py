"""Training moves from TensorFlow 1.15 to jumar and back, step by step on the same batch.

    git clone https://github.com/clausmichele/ViDeNN
    python benchmarks/train_on.py --original ViDeNN/Spatial-CNN
        --tensorflow-python ~/tf115/bin/python

The original makes eight steps. After the third, its checkpoint is imported with the state of its
optimizer, jumar makes three steps, its run is exported, and the original's saver restores every
variable of its training graph and makes the last two. Without the optimizer's state the second
step of either would be another one. `original_step.py` says how to get the Python.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import torch

from jumar.devices.registry import open_device
from jumar.observer import Observers
from jumar.recipes.stored import stored_recipe
from jumar.runs.context import apply_settings
from jumar.runs.weights_export import ExportRequest, export_weights
from jumar.runs.weights_import import ImportRequest, import_weights
from jumar.training.checkpoint import write_checkpoint
from jumar.training.checkpoint_retention import find_checkpoint
from jumar.training.guard import Guard
from jumar.training.parallel.ranks import Ranks
from jumar.training.run_directory import RunDirectory
from jumar.training.state import TrainState
from jumar.training.step import Stepper

SIDE = Path(__file__).resolve().parent / "originals" / "tensorflow_training.py"
STEPS, THEIRS, OURS = 8, 3, 3
PATCHES = 4


def original(chosen: argparse.Namespace, batch: Path, *more: str) -> list[float]:
    """The losses that the original prints."""
    command = [chosen.tensorflow_python, str(SIDE), str(chosen.original.resolve()), str(batch)]
    done = subprocess.run([*command, *more], check=True, capture_output=True, text=True)
    return json.loads(done.stdout)


def trained_on(run: RunDirectory, pixels: dict[str, np.ndarray]) -> list[float]:
    """The losses of jumar's steps from the run's checkpoint, and a checkpoint after them."""
    name, _, recipe = stored_recipe(run)
    device, ranks = open_device("cpu"), Ranks()
    plan, policy = recipe.plan(name), apply_settings(recipe, device)
    task = recipe.build_task(lambda _: None)
    state = TrainState(task, plan, device, ranks, policy)
    state.restore(find_checkpoint(run.checkpoints, "last"))
    guard = Guard([one.name for one in task.objectives], device.torch, ranks)
    stepper = Stepper(
        state,
        plan,
        ranks,
        guard,
        steps_per_epoch=1000,
        total_steps=1_000_000,
        observers=Observers(),
    )
    # The original reads blue, green, red; pictures here are red, green, blue.
    batch = {
        key: torch.from_numpy(np.ascontiguousarray(value[..., ::-1].transpose(0, 3, 1, 2)))
        for key, value in pixels.items()
    }
    task.model.train()
    losses: list[float] = []
    for _ in range(OURS):
        for objective in task.objectives:
            objective.train()
        stepper.step(batch)
        window = state.read_window()
        assert window is not None
        losses += window.losses.values()
    write_checkpoint(
        run.checkpoints,
        step=state.step,
        epoch=0.0,
        model=task.model.state_dict(),
        ema=None,
        state=state.capture(),
        batch={},
    )
    return losses


def main() -> int:
    """Train on both sides and print the losses beside each other."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--original", type=Path, required=True, help="folder of its code")
    parser.add_argument("--tensorflow-python", required=True, help="a Python 3.7 that has it")
    chosen = parser.parse_args()
    if not (chosen.original / "model_spatialCNN.py").is_file():
        parser.error(f"there is no model_spatialCNN.py in {chosen.original}")
    random = np.random.default_rng(1)
    clean = random.integers(0, 256, (PATCHES, 50, 50, 3), dtype=np.uint8)
    noisy = np.clip(clean + random.normal(0, 25, clean.shape), 0, 255).astype(np.uint8)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        batch, pictures = folder / "batch.npz", folder / "pictures"
        np.savez(batch, clean=clean, noisy=noisy)
        write_pictures(pictures)
        saved = str(folder / f"model.ckpt-{THEIRS}")
        whole = original(chosen, batch, "", saved, str(THEIRS), str(STEPS))
        run = RunDirectory(folder / "run")
        settings = ["precision.mode=must_keep_origin_dtype", f"data.path={pictures}"]
        settings += [f"data.batch_size={PATCHES}", "data.workers=0"]
        request = ImportRequest(
            recipe="videnn-spatial", file=Path(saved), to=run.path, assignments=settings
        )
        print("\n".join(import_weights(request)[:2]))
        resumed = trained_on(run, {"clean": clean, "noisy": noisy})
        back = folder / "back" / f"model.ckpt-{THEIRS + OURS}"
        export_weights(ExportRequest(source=run.path, out=back))
        left = STEPS - THEIRS - OURS
        again = original(chosen, batch, str(back), str(folder / "x"), "-1", str(left))
    print(f"{'step':>4} {'original':>12} {'there and back':>14}")
    for step, (one, other) in enumerate(
        zip(whole, [*whole[:THEIRS], *resumed, *again], strict=True)
    ):
        where = "jumar" if THEIRS <= step < THEIRS + OURS else "original"
        print(f"{step + 1:4} {one:12.4f} {other:14.4f}  {where}")
    return 0


def write_pictures(folder: Path) -> None:
    """A file that the recipe expects at its path; nothing is learned from it."""
    from PIL import Image

    random = np.random.default_rng(2)
    for part in ("train", "val"):
        (folder / part).mkdir(parents=True)
        pixels = random.integers(0, 256, (64, 64, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(folder / part / "one.png")


if __name__ == "__main__":
    sys.exit(main())
