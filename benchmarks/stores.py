"""The first epoch from a store with a cold cache, against the same shards on the disk.

    python benchmarks/stores.py
    python benchmarks/stores.py --images 2048 --rounds 5 --delay-ms 20

TFRecord shards of JPEG pictures are written to the disk and to moto's server on this machine.
Rivals take turns, each round in processes of their own, which warm up the network before the clock
starts; the time is that of a whole epoch of ResNeXt-50 at 64 px from opening the data to the last
step, downloads included:

- `disk`: the shards as files.
- `cold cache`: `s3://`, with an empty cache that has room for all shards.
- `records`: `s3://`, with an empty cache that has room for none, so that every record is read from
  the store by its range.
- `failing`: as `records`, with one request in ten failing (an error, no answer, half an answer).

All have the same samples in the same order: a hash of every batch is compared. `--delay-ms` is
added to every request, for stores that are further away than this machine. Exit code 1 if `cold
cache` is slower than 90 % of `disk`, if a hash differs, or if a cache exceeds its limit.
"""

import argparse
import hashlib
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from statistics import median

import numpy as np
from PIL import Image

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.stores.servers import (
    BUCKET,
    ProxyHandler,
    Server,
    environment,
    every_tenth_fails,
    moto_server,
    proxy,
    put_folder,
)

from jumar.data.images.tfrecord_writer import convert_to_tfrecords
from jumar.ground.text import size_text

ALLOWED = 0.9
_CLASSES = 10


def write_shards(folder: Path, images: int) -> int:
    """Shards of noisy JPEG pictures of 128 px; returns their bytes."""
    random = np.random.default_rng(0)
    for number in range(images):
        place = folder / "pictures" / f"class-{number % _CLASSES}"
        place.mkdir(parents=True, exist_ok=True)
        coarse = random.integers(0, 255, (16, 16, 3), dtype=np.uint8)
        picture = Image.fromarray(coarse).resize((128, 128), Image.Resampling.BICUBIC)
        picture.save(place / f"{number}.jpg", quality=90)
    convert_to_tfrecords(str(folder / "pictures"), folder / "shards", shards=8)
    return sum(path.stat().st_size for path in (folder / "shards").glob("train-*"))


def epoch(path: str, batch: int, workers: int) -> dict[str, object]:
    """Train one epoch; called in a process of its own."""
    import torch

    from jumar.data.images.image_set import LabelledPictures, image_set
    from jumar.data.images.sources import open_source
    from jumar.data.loading.faults import FaultTally
    from jumar.data.loading.loader import train_batches
    from jumar.recipes.classification import ClassificationRecipe
    from jumar.recipes.registry import create_recipe
    from jumar.settings import override

    torch.set_num_threads(1)
    recipe = override(
        create_recipe("resnext50"), ["data.image_size=64", f"model.num_classes={_CLASSES}"]
    )
    assert isinstance(recipe, ClassificationRecipe)
    network = recipe.build_model().train()
    network.to(memory_format=torch.channels_last)  # pyright: ignore[reportCallIssue]
    optimizer = torch.optim.SGD(network.parameters(), lr=0.01, momentum=0.9)

    def step(images: torch.Tensor, labels: torch.Tensor) -> None:
        scaled = (images.float() / 127.5 - 1).to(memory_format=torch.channels_last)
        torch.nn.functional.cross_entropy(network(scaled), labels).backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    for _ in range(2):
        step(torch.zeros(batch, 3, 64, 64), torch.zeros(batch, dtype=torch.int64))
    began = time.perf_counter()
    source = open_source(path, "train")
    opened = time.perf_counter()
    pictures = LabelledPictures(
        source=source,
        preprocessing=recipe.data.preprocessing,
        image_size=64,
        num_classes=_CLASSES,
        training=True,
    )
    digest = hashlib.sha256()
    batches = train_batches(
        image_set(pictures),
        seed=0,
        batch_per_rank=batch,
        first_step=0,
        last_step=len(source) // batch,
        workers=workers,
        tally=FaultTally(0),
    )
    waited = 0.0
    asked = time.perf_counter()
    for each in batches:
        waited += time.perf_counter() - asked
        digest.update(each["image"].numpy().tobytes())
        digest.update(each["label"].numpy().tobytes())
        step(each["image"], each["label"])
        asked = time.perf_counter()
    ended = time.perf_counter()
    images = len(source) // batch * batch
    return {
        "images_per_s": images / (ended - began),
        "opened_s": opened - began,
        "waited_s": waited,
        "hash": digest.hexdigest(),
    }


class Watch(threading.Thread):
    """Notes the most bytes that were in a cache."""

    def __init__(self, cache: Path) -> None:
        super().__init__(daemon=True)
        self.cache, self.most, self.stop = cache, 0, threading.Event()

    def run(self) -> None:
        """Look again and again."""
        while not self.stop.wait(0.05):
            sizes = 0
            for path in self.cache.rglob("*"):
                try:
                    sizes += path.stat().st_size if path.is_file() else 0
                except OSError:
                    continue
            self.most = max(self.most, sizes)


def measured(
    path: str, server: Server, limit: int, chosen: argparse.Namespace
) -> dict[str, object]:
    """One epoch with an empty cache, and the most that it held."""
    with tempfile.TemporaryDirectory() as cache:
        watch = Watch(Path(cache))
        watch.start()
        command = [sys.executable, __file__, "--measure", path]
        command += ["--batch", str(chosen.batch), "--workers", str(chosen.workers)]
        variables = environment(server, Path(cache), JUMAR_CACHE_LIMIT=str(limit))
        done = subprocess.run(
            command, env=variables, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True
        )
        watch.stop.set()
        watch.join()
    return {**json.loads(done.stdout), "cache": watch.most, "limit": limit}


def main() -> int:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--images", type=int, default=512)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--delay-ms", type=float, default=0.0)
    parser.add_argument("--measure", default="", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.measure:
        print(json.dumps(epoch(chosen.measure, chosen.batch, chosen.workers)))
        return 0

    def late(handler: ProxyHandler, number: int) -> bool:
        del handler, number
        time.sleep(chosen.delay_ms / 1000)
        return False

    def failing(handler: ProxyHandler, number: int) -> bool:
        return late(handler, number) or every_tenth_fails(handler, number)

    os.environ.setdefault("OMP_NUM_THREADS", "1")
    results: dict[str, list[dict[str, object]]] = {}
    with tempfile.TemporaryDirectory() as folder, moto_server() as store:
        size = write_shards(Path(folder), chosen.images)
        put_folder(store, Path(folder) / "shards", "shards")
        url, roomy, narrow = f"s3://{BUCKET}/shards", 2 * size, size // 16
        with proxy(store, late) as behind, proxy(store, failing) as faulty:
            near = behind if chosen.delay_ms else store
            rivals = {
                "disk": (str(Path(folder) / "shards"), near, roomy),
                "cold cache": (url, near, roomy),
                "records": (url, near, narrow),
                "failing": (url, faulty, narrow),
            }
            for turn in range(chosen.rounds):
                order = list(rivals.items())
                for name, rival in order if turn % 2 else reversed(order):
                    results.setdefault(name, []).append(measured(*rival, chosen))
                    speed = results[name][-1]["images_per_s"]
                    print(
                        f"round {turn + 1}: {name}: {speed} images/s", file=sys.stderr, flush=True
                    )
    return report(results, chosen, size)


def report(
    results: dict[str, list[dict[str, object]]], chosen: argparse.Namespace, size: int
) -> int:
    """Print the medians; returns the exit code."""
    print(f"{chosen.images} pictures in 8 shards, {size_text(size)}; {chosen.rounds} rounds")
    speeds = {
        name: [float(str(each["images_per_s"])) for each in rows] for name, rows in results.items()
    }
    disk = median(speeds["disk"])
    print("source       images/s              of disk  opened   waited   cache at most  limit")
    for name in ("disk", "cold cache", "records", "failing"):
        rows, speed = results[name], speeds[name]
        most = max(int(str(each["cache"])) for each in rows)
        opened = median(float(str(each["opened_s"])) for each in rows)
        waited = median(float(str(each["waited_s"])) for each in rows)
        spread = f"({min(speed):.1f} to {max(speed):.1f})"
        print(
            f"{name:11}  {median(speed):5.1f} {spread:15}  {100 * median(speed) / disk:5.1f} %  "
            f"{opened:5.2f} s  {waited:5.2f} s  {size_text(most):>13}  "
            f"{size_text(int(str(rows[0]['limit'])))}"
        )
    hashes = {str(each["hash"]) for rows in results.values() for each in rows}
    exceeded = [
        name
        for name, rows in results.items()
        for each in rows
        if int(str(each["cache"])) > int(str(each["limit"]))
    ]
    print(f"hashes of all samples: {'equal' if len(hashes) == 1 else 'DIFFERENT'}")
    is_fast = median(speeds["cold cache"]) >= ALLOWED * disk
    return 0 if is_fast and len(hashes) == 1 and not exceeded else 1


if __name__ == "__main__":
    sys.exit(main())
