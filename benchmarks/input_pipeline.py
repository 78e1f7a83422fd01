"""Training batches from photographs: images per second against tf.data and Pillow, as ratios.

    python benchmarks/input_pipeline.py --tensorflow-python /path/to/its/venv/bin/python

Makes 32 JPEGs of 500 x 375 pixels (quality 90, 4:2:0) from pictures of scikit-image's package
(`pip install --no-deps scikit-image`), or takes those of --pictures. Every pipeline decodes, crops
by Inception's rule, resizes to 224 x 224 and mirrors half of them, in batches of 64:

- jumar ships bytes; one row adds the normalisation on the CPU, once a batch
- Pillow decodes, resizes the crop, and normalises each picture to float32, in one process
- tf.data is the original script's graph with float32 normalisation, in a process of its own

Every pipeline lives in its own process for the whole run, and they take turns in each round, so
that a busy machine disturbs all of them alike. Printed are the median images per second by the
clock, the CPU time of an image over all processes and threads of the pipeline, and the medians of
the ratios within a round.
"""

import argparse
import importlib.util
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image

from jumar.data.images.image_set import LabelledPictures, image_set
from jumar.data.loading.faults import FaultTally
from jumar.data.loading.loader import train_batches
from jumar.data.pixels.crop_window import CropRule, draw_window
from jumar.data.pixels.preprocessing import alexnet_preprocessing
from jumar.data.samples import Record

BATCH = 64
SIZE = 224
NAMES = ("astronaut.png", "coffee.png", "chelsea.png", "rocket.jpg")
TENSORFLOW_SCRIPT = Path(__file__).with_name("input_pipeline_tensorflow.py")
TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")


def write_photographs(folder: Path, count: int = 32) -> None:
    """JPEGs of 500 x 375 pixels, cut from the pictures in scikit-image's package."""
    package = importlib.util.find_spec("skimage")
    if package is None or not package.submodule_search_locations:
        raise SystemExit("scikit-image is not installed: pip install --no-deps scikit-image")
    data = Path(package.submodule_search_locations[0]) / "data"
    sources = [Image.open(data / name).convert("RGB") for name in NAMES if (data / name).exists()]
    draws = random.Random(0)
    for number in range(count):
        source = sources[number % len(sources)]
        width = min(source.width, source.height / 0.75) * draws.uniform(0.8, 1)
        height = width * 0.75
        left = draws.uniform(0, source.width - width)
        top = draws.uniform(0, source.height - height)
        picture = source.resize(
            (500, 375), Image.Resampling.LANCZOS, box=(left, top, left + width, top + height)
        )
        picture.save(folder / f"{number:03d}.jpg", quality=90, subsampling="4:2:0")


class Photographs:
    """An image source in memory that repeats a few files as often as an epoch needs."""

    classes = ()

    def __init__(self, folder: Path) -> None:
        self._encoded = [path.read_bytes() for path in sorted(folder.glob("*.jpg"))]

    def __len__(self) -> int:
        return 10_000

    def read(self, index: int) -> Record:
        """One of the files."""
        encoded = self._encoded[index % len(self._encoded)]
        return Record(encoded=encoded, label=0, origin=str(index))


def jumar_batches(folder: Path, workers: int, normalise: bool) -> Iterator[object]:
    """Batches as `jumar train` reads them."""
    preprocessing = alexnet_preprocessing()
    samples = image_set(
        LabelledPictures(
            source=Photographs(folder),
            preprocessing=preprocessing,
            image_size=SIZE,
            num_classes=1,
            seed=0,
            training=True,
        )
    )
    for batch in train_batches(
        samples,
        seed=0,
        first_step=0,
        last_step=10**9,
        batch_per_rank=BATCH,
        workers=workers,
        tally=FaultTally(),
    ):
        yield preprocessing.on_device(batch, training=True) if normalise else batch


def pillow_batches(folder: Path) -> Iterator[NDArray[np.float32]]:
    """Batches as a plain loop over Pillow and numpy makes them."""
    rule = CropRule(area=(0.08, 1.0), aspect=(0.75, 1.333), attempts=10, object_covered=0.1)
    mean = np.array([123.675, 116.28, 103.53], dtype=np.float32)
    std = np.array([58.395, 57.12, 57.375], dtype=np.float32)
    paths = sorted(folder.glob("*.jpg"))
    draws = np.random.default_rng(0)

    def sample() -> NDArray[np.float32]:
        picture = Image.open(paths[draws.integers(len(paths))])
        top, left, height, width = draw_window(picture.height, picture.width, rule, draws)
        box = (left, top, left + width, top + height)
        small = picture.convert("RGB").resize((SIZE, SIZE), Image.Resampling.BILINEAR, box=box)
        if draws.random() < 0.5:
            small = small.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
        return ((np.asarray(small, dtype=np.float32) - mean) / std).transpose(2, 0, 1)

    while True:
        yield np.stack([sample() for _ in range(BATCH)])


def serve(batches: Iterator[object]) -> None:
    """Answer each line `warm-up batches` on standard input with when the batches were made."""
    for line in sys.stdin:
        warm_up, count = (int(word) for word in line.split())
        for _ in range(warm_up):
            next(batches)
        print("warm", flush=True)
        start = time.perf_counter()
        for _ in range(count):
            next(batches)
        print(json.dumps(time.perf_counter() - start), flush=True)


@dataclass(frozen=True, kw_only=True)
class Timing:
    """One pipeline in one round."""

    images_per_s: float
    cpu_us: float


class Pipeline:
    """A pipeline in a process of its own."""

    def __init__(self, command: list[str], environment: Mapping[str, str]) -> None:
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, **environment},
        )

    def run(self, batches: int) -> Timing:
        """Time some batches, after those that were made ahead."""
        self._say(f"8 {batches}")
        self._hear()
        before = cpu_seconds(self._process.pid)
        seconds = float(json.loads(self._hear()))
        used = cpu_seconds(self._process.pid) - before
        images = batches * BATCH
        time.sleep(0.2)  # what is made ahead must not disturb the next pipeline
        return Timing(images_per_s=images / seconds, cpu_us=used / images * 1e6)

    def close(self) -> None:
        """End the process."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()

    def _say(self, line: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{line}\n")
        self._process.stdin.flush()

    def _hear(self) -> str:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise SystemExit(f"a pipeline ended early: {self._process.args}")
        return line


def cpu_seconds(pid: int) -> float:
    """User and system time of a process with its threads and children."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    total = (int(fields[11]) + int(fields[12])) / TICKS_PER_SECOND
    for task in Path(f"/proc/{pid}/task").iterdir():
        total += sum(cpu_seconds(int(child)) for child in (task / "children").read_text().split())
    return total


def pipelines(folder: Path, tensorflow_python: str | None) -> dict[str, Pipeline]:
    """All pipelines by their names in the table."""
    one_thread = {"OMP_NUM_THREADS": "1"}

    def own(kind: str) -> Pipeline:
        return Pipeline([sys.executable, __file__, "--serve", kind, str(folder)], one_thread)

    made = {
        "jumar, main process": own("jumar-0"),
        "jumar, 1 worker": own("jumar-1"),
        "jumar, 2 workers": own("jumar-2"),
        "jumar, 2 workers, normalised": own("jumar-2-normalised"),
        "Pillow float32": own("pillow"),
    }
    if tensorflow_python:
        script = [tensorflow_python, str(TENSORFLOW_SCRIPT), str(folder)]
        for threads in (1, 2):
            name = f"tf.data, {threads} thread{'s' * (threads > 1)}"
            made[name] = Pipeline([*script, str(threads)], {"TF_CPP_MIN_LOG_LEVEL": "3"})
    return made


CLAIMS = (
    ("jumar, main process", "Pillow float32", 2.0),
    ("jumar, 2 workers", "jumar, 1 worker", 1.8),
    ("jumar, 2 workers", "tf.data, 2 threads", 1.5),
    ("jumar, 2 workers, normalised", "tf.data, 2 threads", None),
)


def compare(folder: Path, tensorflow_python: str | None, rounds: int, batches: int) -> None:
    """Run all pipelines in turns and print the table and the ratios."""
    running = pipelines(folder, tensorflow_python)
    timings: dict[str, list[Timing]] = {name: [] for name in running}
    for _ in range(rounds):
        for name, pipeline in running.items():
            timings[name].append(pipeline.run(batches))
    for pipeline in running.values():
        pipeline.close()
    print(f"{'pipeline':<32}{'images/s':>10}{'CPU us/image':>15}")
    for name, rows in timings.items():
        rate = statistics.median(row.images_per_s for row in rows)
        cpu = statistics.median(row.cpu_us for row in rows)
        print(f"{name:<32}{rate:>10.0f}{cpu:>15.0f}")
    print(f"\n{'ratio':<58}{'by clock':>9}{'by CPU':>8}{'wanted':>8}")
    for name, peer, wanted in CLAIMS:
        if peer not in timings:
            continue
        pairs = list(zip(timings[name], timings[peer], strict=True))
        clock = statistics.median(
            jumar_run.images_per_s / rival_run.images_per_s for jumar_run, rival_run in pairs
        )
        cpu = statistics.median(
            rival_run.cpu_us / jumar_run.cpu_us for jumar_run, rival_run in pairs
        )
        # Doubling the workers does not change the CPU time of an image.
        cpu_text = "" if peer.startswith("jumar") else f"{cpu:.2f}"
        wanted_text = "" if wanted is None else f"{wanted:.1f}"
        print(f"{f'{name} / {peer}':<58}{clock:>9.2f}{cpu_text:>8}{wanted_text:>8}")


def main() -> None:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--tensorflow-python", help="interpreter that has TensorFlow 2")
    parser.add_argument("--pictures", type=Path, help="folder of JPEGs to use instead")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--batches", type=int, default=16, help="timed batches in a round")
    parser.add_argument("--serve", nargs=2, metavar=("KIND", "FOLDER"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        kind, folder = options.serve[0], Path(options.serve[1])
        torch.set_num_threads(1)
        kinds: dict[str, Callable[[], Iterator[object]]] = {
            "jumar-0": lambda: jumar_batches(folder, 0, False),
            "jumar-1": lambda: jumar_batches(folder, 1, False),
            "jumar-2": lambda: jumar_batches(folder, 2, False),
            "jumar-2-normalised": lambda: jumar_batches(folder, 2, True),
            "pillow": lambda: pillow_batches(folder),
        }
        serve(kinds[kind]())
        return
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.pictures or Path(temporary)
        if not options.pictures:
            write_photographs(folder)
        compare(folder, options.tensorflow_python, options.rounds, options.batches)


if __name__ == "__main__":
    main()
