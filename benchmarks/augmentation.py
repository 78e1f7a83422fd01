"""What each augmentation does to ResNeXt-50 at 32 px, on pictures of ten classes.

    python benchmarks/augmentation.py ../shared/data/cifar10-subset --steps 2000 --seeds 3
    python benchmarks/augmentation.py ../shared/data/cifar10-subset --steps 400 --held-out 0.9

One row for each augmentation: top-1 on the evaluation pictures after the same number of steps,
mean and standard deviation over the seeds, the difference from no augmentation in the same seeds,
and the time of a step. Seeds are the outer loop, so that a run that is stopped compares all rows.
With `--held-out 0.9` a tenth of the training pictures is trained on and the others are scored: with
few pictures a network overfits within the steps that a CPU has time for.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

VARIANTS: dict[str, Sequence[str]] = {
    "none": (),
    "label smoothing 0.1": ("loss.label_smoothing=0.1",),
    "random crop": (
        "data.preprocessing.crop=picture",
        "data.preprocessing.crop_area=0.3,1.0",
    ),
    "colours": ("data.preprocessing.contrast=0.6,1.4", "data.preprocessing.saturation=0.6,1.4"),
    "mixup": ("data.mixing=mixup", "data.mixing.alpha=0.2"),
    "cutmix": ("data.mixing=cutmix", "data.mixing.alpha=1.0"),
    "mixup-or-cutmix": ("data.mixing=mixup-or-cutmix",),
    "randaugment 2, 9": ("data.auto_augment=randaugment",),
    "random erasing": ("data.erasing=random",),
    "crop, cutmix, randaugment": (
        "data.preprocessing.crop=picture",
        "data.preprocessing.crop_area=0.3,1.0",
        "data.mixing=cutmix",
        "data.auto_augment=randaugment",
    ),
}
"""Settings of each row beside those that all have."""


def common(path: Path, arguments: argparse.Namespace) -> list[str]:
    """Settings of all rows: pictures are mirrored, nothing else is random about them."""
    return [
        f"data.path={path}",
        "data.image_size=32",
        f"data.batch_size={arguments.batch}",
        "data.workers=0",
        "data.preprocessing.crop=none",
        "data.preprocessing.brightness=0",
        "data.preprocessing.contrast=1,1",
        "data.preprocessing.saturation=1,1",
        "data.preprocessing.eval_view=whole",
        "loss.label_smoothing=0",
        "optimizer.learning_rate=0.05",
        "schedule.warmup=5%",
        f"training.duration={arguments.steps}it",
        "training.log_every=100it",
        "training.evaluate_every=",
        "checkpoints.every=",
        "checkpoints.keep=1",
        f"precision.mode={arguments.mode}",
        f"data.val_fraction={arguments.held_out}",
    ]


def trained(
    settings: Sequence[str], run: Path, arguments: argparse.Namespace
) -> tuple[float, float | None]:
    """Top-1 in percent and milliseconds a step of one run in a process of its own."""
    command = [sys.executable, "-m", "jumar", "train", "resnext50", "--run-dir", str(run)]
    command += ["--device", arguments.device]
    for assignment in settings:
        command += ["--set", assignment]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(command)}\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    results = json.loads((run / "results.json").read_text())
    return results["metrics"]["top1"], (results["throughput"] or {}).get("step_ms_median")


def table(scores: dict[str, dict[int, float]], times: dict[str, list[float]]) -> str:
    """The table in Markdown."""
    lines = [
        "| augmentation | top-1, % | difference in the same seeds | ms a step |",
        "|---|---|---|---|",
    ]
    for name, by_seed in scores.items():
        if not by_seed:
            continue
        gains = [value - scores["none"][seed] for seed, value in by_seed.items()]
        gain = "" if name == "none" else _spread(gains, sign=True)
        milliseconds = f"{statistics.median(times[name]):.0f}" if times[name] else ""
        lines.append(f"| {name} | {_spread(list(by_seed.values()))} | {gain} | {milliseconds} |")
    return "\n".join(lines)


def _spread(values: Sequence[float], *, sign: bool = False) -> str:
    text = f"{statistics.mean(values):{'+' if sign else ''}.2f}"
    return text if len(values) < 2 else f"{text} ± {statistics.stdev(values):.2f}"


def main() -> None:
    """Train every row with every seed and print the table after each seed."""
    parser = argparse.ArgumentParser(description=str(__doc__).split("\n", 1)[0] if __doc__ else "")
    parser.add_argument("data", type=Path, help="a folder with train and val of ten classes")
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument(
        "--held-out", type=float, default=0, help="share of the training pictures that is scored"
    )
    parser.add_argument("--device", default="auto")
    parser.add_argument("--mode", default="allow_mix_precision", help="precision.mode")
    parser.add_argument("--only", nargs="*", choices=list(VARIANTS), help="these rows beside none")
    parser.add_argument("--json", type=Path, help="file for every score")
    arguments = parser.parse_args()
    names = [name for name in VARIANTS if not arguments.only or name in {"none", *arguments.only}]
    scores: dict[str, dict[int, float]] = {name: {} for name in names}
    times: dict[str, list[float]] = {name: [] for name in names}
    for seed in range(1, arguments.seeds + 1):
        for name in names:
            with tempfile.TemporaryDirectory() as folder:
                settings = [*common(arguments.data, arguments), *VARIANTS[name], f"seed={seed}"]
                top1, milliseconds = trained(settings, Path(folder) / "run", arguments)
            scores[name][seed] = top1
            if milliseconds is not None:
                times[name].append(milliseconds)
            print(f"seed {seed}, {name}: {top1:.2f}", file=sys.stderr, flush=True)
            if arguments.json:
                arguments.json.write_text(json.dumps({"scores": scores, "times": times}))
        print(table(scores, times), flush=True)


if __name__ == "__main__":
    main()
