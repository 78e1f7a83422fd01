"""`jumar data pretraining` in both orders beside google-research/bert's own script.

    python benchmarks/pretraining_data.py TEXT --vocab VOCAB
    python benchmarks/pretraining_data.py TEXT --vocab VOCAB --original BERT --tensorflow-python PY

BERT is a checkout of google-research/bert, PY a Python that has TensorFlow 1.15. Each side works on
TEXT repeated so often that it takes a while; all of them as commands, from starting Python until
the records are written. They take turns in each round. A rate is instances a second, by the clock
and by the CPU time of all processes. The peak of memory is that of all processes together, looked
at 50 times a second; pages that processes share count once for each.
"""

import argparse
import json
import os
import statistics
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from port_tree import Took, timed


@dataclass(frozen=True)
class Rate:
    """What one side did in one round."""

    instances: int
    took: Took


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("text", type=Path)
    parser.add_argument("--vocab", type=Path, required=True)
    parser.add_argument("--original", type=Path)
    parser.add_argument("--tensorflow-python", default="python3")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--dupe-factor", type=int, default=10)
    parser.add_argument(
        "--repeat",
        type=int,
        nargs=3,
        default=(1, 4, 16),
        metavar="TIMES",
        help="how often TEXT for the original, original order, streaming",
    )
    arguments = parser.parse_args()
    print(
        f"{arguments.text.name}: {arguments.text.stat().st_size / 1e6:.2f} MB, "
        f"dupe factor {arguments.dupe_factor}; {len(os.sched_getaffinity(0))} CPUs"
    )
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        texts = [repeated(arguments.text, times, place) for times in arguments.repeat]
        sides: dict[str, Callable[[], Rate]] = {
            "jumar, original order": lambda: ours(texts[1], "original", arguments),
            "jumar, streaming": lambda: ours(texts[2], "streaming", arguments),
        }
        if arguments.original:
            sides["create_pretraining_data.py"] = lambda: theirs(texts[0], arguments)
        rounds: dict[str, list[Rate]] = {name: [] for name in sides}
        for _ in range(arguments.rounds):
            for name, side in sides.items():
                rounds[name].append(side())
    for name, rates in rounds.items():
        print_row(name, rates)
    if arguments.original:
        for name in list(sides)[:2]:
            by = zip(rounds[name], rounds["create_pretraining_data.py"], strict=True)
            ratios = [(clock(our) / clock(their), cpu(our) / cpu(their)) for our, their in by]
            print(
                f"{name} / original, median within a round: by clock "
                f"{statistics.median(first for first, _ in ratios):.1f}, by CPU time "
                f"{statistics.median(second for _, second in ratios):.1f}"
            )


def repeated(text: Path, times: int, place: Path) -> Path:
    """The text so many times over, as one file."""
    path = place / f"{times}.txt"
    content = text.read_bytes().rstrip(b"\n") + b"\n\n"
    with path.open("wb") as file:
        for _ in range(times):
            file.write(content)
    return path


def ours(text: Path, order: str, arguments: argparse.Namespace) -> Rate:
    """The data of jumar's command."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out"
        command = [sys.executable, "-m", "jumar", "data", "pretraining", str(text)]
        command += ["--vocab", str(arguments.vocab.resolve()), "--to", str(out), "--order", order]
        command += ["--dupe-factor", str(arguments.dupe_factor)]
        took = timed([*command, "--workers", str(arguments.workers)], Path(folder))
        manifest = json.loads((out / "pretraining.json").read_text(encoding="utf-8"))
        return Rate(manifest["written"]["instances"], took)


def theirs(text: Path, arguments: argparse.Namespace) -> Rate:
    """The data of the original script, whose records are counted by their headers."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out.tfrecord"
        script = arguments.original.resolve() / "create_pretraining_data.py"
        command = [arguments.tensorflow_python, str(script), f"--input_file={text}"]
        command += [f"--output_file={out}", f"--vocab_file={arguments.vocab.resolve()}"]
        command += [f"--dupe_factor={arguments.dupe_factor}", "--random_seed=12345"]
        took = timed(command, Path(folder), PYTHONPATH="", TF_CPP_MIN_LOG_LEVEL="3")
        if took.status:
            raise SystemExit(f"{' '.join(command)} ends with status {took.status}")
        return Rate(records(out), took)


def records(path: Path) -> int:
    """How many records a TFRecord file holds."""
    count, position, size = 0, 0, path.stat().st_size
    with path.open("rb") as file:
        while position < size:
            file.seek(position)
            position += 16 + int.from_bytes(file.read(8), "little")
            count += 1
    return count


def clock(rate: Rate) -> float:
    """Instances a second."""
    return rate.instances / rate.took.seconds


def cpu(rate: Rate) -> float:
    """Instances a second of CPU time."""
    return rate.instances / rate.took.cpu_seconds


def print_row(name: str, rates: list[Rate]) -> None:
    """One line of the table."""
    speeds = [clock(rate) for rate in rates]
    print(
        f"{name:<27} {statistics.median(speeds):8,.0f} instances/s "
        f"({min(speeds):,.0f} to {max(speeds):,.0f}, {len(rates)} rounds of "
        f"{rates[0].instances:,})  {statistics.median(map(cpu, rates)):,.0f} a CPU second  "
        f"peak {max(rate.took.peak_bytes for rate in rates) / 1e6:,.0f} MB"
    )


if __name__ == "__main__":
    main()
