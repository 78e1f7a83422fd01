"""Trains the run in a folder, as `jumar train --run-dir` does but without its command line's needs.

python benchmarks/on_accelerator/train_run.py RUN DEVICE
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "src"))

from jumar.ground.errors import EXIT_CODE, UserError
from jumar.runs.train import TrainRequest, train_recipe


def main() -> int:
    """Train; returns the exit code."""
    run, device = sys.argv[1:]
    try:
        return train_recipe(TrainRequest(recipe=None, run_dir=Path(run), device=device))
    except UserError as error:
        print(error, file=sys.stderr)
        return EXIT_CODE


if __name__ == "__main__":
    sys.exit(main())
