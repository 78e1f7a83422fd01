"""A training step of a recipe against its original's in TensorFlow 1.15, on the same CPU.

    git clone https://github.com/clausmichele/ViDeNN
    python benchmarks/original_step.py videnn-spatial --original ViDeNN/Spatial-CNN
        --tensorflow-python ~/tf115/bin/python

Each rival is a process of its own that holds one batch of the same size and makes steps when it
is asked to; they take turns, so that a neighbour on the machine disturbs all of them. The ratio is
that of the rounds' medians, TensorFlow / jumar: above 1 jumar is faster.

The Python with TensorFlow 1.15 is a 3.7 with
`pip install tensorflow==1.15.0 protobuf==3.20.3 numpy==1.18.5 h5py==2.10.0`. The originals:

    biggan128        https://github.com/taki0112/BigGAN-Tensorflow
    videnn-spatial   https://github.com/clausmichele/ViDeNN, folder Spatial-CNN
    nlrn             https://github.com/Ding-Liu/NLRN
    ds-cnn-s         https://github.com/ARM-software/ML-KWS-for-MCU
    vqvae-cifar10    https://github.com/hiwonjoon/tf-vqvae
    bert-base        https://github.com/google-research/bert
    psenet           https://github.com/liuheng92/tensorflow_PSENet; its width is the pictures' side
    east             the same, for its backbone: the usual original is GPL, and the rest of the
                     graph is written anew in originals/tensorflow_side.py
"""

import argparse
import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median

HERE = Path(__file__).resolve().parent / "originals"
MODES = {
    "fp32": "must_keep_origin_dtype",
    "bf16": "allow_mix_precision_bf16",
}


@dataclass(frozen=True, kw_only=True)
class Case:
    """A comparison: a recipe with the settings that make it the original's graph.

    Attributes:
        steps: Steps of jumar that are one step of the TensorFlow side.
        width: Channels (features, filters, of BERT layers) of the network; 0 where it is fixed.
        width_setting: The recipe's field for it.
    """

    recipe: str
    kind: str
    batch: int
    width: int = 0
    width_setting: str = ""
    steps: int = 1
    settings: Sequence[str] = ()


DETECTOR = Case(
    recipe="psenet",
    kind="signs",
    batch=4,
    width=256,
    width_setting="data.image_size",
    settings=("data.eval_path=none",),
)
CASES = {
    "biggan128": Case(
        recipe="biggan128", kind="pictures", batch=4, width=32, width_setting="model.width", steps=2
    ),
    "videnn-spatial": Case(recipe="videnn-spatial", kind="pictures", batch=16),
    "nlrn": Case(
        recipe="nlrn",
        kind="pictures",
        batch=2,
        width=128,
        width_setting="model.filters",
        # The original keeps every activation; the recipe computes them again by default.
        settings=("model.recompute=false",),
    ),
    "ds-cnn-s": Case(recipe="ds-cnn-s", kind="clips", batch=100),
    "bert-base": Case(
        recipe="bert-base", kind="instances", batch=16, width=12, width_setting="model.num_layers"
    ),
    "psenet": DETECTOR,
    "east": replace(DETECTOR, recipe="east"),
    "vqvae-cifar10": Case(
        recipe="vqvae-cifar10",
        kind="pictures",
        batch=32,
        width=256,
        width_setting="model.width",
    ),
}


class Rival:
    """A process that performs steps on demand."""

    def __init__(self, name: str, command: Sequence[str], steps: int) -> None:
        self.name, self._steps = name, steps
        self._child = subprocess.Popen(
            list(command), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.version = self._answer().removeprefix("ready ")
        self.medians: list[float] = []

    def run(self, count: int) -> float:
        """Milliseconds a step, the median of several."""
        assert self._child.stdin is not None
        self._child.stdin.write(f"{count * self._steps}\n")
        self._child.stdin.flush()
        times: list[float] = json.loads(self._answer())
        whole = [sum(times[i : i + self._steps]) for i in range(0, len(times), self._steps)]
        return median(whole)

    def close(self) -> None:
        """End the process."""
        assert self._child.stdin is not None
        self._child.stdin.close()
        self._child.wait()

    def _answer(self) -> str:
        assert self._child.stdout is not None
        line = self._child.stdout.readline()
        if not line:
            raise SystemExit(f"{self.name} ended without an answer; its output is above")
        return line.strip()


def rivals(chosen: argparse.Namespace, case: Case) -> list[Rival]:
    """TensorFlow first, then jumar in each mode."""
    batch, width = chosen.batch or case.batch, chosen.width or case.width
    threads = str(chosen.threads)
    original = [str(HERE / "tensorflow_side.py"), chosen.network, str(chosen.original.resolve())]
    competitors = [
        Rival(
            "TensorFlow",
            [chosen.tensorflow_python, *original, str(batch), str(width), threads],
            steps=1,
        )
    ]
    settings = [f"data.batch_size={batch}", *case.settings]
    if case.width_setting:
        settings.append(f"{case.width_setting}={width}")
    for name in chosen.modes:
        mode = [f"precision.mode={MODES[name]}", "precision.loss_scale=none"]
        command = [str(HERE / "jumar_side.py"), case.recipe, case.kind, threads, *settings, *mode]
        competitors.append(Rival(f"jumar {name}", [sys.executable, *command], steps=case.steps))
    return competitors


def measured(chosen: argparse.Namespace, case: Case) -> list[Rival]:
    """Start all rivals, let them take turns, and end them."""
    competitors = rivals(chosen, case)
    for rival in competitors:
        rival.run(2)
    for _ in range(chosen.rounds):
        for rival in competitors:
            rival.medians.append(rival.run(chosen.steps))
    for rival in competitors:
        rival.close()
    return competitors


def ratios(original: Rival, jumar: Rival) -> list[float]:
    """TensorFlow's time over the other's, round by round."""
    return [a / b for a, b in zip(original.medians, jumar.medians, strict=True)]


def main() -> int:
    """Run the comparison and print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("network", choices=CASES)
    parser.add_argument("--original", type=Path, required=True, help="folder of its code")
    parser.add_argument("--tensorflow-python", required=True, help="a Python 3.7 that has it")
    parser.add_argument("--batch", type=int, default=0)
    parser.add_argument("--width", type=int, default=0)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=5, help="steps a round")
    parser.add_argument(
        "--starts", type=int, default=1, help="how often all processes are started anew"
    )
    parser.add_argument("--modes", nargs="+", choices=MODES, default=list(MODES))
    chosen = parser.parse_args()
    case = CASES[chosen.network]
    if not chosen.original.is_dir():
        parser.error(f"there is no folder {chosen.original}")
    competitors = [rival for _ in range(chosen.starts) for rival in measured(chosen, case)]
    names = list(dict.fromkeys(rival.name for rival in competitors))
    batch, width = chosen.batch or case.batch, chosen.width or case.width
    print(
        f"{chosen.network}: batch {batch}{f', width {width}' if width else ''}, "
        f"{chosen.threads} threads, "
        f"{chosen.starts} x {chosen.rounds} rounds of {chosen.steps} steps"
    )
    print(
        f"{'':12} {'median ms a step':>16} {'TensorFlow / it':>15}  {'rounds':>13}  of each start"
    )
    originals = [rival for rival in competitors if rival.name == names[0]]
    for name in names:
        same_name = [rival for rival in competitors if rival.name == name]
        starts = [
            ratios(original, competitor)
            for original, competitor in zip(originals, same_name, strict=True)
        ]
        every = sorted(ratio for start in starts for ratio in start)
        times = [time for rival in same_name for time in rival.medians]
        print(
            f"{name:12} {median(times):16.1f} {median(every):15.2f}  "
            f"{every[0]:5.2f} to {every[-1]:.2f}  "
            f"{' '.join(f'{median(start):.2f}' for start in starts)}  ({same_name[0].version})"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
