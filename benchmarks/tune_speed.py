"""What `jumar tune speed` finds, against every point of a grid.

    python benchmarks/tune_speed.py
    python benchmarks/tune_speed.py --network alexnet --start bad

Four networks in float32 (AlexNet and ResNeXt-50 at 64 pixels, DS-CNN-S, ViDeNN's spatial part)
start from bad settings (one thread, contiguous tensors, six loader processes), and from the
recipe's own. The peer is a grid of 24 points without torch.compile:

    threads.intra_op 1, all cores  x  training.channels_last true, false
    x  data.workers 0, 1, 2  x  THP_MEM_ALLOC_ENABLE 0, 1 (which jumar sets)

Each point is held against the start in interleaved pairs. The best three by their medians then run
against what the tuning wrote, in pairs of processes started afresh. Targets: from bad settings the
tuning ends in five minutes, within 5 % of the best point or with 1 in the interval, and at least
1.2 times as fast as the start; from the recipe's own settings it never ends slower than noise. The
exit code is 1 if one is missed. Needs an idle machine; about 15 minutes a network and start.
"""

import argparse
import itertools
import os
import subprocess
import sys
import tempfile
import time
import wave
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from jumar.experiments.tuning.bench import BLOCK_S, Bench
from jumar.experiments.tuning.knobs import Choice, Combination
from jumar.experiments.tuning.measured_process import NotMeasured
from jumar.experiments.tuning.pairs import Speedup, speedup
from jumar.ground.machine import usable_cores
from jumar.recipes.tuned import read_tuned

FLOAT32 = ("precision.mode=must_keep_origin_dtype", "precision.loss_scale=none")
NETWORKS = {
    "alexnet": ("alexnet-demo", ("data.batch_size=32",)),
    "resnext50": ("resnext50", ("data.image_size=64", "data.batch_size=8")),
    "ds-cnn": ("ds-cnn-s", ("data.path=clips", "data.batch_size=100")),
    "videnn": ("videnn-spatial", ("data.batch_size=4",)),
}
BAD = ("threads.intra_op=1", "training.channels_last=false", "data.workers=6")
BEST_POINTS = 3
PAIRS_A_SITTING = 5


class Measurement:
    """Pairs of settings of one recipe that starts from some assignments.

    Args:
        recipe: Its name.
        start: What it starts from.
        folder: Where processes work.
    """

    def __init__(self, recipe: str, start: Sequence[str], folder: Path) -> None:
        self._recipe, self._start, self._folder = recipe, start, folder

    def pairs(self, one: Combination, other: Combination, count: int) -> Speedup:
        """How many times as fast `other` is, in processes that start every five pairs."""
        bench = Bench(self._command, self._folder / "scratch")
        before, after = ("one", one), ("other", other)
        measured: list[tuple[float, float]] = []
        try:
            while len(measured) < count:
                bench.ready()
                bench.ready(before, after)
                bench.step_s = bench.block(*before).step_s
                bench.block(*after)
                bench.steps = max(1, round(BLOCK_S / bench.step_s))
                for number in range(min(PAIRS_A_SITTING, count - len(measured))):
                    measured.append(bench.pair(before, after, reverse=bool(number % 2))[0])
        finally:
            bench.close()
        return speedup(measured)

    def tuned(self, minutes: float) -> tuple[Combination, float]:
        """What the command finds, and the seconds that it takes."""
        folder = self._folder / "tuned"
        command = [
            sys.executable,
            "-m",
            "jumar",
            "tune",
            "speed",
            self._recipe,
            "--to",
            str(folder),
        ]
        command += ["--allow", "rounding", "--minutes", f"{minutes:g}", "--device", "cpu"]
        begun = time.monotonic()
        subprocess.run([*command, *_sets(self._start)], cwd=self._folder, check=True)
        seconds = time.monotonic() - begun
        result = read_tuned(folder)
        found = Choice(
            knob="tuned",
            label="tuned",
            claim=result.weights,
            settings=result.settings,
            environment=result.environment,
        )
        return Combination((found,)), seconds

    def _command(self, combination: Combination, scratch: Path) -> Sequence[str]:
        changed = [f"{name}={value}" for name, value in combination.settings.items()]
        return [
            *(sys.executable, "-m", "jumar", "tune", "measure", self._recipe, "--device", "cpu"),
            *("--scratch", str(scratch.absolute()), *_sets([*self._start, *changed])),
        ]


def grid() -> list[Combination]:
    """The 24 points that the tuning is held against."""
    points: list[Combination] = []
    for threads, last, workers, pages in itertools.product(
        (1, usable_cores()), ("true", "false"), (0, 1, 2), ("0", "1")
    ):
        settings = {
            "threads.intra_op": str(threads),
            "training.channels_last": last,
            "data.workers": str(workers),
        }
        variables = {"THP_MEM_ALLOC_ENABLE": pages}
        label = " ".join(f"{name}={value}" for name, value in {**settings, **variables}.items())
        choice = Choice(
            knob="point", label=label, claim="rounding", settings=settings, environment=variables
        )
        points.append(Combination((choice,)))
    return points


def held(network: str, start: str, chosen: argparse.Namespace, folder: Path) -> bool:
    """Tune one network from one start and hold it against the grid; returns whether it is fine."""
    recipe, own = NETWORKS[network]
    assignments = [*FLOAT32, *own, *(BAD if start == "bad" else ())]
    measurement = Measurement(recipe, assignments, folder)
    tuned, seconds = measurement.tuned(chosen.minutes)
    gain = measurement.pairs(Combination(), tuned, chosen.pairs)
    print(f"{network}, {start} start: tuned in {seconds:.0f} s; {gain.text()} as the start")
    if start == "shipped":
        is_fine = gain.high >= 1.0
        print(f"  never slower than noise: {'yes' if is_fine else 'MISSED'}", flush=True)
        return is_fine
    targets = {
        f"within {60 * chosen.minutes:.0f} s": seconds <= 60 * chosen.minutes,
        "at least 1.2 times the start": gain.ratio >= 1.2,
    }
    if chosen.grid:
        targets["within 5 % of the best point"] = is_near_best(measurement, tuned, chosen)
    else:
        print("  within 5 % of the best point: not measured (--no-grid)")
    for name, is_met in targets.items():
        print(f"  {name}: {'yes' if is_met else 'MISSED'}", flush=True)
    return all(targets.values())


def is_near_best(measurement: Measurement, tuned: Combination, chosen: argparse.Namespace) -> bool:
    """Whether the tuned settings are as fast as the best point of the grid."""
    ratios: list[tuple[float, Combination]] = []
    for point in grid():
        try:
            ratios.append((measurement.pairs(Combination(), point, chosen.screen).ratio, point))
        except NotMeasured as error:
            print(f"  {point.labels[0]}: {error}")
    ratios.sort(key=lambda each: each[0], reverse=True)
    against = [
        (measurement.pairs(point, tuned, chosen.pairs), point) for _, point in ratios[:BEST_POINTS]
    ]
    worst, best = min(against, key=lambda each: each[0].ratio)
    print(f"  against the best of {len(ratios)} points, {best.labels[0]}: {worst.text()}")
    return worst.ratio >= 0.95 or worst.high >= 1.0


def write_clips(folder: Path) -> None:
    """Clips of noise in Speech Commands' layout."""
    draw = np.random.default_rng(1)
    for word in ("yes", "no", "up", "down", "left", "right", "on", "off", "stop", "go"):
        for speaker in range(40):
            path = folder / word / f"{speaker:08x}_nohash_0.wav"
            path.parent.mkdir(parents=True, exist_ok=True)
            with wave.open(str(path), "wb") as file:
                file.setnchannels(1)
                file.setsampwidth(2)
                file.setframerate(16000)
                file.writeframes(draw.integers(-3000, 3000, 16000, dtype=np.int16).tobytes())


def _sets(assignments: Sequence[str]) -> list[str]:
    return [part for each in assignments for part in ("--set", each)]


def main() -> int:
    """Measure and print; returns the exit code."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--network", choices=[*NETWORKS, "all"], default="all")
    parser.add_argument("--start", choices=("bad", "shipped", "both"), default="both")
    parser.add_argument("--minutes", type=float, default=5.0, help="for each tuning")
    parser.add_argument("--pairs", type=int, default=15, help="for each verdict")
    parser.add_argument("--screen", type=int, default=5, help="pairs for each point of the grid")
    parser.add_argument("--grid", action=argparse.BooleanOptionalAction, default=True)
    chosen = parser.parse_args()
    networks = list(NETWORKS) if chosen.network == "all" else [chosen.network]
    starts = ("bad", "shipped") if chosen.start == "both" else (chosen.start,)
    load = os.getloadavg()[0]
    print(f"load {load:.1f} on {usable_cores()} cores" + (" (BUSY)" if load > 0.5 else ""))
    is_fine = True
    for network, start in itertools.product(networks, starts):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            os.chdir(folder)
            write_clips(folder / "clips")
            is_fine &= held(network, start, chosen, folder)
    return 0 if is_fine else 1


if __name__ == "__main__":
    sys.exit(main())
