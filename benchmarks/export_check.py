"""Every family as an ONNX file: how far from PyTorch it computes, and how fast, as ratios.

    pip install "jumar[onnx,detection]"
    python benchmarks/export_check.py                  # about 20 minutes, from the checkout
    python benchmarks/export_check.py --only psenet --work FOLDER

Each network has its published size, unless the table says otherwise, and the weights of a fresh run
of two steps on made-up data. `jumar export` writes it, and the check that it makes is the first
column of numbers: the largest difference over batches of two sizes and, where lengths are open,
another length, as a share of the largest value. Then both run the same batch of one on one thread,
taking turns; the clock is the process's CPU time, and the number its median.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

import onnxruntime
import torch

CHECKOUT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(CHECKOUT))
ROUNDS = 15


class Case(NamedTuple):
    """A network of the table.

    Attributes:
        recipe: Its recipe.
        settings: What makes its run short.
        note: What differs from the published network.
        part: What is exported of it.
        lengths: Of the timed input, where the network leaves them open.
        run: The run, where two cases share it.
    """

    recipe: str
    settings: str
    note: str = ""
    part: str = ""
    lengths: Mapping[str, int] = MappingProxyType({})
    run: str = ""


_PIECES = "model.vocabulary=vocab.txt data.max_seq_length=128 data.batch_size=2"
CASES = {
    "alexnet": Case("alexnet", "data.path=digits data.batch_size=4 model.num_classes=1000"),
    "resnext50": Case("resnext50", "data.path=digits data.batch_size=2 model.num_classes=1001"),
    "ds-cnn-s": Case("ds-cnn-s", "data.path=words data.words=yes,no,stop data.batch_size=4"),
    "videnn-spatial": Case(
        "videnn-spatial",
        "data.path=pictures data.batch_size=2 data.patches_per_image=4",
        lengths={"height": 64, "width": 64},
    ),
    "videnn-temporal": Case(
        "videnn-temporal",
        "data.path=frames data.batch_size=1 data.patch_size=16 data.patches_per_image=2 "
        "spatial_run=videnn-spatial",
        lengths={"height": 64, "width": 64},
    ),
    "nlrn": Case(
        "nlrn",
        "data.path=pictures data.batch_size=1 schedule.boundaries=1it,2it,3it,4it,5it",
        lengths={"height": 43, "width": 43},
    ),
    "vqvae-encoder": Case(
        "vqvae", "data.path=pictures data.batch_size=2", part="encoder", run="vqvae"
    ),
    "vqvae-decoder": Case(
        "vqvae", "data.path=pictures data.batch_size=2", part="decoder", run="vqvae"
    ),
    "biggan128": Case(
        "biggan128", "data.path=pictures data.batch_size=2 model.width=32", "width 32"
    ),
    "bert-classify": Case("bert-classify", f"data.path=sentences {_PIECES}", "30 word pieces"),
    "bert-ner": Case("bert-ner", f"data.path=tags {_PIECES}", "30 word pieces"),
    "bert-reading": Case("bert-reading", f"data.path=questions {_PIECES}", "30 word pieces"),
    "nezha-classify": Case(
        "bert-classify",
        f"data.path=sentences {_PIECES} model.size=nezha-base",
        "30 word pieces",
    ),
    "psenet": Case(
        "psenet",
        "data.path=signs data.batch_size=1 data.image_size=64",
        lengths={"height": 320, "width": 320},
    ),
    "east": Case(
        "east",
        "data.path=signs data.batch_size=1 data.image_size=64",
        lengths={"height": 320, "width": 320},
    ),
}


def write_data(folder: Path) -> None:
    """Data of every kind."""
    from tests.recipes.small_data import (
        write_frames,
        write_pictures,
        write_signs,
        write_texts,
        write_words,
    )

    if (folder / "vocab.txt").exists():
        return
    write_pictures(folder / "pictures")
    write_frames(folder / "frames")
    write_words(folder / "words", ("yes", "no", "stop", "cat"))
    write_signs(folder / "signs")
    write_texts(folder)


def jumar(folder: Path, *arguments: str) -> str:
    """Run a command of jumar in a folder; returns what it printed."""
    done = subprocess.run(
        [sys.executable, "-m", "jumar", *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise SystemExit(f"jumar {' '.join(arguments)}\n{done.stdout}\n{done.stderr}")
    return done.stdout


def measure(name: str, case: Case, folder: Path) -> list[str]:
    """A row of the table: train, export, and run both."""
    run = case.run or name
    fixed = [
        *case.settings.split(),
        "data.workers=0",
        "training.duration=2it",
        "training.evaluate_every=",
        "checkpoints.every=2it",
    ]
    if not (folder / run / "results.json").exists():
        settings = [text for setting in fixed for text in ("--set", setting)]
        jumar(folder, "train", case.recipe, "--run-dir", run, "--device", "cpu", *settings)
    part = ("--part", case.part) if case.part else ()
    file = folder / f"{name}.onnx"
    jumar(folder, "export", run, "--to", file.name, "--overwrite", *part)
    facts = json.loads(file.with_name(f"{file.name}.json").read_text(encoding="utf-8"))
    shares = [
        each["difference"] / max(each["largest"], 1e-6) for each in facts["checked"]["outputs"]
    ]
    if any(each["is_whole"] for each in facts["checked"]["outputs"]):
        shares = [each["difference"] for each in facts["checked"]["outputs"]]
    torch_ms, onnx_ms, spread = latencies(folder, run, case, file)
    return [
        f"{name}{f' ({case.note})' if case.note else ''}",
        f"{max(shares):.1e}",
        f"{file.stat().st_size / 1e6:.1f}",
        f"{torch_ms:.1f}",
        f"{onnx_ms:.1f}",
        f"{torch_ms / onnx_ms:.2f} ({spread})",
    ]


def latencies(folder: Path, run: str, case: Case, file: Path) -> tuple[float, float, str]:
    """Median CPU milliseconds of PyTorch and onnxruntime on a batch of one, and the ratio's span.

    PyTorch is the network that `jumar predict` and the other commands run, in float32.
    """
    from jumar.runs.exporting.export import ExportRequest, open_exportable
    from jumar.runs.exporting.onnx_file import onnx_session

    request = ExportRequest(run_dir=folder / run, to=file, part=case.part, device="cpu")
    exportable = open_exportable(request)[2]
    inputs = exportable.sample(batch=1, **case.lengths)
    session = onnx_session(file.read_bytes())
    given = {
        each.name: tensor.numpy() for each, tensor in zip(session.get_inputs(), inputs, strict=True)
    }
    seconds: list[tuple[float, float]] = []
    with torch.inference_mode():
        for _ in range(ROUNDS + 2):
            start = time.process_time()
            exportable.network(*inputs)
            middle = time.process_time()
            session.run(None, given)
            seconds.append((middle - start, time.process_time() - middle))
    seconds = seconds[2:]
    ratios = sorted(mine / other for mine, other in seconds)
    quarter = len(ratios) // 4
    medians = [1e3 * statistics.median(column) for column in zip(*seconds, strict=True)]
    return medians[0], medians[1], f"{ratios[quarter]:.2f} to {ratios[-1 - quarter]:.2f}"


def main() -> None:
    """Measure the cases and print the table."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--only", nargs="*", choices=CASES, default=list(CASES))
    parser.add_argument("--work", type=Path, help="a folder that keeps data and runs")
    options = parser.parse_args()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.work or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        write_data(folder)
        print(f"torch {torch.__version__}, onnxruntime {onnxruntime.__version__}, one thread\n")
        print(
            "| network | largest difference | file (MB) | PyTorch (ms) | onnxruntime (ms) | ratio |"
        )
        print("|---|---|---|---|---|---|")
        for name in options.only:
            try:
                row = " | ".join(measure(name, CASES[name], folder))
            except SystemExit as error:
                print(error, file=sys.stderr)
                row = f"{name} | failed | | | |"
            print(f"| {row} |", flush=True)


if __name__ == "__main__":
    main()
