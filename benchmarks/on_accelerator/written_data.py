"""Data of every kind, written on the spot: nothing is sent to the machine and nothing downloaded.

Contents are random but smooth enough that pictures have the size of photographs.
"""

import wave
from collections.abc import Callable
from pathlib import Path

import numpy as np
from PIL import Image

from jumar.data.records.tfrecord import framed_payload
from jumar.data.text.instance_batch import batch_of, payloads
from jumar.data.text.original_order import Instance
from jumar.data.text.pretraining_options import PretrainingOptions
from jumar.data.text.vocabulary import SPECIAL
from jumar.ground.files import folder_beside
from jumar.ground.paths import is_folder
from on_accelerator.measuring import Context

PIECES = 21_128
PREDICTIONS = 20
_WORDS = ("yes", "no", "up", "down", "left", "right", "on", "off", "stop", "go", "cat")


def pictures(context: Context) -> Path:
    """Class folders of JPEG files."""

    def write(folder: Path) -> None:
        random = np.random.default_rng(1)
        for part, count in (("train", context.pick(1024, 16)), ("val", context.pick(64, 4))):
            for number in range(count):
                place = folder / part / f"class-{number % 4}"
                place.mkdir(parents=True, exist_ok=True)
                size = context.pick((500, 375), (80, 64))
                _scene(random, *size).save(place / f"{number}.jpg", quality=90)

    return _written(context, "pictures", write)


def clips(context: Context) -> Path:
    """One second of noise a clip, in Speech Commands' layout."""

    def write(folder: Path) -> None:
        random = np.random.default_rng(1)
        for word in _WORDS:
            (folder / word).mkdir(parents=True)
            for speaker in range(context.pick(40, 4)):
                path = folder / word / f"{speaker:08x}_nohash_0.wav"
                with wave.open(str(path), "wb") as file:
                    file.setparams((1, 2, 16000, 16000, "NONE", ""))
                    samples = random.integers(-3000, 3000, 16000).astype("<i2")
                    file.writeframes(samples.tobytes())

    return _written(context, "clips", write)


def instances(context: Context, length: int) -> Path:
    """Full pre-training instances of a length, and a vocabulary."""

    def write(folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        random = np.random.default_rng(1)
        options = PretrainingOptions(max_seq_length=length, max_predictions_per_seq=PREDICTIONS)
        made = [
            Instance(
                ids=random.integers(1000, PIECES, length).tolist(),
                first=length // 2 - 2,
                is_random_next=number % 2 == 0,
                positions=sorted((random.permutation(length - 2)[:PREDICTIONS] + 1).tolist()),
                labels=random.integers(1000, PIECES, PREDICTIONS).tolist(),
            )
            for number in range(context.pick(256, 8))
        ]
        with (folder / "all.tfrecord").open("wb") as file:
            for record in payloads(batch_of(made, options)):
                file.write(framed_payload(record))
        pieces = [*SPECIAL, *(f"w{number}" for number in range(PIECES - len(SPECIAL)))]
        (folder / "vocab.txt").write_text("\n".join(pieces))

    return _written(context, f"instances-{length}", write)


def words_in_pictures(context: Context) -> Path:
    """Pictures with quadrilaterals that are said to be words, in ICDAR's form."""

    def write(folder: Path) -> None:
        random = np.random.default_rng(1)
        for part, count in (("train", context.pick(64, 4)), ("test", 2)):
            (folder / part).mkdir(parents=True)
            for number in range(1, count + 1):
                width, height = context.pick((1280, 720), (160, 96))
                _scene(random, width, height).save(folder / part / f"img_{number}.jpg")
                lines: list[str] = []
                for _ in range(8):
                    x, y = random.integers(0, width - 70), random.integers(0, height - 30)
                    lines.append(f"{x},{y},{x + 60},{y},{x + 60},{y + 20},{x},{y + 20},word")
                (folder / part / f"gt_img_{number}.txt").write_text("\n".join(lines))

    return _written(context, "words", write)


def _written(context: Context, name: str, write: Callable[[Path], None]) -> Path:
    """The folder of that name, written unless an earlier call did."""
    folder = context.work / "data" / name
    if not is_folder(folder):
        with folder_beside(folder) as temporary:
            write(temporary)
    return folder


def _scene(random: np.random.Generator, width: int, height: int) -> Image.Image:
    coarse = random.integers(0, 256, (height // 16, width // 16, 3), dtype=np.uint8)
    return Image.fromarray(coarse).resize((width, height), Image.Resampling.BICUBIC)
