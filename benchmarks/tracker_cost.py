"""What a tracking service costs a run: DS-CNN S, whose steps are the shortest of the zoo.

    pip install mlflow swanlab wandb
    python benchmarks/tracker_cost.py ../shared/data/keywords-ar [--rounds 5] [--steps 600]

Each service runs without a network: wandb and swanlab offline, MLflow on a database of SQLite. In
every round a run without a service and one with each take turns, in processes of their own;
both log every `--log-every` steps. Printed are the median step with and without, from the run's own
log, and the time that the training's thread spends in the service itself, as a share of all steps.
The second number is exact to a fraction of what the first can resolve on a shared machine; the
first also has what the service's own threads and processes take from the cores.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

SERVICES = ("wandb", "mlflow", "swanlab")
LIMIT = 0.01
"""Of a step, what a service may take."""

CHILD = """
import sys, time
from jumar.training.trackers import services

spent, record = 0.0, services.ServiceTracker.record

def timed(self, what):
    global spent
    began = time.perf_counter()
    record(self, what)
    spent += time.perf_counter() - began

services.ServiceTracker.record = timed
sys.argv = ["jumar", *sys.argv[1:]]
from jumar.cli.main import run
try:
    run()
finally:
    print(f"seconds in the service: {spent}")
"""


@dataclass(frozen=True, kw_only=True)
class Cost:
    """The cost in one run.

    Attributes:
        step_ms: The median step.
        share: Of the time of all steps, what the training's thread was in the service.
    """

    step_ms: float
    share: float


def main() -> int:
    """Train in turns and print the table."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("data", type=Path, help="data/keywords-ar of the reference data")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=600)
    parser.add_argument("--log-every", type=int, default=10)
    parser.add_argument("--service", action="append", choices=SERVICES)
    options = parser.parse_args()
    chosen = options.service or SERVICES
    plain: list[Cost] = []
    tracked: dict[str, list[Cost]] = {name: [] for name in chosen}
    with tempfile.TemporaryDirectory() as folder:
        for turn in range(options.rounds):
            place = Path(folder) / str(turn)
            plain.append(_trained(options, place / "plain", ()))
            for name in chosen:
                tracked[name].append(_trained(options, place / name, ("--track", name)))
    base = median(cost.step_ms for cost in plain)
    print(f"without a service: {base:.3f} ms a step, median of {options.rounds}")
    dear = False
    for name, costs in tracked.items():
        ratios = [mine.step_ms / other.step_ms for mine, other in zip(costs, plain, strict=True)]
        share = median(cost.share for cost in costs)
        dear |= share > LIMIT
        print(
            f"{name:8} {median(cost.step_ms for cost in costs):.3f} ms a step, "
            f"{median(ratios):.3f} times ({min(ratios):.3f} to {max(ratios):.3f}); "
            f"{100 * share:.2f} % of the time in the service"
        )
    return 1 if dear else 0


def _trained(options: argparse.Namespace, run: Path, track: Sequence[str]) -> Cost:
    settings = (
        f"data.path={options.data.absolute()}",
        "data.eval_path=none",
        "data.workers=0",
        "data.words=yes,no,up,down,left,right,start,stop",
        f"training.duration={options.steps}it",
        f"training.log_every={options.log_every}it",
    )
    words = [word for setting in settings for word in ("--set", setting)]
    command = [sys.executable, "-c", CHILD, "train", "ds-cnn-s", "--device", "cpu", *track]
    offline = {
        "WANDB_MODE": "offline",
        "SWANLAB_MODE": "offline",
        "MLFLOW_TRACKING_URI": f"sqlite:///{run.parent / 'mlflow.db'}",
    }
    environment = {name: value for name, value in os.environ.items() if name not in offline}
    run.parent.mkdir(parents=True, exist_ok=True)
    done = subprocess.run(
        [*command, "--run-dir", str(run), *words],
        env=environment | (offline if track else {}),
        cwd=run.parent,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        sys.exit(done.stdout + done.stderr)
    spent = float(done.stdout.rpartition("seconds in the service: ")[2])
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    steps = [line["step_ms"] for line in lines if "step_ms" in line][1:]
    return Cost(step_ms=median(steps), share=spent / (options.steps * median(steps) / 1000))


if __name__ == "__main__":
    sys.exit(main())
