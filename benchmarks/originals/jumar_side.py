"""One training step of a recipe on a fixed batch: the child of `original_step.py`.

Builds the recipe's own task, data and optimizers and steps through jumar's stepper; then answers
each line `N` on its input with the times of N steps in milliseconds. Nothing is left out of the
step that the trainer would do in it; making the batch is not timed, as on the other side.
"""

import json
import sys
import tempfile
import time
import wave
from pathlib import Path

import numpy as np
import torch
from PIL import Image

from jumar.data.records.tfrecord import framed_payload
from jumar.data.samples import SampleKey
from jumar.data.text.instance_batch import batch_of, payloads
from jumar.data.text.original_order import Instance
from jumar.data.text.pretraining_options import PretrainingOptions
from jumar.data.text.vocabulary import SPECIAL
from jumar.devices.registry import open_device
from jumar.observer import Observers
from jumar.recipes.registry import create_recipe
from jumar.runs.context import apply_settings
from jumar.settings import override
from jumar.training.guard import Guard
from jumar.training.parallel.ranks import Ranks
from jumar.training.state import TrainState
from jumar.training.step import Stepper

PIECES = 21_128
WORDS = ("yes", "no", "up", "down", "left", "right", "on", "off", "stop", "go")


def write_pictures(folder: Path) -> None:
    """Random pictures as PNG, a part to train on and one to score on."""
    random = np.random.default_rng(1)
    for part, count in (("train", 64), ("val", 2)):
        (folder / part / "all").mkdir(parents=True)
        for number in range(count):
            pixels = random.integers(0, 256, (160, 160, 3), dtype=np.uint8)
            Image.fromarray(pixels).save(folder / part / "all" / f"{number}.png")


def write_clips(folder: Path) -> None:
    """One second of noise a clip, in Speech Commands' layout."""
    random = np.random.default_rng(1)
    for word in (*WORDS, "cat"):
        (folder / word).mkdir(parents=True)
        for speaker in range(40):
            path = folder / word / f"{speaker:08x}_nohash_0.wav"
            with wave.open(str(path), "wb") as file:
                file.setparams((1, 2, 16000, 16000, "NONE", ""))
                samples = random.integers(-3000, 3000, 16000).astype("<i2")
                file.writeframes(samples.tobytes())


def write_instances(folder: Path) -> None:
    """Full pre-training instances of 128 word pieces, and a vocabulary."""
    folder.mkdir()
    random = np.random.default_rng(1)
    options = PretrainingOptions(max_seq_length=128, max_predictions_per_seq=20)
    instances = [
        Instance(
            ids=random.integers(1000, PIECES, 128).tolist(),
            first=62,
            is_random_next=number % 2 == 0,
            positions=sorted((random.permutation(126)[:20] + 1).tolist()),
            labels=random.integers(1000, PIECES, 20).tolist(),
        )
        for number in range(64)
    ]
    with (folder / "all.tfrecord").open("wb") as file:
        for record in payloads(batch_of(instances, options)):
            file.write(framed_payload(record))
    pieces = [*SPECIAL, *(f"w{number}" for number in range(PIECES - len(SPECIAL)))]
    (folder / "vocab.txt").write_text("\n".join(pieces))


def write_signs(folder: Path) -> None:
    """Random pictures with four words each, in ICDAR's form."""
    random = np.random.default_rng(1)
    (folder / "train").mkdir(parents=True)
    for number in range(16):
        pixels = random.integers(0, 256, (512, 512, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(folder / "train" / f"img_{number}.png")
        lines: list[str] = []
        for left in (20, 150, 280, 400):
            top = int(random.integers(20, 440))
            low, right = top + 40, left + 90
            lines.append(f"{left},{top},{right},{top},{right},{low},{left},{low},word\n")
        (folder / "train" / f"gt_img_{number}.txt").write_text("".join(lines))


WRITERS = {
    "signs": write_signs,
    "pictures": write_pictures,
    "clips": write_clips,
    "instances": write_instances,
}


def main() -> None:
    """Serve steps until the input ends."""
    name, kind, threads, *assignments = sys.argv[1:]
    with tempfile.TemporaryDirectory() as place:
        data = Path(place) / "data"
        WRITERS[kind](data)
        vocabulary = [f"model.vocabulary={data / 'vocab.txt'}"] if kind == "instances" else []
        recipe = override(
            create_recipe(name),
            [
                f"data.path={data / '*.tfrecord' if kind == 'instances' else data}",
                *vocabulary,
                "data.workers=0",
                f"threads.intra_op={threads}",
                "training.duration=1000000it",
                *assignments,
            ],
        )
        device = open_device("cpu")
        plan = recipe.plan(name)
        policy = apply_settings(recipe, device)
        task = recipe.build_task(lambda _: None)
        ranks = Ranks()
        state = TrainState(task, plan, device, ranks, policy)
        guard = Guard([objective.name for objective in task.objectives], device.torch, ranks)
        stepper = Stepper(
            state,
            plan,
            ranks,
            guard,
            steps_per_epoch=1000,
            total_steps=1_000_000,
            observers=Observers(),
        )
        size = len(task.train_data)
        keys = [SampleKey(0, index % size) for index in range(plan.batch_size)]
        batch = task.train_data.fetch(keys).batch
    task.model.train()
    for objective in task.objectives:
        objective.train()
    print(f"ready torch {torch.__version__}", flush=True)
    for line in sys.stdin:
        times: list[float] = []
        for _ in range(int(line)):
            start = time.perf_counter()
            stepper.step(batch)
            times.append(1000 * (time.perf_counter() - start))
        print(json.dumps(times), flush=True)


if __name__ == "__main__":
    main()
