"""Six original projects, ported by `jumar port` and run beside their originals by `port check`.

    git clone https://github.com/taki0112/BigGAN-Tensorflow
    git clone https://github.com/Ding-Liu/NLRN
    git clone https://github.com/clausmichele/ViDeNN
    git clone https://github.com/ARM-software/ML-KWS-for-MCU
    git clone https://github.com/tensorflow/nmt
    git clone https://github.com/google-research/bert
    ~/tf115/bin/pip install pillow==9.5.0 scipy==1.1.0 keras==2.2.5 opencv-python-headless==4.5.5.64
    python benchmarks/port_check_originals.py --tensorflow-python ~/tf115/bin/python
        biggan=BigGAN-Tensorflow nlrn=NLRN videnn=ViDeNN kws=ML-KWS-for-MCU nmt=nmt bert=bert

Each checkout is copied, tiny random data are put into the copy, the copy is ported, and both are
trained for a few steps with equal seeds on one core: small batches and pictures, the originals'
own scripts and arguments. The table says which stages passed and how far the losses are apart.

`--port-options "--precision allow_mix_precision --loss-scale exponential"` changes what is ported;
the exit code is 1 where a port does not follow its original.
"""

import argparse
import json
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import wave
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

Generator = np.random.Generator
SAMPLE_RATE_HZ = 16000


@dataclass(frozen=True, kw_only=True)
class Case:
    """An original: the data it needs, and how it is started.

    `prepare` is a script of the original's own that makes its data from ours.
    """

    make_data: Callable[[Path, Generator], None]
    command: str
    steps: int
    prepare: str = ""


@dataclass(frozen=True, kw_only=True)
class Row:
    """The outcome for one original."""

    name: str
    edits: int
    stages: str
    num_equal: int
    num_losses: int
    largest_difference: float
    first: str
    last: str
    seconds: float
    passed: bool


def biggan_data(tree: Path, generator: Generator) -> None:
    for index in range(4):
        picture(tree / "dataset" / "tiny" / f"{index}.jpg", 128, generator)


def nlrn_data(tree: Path, generator: Generator) -> None:
    names = [f"data/{index}.png" for index in range(4)]
    for name in names:
        picture(tree / name, 48, generator, mode="L")
    (tree / "data" / "train.flist").write_text("".join(f"{name}\n" for name in names))


def videnn_data(tree: Path, generator: Generator) -> None:
    data = tree / "Spatial-CNN" / "data"
    (data / "train").mkdir(parents=True)
    clean = generator.integers(0, 256, (12, 16, 16, 3), dtype=np.uint8)
    noisy = np.clip(clean + generator.normal(0, 20, clean.shape), 0, 255).astype(np.uint8)
    np.save(data / "train" / "img_clean_pats.npy", clean)
    np.save(data / "train" / "img_noisy_pats.npy", noisy)
    for name in ("noisy", "original"):
        picture(data / "test" / name / "0.png", 24, generator)


def kws_data(tree: Path, generator: Generator) -> None:
    speech = tree / "speech"
    for number, word in enumerate(("yes", "no", "up", "bed")):
        for speaker in range(8):
            time = np.arange(SAMPLE_RATE_HZ) / SAMPLE_RATE_HZ
            tone = 8000 * np.sin(2 * np.pi * (200 + 150 * number + 40 * speaker) * time)
            sound = tone + generator.normal(0, 500, SAMPLE_RATE_HZ)
            clip(speech / word / f"{speaker:08x}_nohash_0.wav", sound)
    clip(speech / "_background_noise_" / "noise.wav", generator.normal(0, 500, 2 * SAMPLE_RATE_HZ))


def nmt_data(_tree: Path, _generator: Generator) -> None:
    """Nothing: sentences and vocabularies of its own tests are in the repository."""


def bert_data(tree: Path, _generator: Generator) -> None:
    text = (tree / "sample_text.txt").read_text(encoding="utf-8").lower()
    words = sorted(set(re.findall(r"[a-z]+|[^\sa-z]", text)))[:3000]
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *words]
    (tree / "vocab.txt").write_text("\n".join(vocabulary) + "\n", encoding="utf-8")
    config = {
        "attention_probs_dropout_prob": 0.1,
        "hidden_act": "gelu",
        "hidden_dropout_prob": 0.1,
        "hidden_size": 16,
        "initializer_range": 0.02,
        "intermediate_size": 32,
        "max_position_embeddings": 64,
        "num_attention_heads": 2,
        "num_hidden_layers": 2,
        "type_vocab_size": 2,
        "vocab_size": len(vocabulary),
    }
    (tree / "config.json").write_text(json.dumps(config))


def picture(path: Path, size: int, generator: Generator, *, mode: str = "RGB") -> None:
    """A picture of coloured noise, coarse enough to survive JPEG."""
    shape = (size // 4, size // 4, 3) if mode == "RGB" else (size // 4, size // 4)
    noise = Image.fromarray(generator.integers(0, 256, shape, dtype=np.uint8))
    path.parent.mkdir(parents=True, exist_ok=True)
    noise.resize((size, size)).save(path)


def clip(path: Path, sound: np.ndarray) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(SAMPLE_RATE_HZ)
        file.writeframes(sound.astype("<i2").tobytes())


CASES = {
    "biggan": Case(
        make_data=biggan_data,
        command="main.py --phase train --dataset tiny --img_size 128 --batch_size 2 --ch 8 "
        "--epoch 1 --iteration 10",
        steps=4,
    ),
    "nlrn": Case(
        make_data=nlrn_data,
        command="trainer.py --dataset denoise --train-flist data/train.flist "
        "--eval-flist data/train.flist --model nlrn --job-dir job --train-batch-size 1 "
        "--train-patch-size 20 --num-steps 2 --train-steps 10",
        steps=5,
    ),
    "videnn": Case(
        make_data=videnn_data,
        command="Spatial-CNN/main_spatialCNN.py --use_gpu 1 --batch_size 2 --epoch 1",
        steps=5,
    ),
    "kws": Case(
        make_data=kws_data,
        command="train.py --data_url= --data_dir=speech --wanted_words yes,no,up "
        "--model_architecture ds_cnn --model_size_info 2 16 10 4 2 2 16 3 3 1 1 "
        "--dct_coefficient_count 10 --window_size_ms 40 --window_stride_ms 20 "
        "--learning_rate 0.0005 --how_many_training_steps 20 --batch_size 4 "
        "--summaries_dir work/logs --train_dir work/training "
        "--testing_percentage 0 --validation_percentage 0",
        steps=5,
    ),
    "nmt": Case(
        make_data=nmt_data,
        command="-m nmt.nmt --src=vi --tgt=en --vocab_prefix=nmt/testdata/iwslt15.vocab.100 "
        "--train_prefix=nmt/testdata/iwslt15.tst2013.100 "
        "--dev_prefix=nmt/testdata/iwslt15.tst2013.100 "
        "--test_prefix=nmt/testdata/iwslt15.tst2013.100 --out_dir=out --num_train_steps=20 "
        "--steps_per_stats=5 --num_layers=1 --num_units=16 --batch_size=4 --dropout=0.2",
        steps=5,
    ),
    "bert": Case(
        make_data=bert_data,
        prepare="create_pretraining_data.py --input_file=sample_text.txt "
        "--output_file=data.tfrecord --vocab_file=vocab.txt --max_seq_length=32 "
        "--max_predictions_per_seq=5 --random_seed=1 --dupe_factor=2",
        command="run_pretraining.py --input_file=data.tfrecord --output_dir=out --do_train=True "
        "--bert_config_file=config.json --train_batch_size=2 --max_seq_length=32 "
        "--max_predictions_per_seq=5 --num_train_steps=20 --num_warmup_steps=2 "
        "--learning_rate=2e-3",
        steps=5,
    ),
}


def measure(
    name: str, checkout: Path, folder: Path, *, python: str, port_options: list[str]
) -> tuple[Row, dict[str, Any]]:
    """Copy, fill, port and check one original."""
    case = CASES[name]
    original, ported = folder / name / "original", folder / name / "ported"
    # Links stay links: ML-KWS-for-MCU has one that leads nowhere.
    shutil.copytree(checkout, original, symlinks=True, ignore=shutil.ignore_patterns(".git"))
    case.make_data(original, np.random.default_rng(0))
    if case.prepare:
        subprocess.run(
            [python, "-W", "ignore", *shlex.split(case.prepare)],
            cwd=original,
            check=True,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
    report = jumar("port", original, "--to", ported, "--json", *port_options)
    check = jumar(
        *("port", "check", ported, "--against", original, "--steps", case.steps, "--json"),
        *("--python", python, "--timeout", "10min"),
        *("--", *shlex.split(case.command)),
    )
    return row(name, report, check), check


def jumar(*arguments: object) -> dict[str, Any]:
    """The JSON that a command prints; exit code 1 is an answer, another one is not."""
    command = [sys.executable, "-m", "jumar", *map(str, arguments)]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=False)
    if done.returncode not in (0, 1):
        raise SystemExit(f"{shlex.join(command)} left with {done.returncode}")
    return json.loads(done.stdout)


def row(name: str, report: dict[str, Any], check: dict[str, Any]) -> Row:
    losses = check["losses"] or {"steps": [], "largest_relative_difference": None}
    steps = losses["steps"]
    largest = losses["largest_relative_difference"]
    return Row(
        name=name,
        edits=sum(len(file.get("edits", ())) for file in report.get("files", ())),
        stages=f"{sum(stage['status'] == 'passed' for stage in check['stages'])}"
        f" of {len(check['stages'])}",
        num_equal=sum(step["relative_difference"] == 0 for step in steps),
        num_losses=len(steps),
        largest_difference=float("inf") if largest is None else largest,
        first=f"{steps[0]['port']:.6g}" if steps else "",
        last=f"{steps[-1]['port']:.6g}" if steps else "",
        seconds=check["seconds"],
        passed=check["passed"],
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("checkouts", nargs="+", metavar="NAME=PATH", help=f"{', '.join(CASES)}")
    parser.add_argument("--tensorflow-python", required=True)
    parser.add_argument(
        "--port-options", default="--precision allow_mix_precision --loss-scale exponential"
    )
    parser.add_argument("--keep", type=Path, help="put data, ports and reports into this folder")
    options = parser.parse_args()
    wanted = [text.partition("=")[::2] for text in options.checkouts]
    unknown = [name for name, path in wanted if name not in CASES or not Path(path).is_dir()]
    if unknown:
        parser.error(f"{', '.join(unknown)}: give NAME=FOLDER, NAME one of {', '.join(CASES)}")
    rows: list[Row] = []
    print("| original | edits | stages passed | losses equal | largest difference | loss | s |")
    print("|---|---|---|---|---|---|---|", flush=True)
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.keep or Path(temporary)
        for name, path in wanted:
            made, check = measure(
                name,
                Path(path),
                folder,
                python=options.tensorflow_python,
                port_options=shlex.split(options.port_options),
            )
            rows.append(made)
            print(
                f"| {made.name} | {made.edits} | {made.stages} | {made.num_equal} of "
                f"{made.num_losses} "
                f"| {made.largest_difference:.1e} | {made.first} → {made.last} | "
                f"{made.seconds:.0f} |",
                flush=True,
            )
            if not made.passed:
                print(json.dumps(check["stages"], indent=2), file=sys.stderr)
            (folder / name / "check.json").write_text(json.dumps(check, indent=2))
    sys.exit(0 if all(made.passed for made in rows) else 1)


if __name__ == "__main__":
    main()
