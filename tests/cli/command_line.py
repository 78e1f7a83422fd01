"""Running the command line in a separate process."""

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[2]
SMALL = (
    "--set",
    "data.image_size=63",
    "--set",
    "data.batch_size=8",
    "--set",
    "training.log_every=1it",
    "--set",
    "training.evaluate_every=",
)


def environment() -> dict[str, str]:
    return {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1"}


def jumar(*arguments: str | Path, cwd: Path, code: int = 0) -> subprocess.CompletedProcess[str]:
    """Run `jumar` and hold it to an exit code; no error of the user's shows a traceback."""
    done = subprocess.run(
        [sys.executable, "-m", "jumar", *map(str, arguments)],
        cwd=cwd,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == code, f"exit {done.returncode}\n{done.stdout}\n{done.stderr}"
    if code == 2:
        assert "Traceback" not in done.stderr, done.stderr
    return done


def start(arguments: Sequence[str | Path], cwd: Path) -> subprocess.Popen[str]:
    """Start `jumar` and leave it running."""
    return subprocess.Popen(
        [sys.executable, "-m", "jumar", *map(str, arguments)],
        cwd=cwd,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def start_ranks(arguments: Sequence[str], cwd: Path) -> subprocess.Popen[str]:
    """Start torchrun and leave it running."""
    return subprocess.Popen(
        [sys.executable, "-m", "torch.distributed.run", *arguments],
        cwd=cwd,
        env={**environment(), "PYTHONPATH": f"{CHECKOUT}:{CHECKOUT / 'src'}"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def on_two_ranks(*arguments: str | Path, cwd: Path) -> tuple[int, str, str]:
    """Exit code and output of `torchrun --nproc-per-node 2 -m jumar ...`."""
    launched = ["--standalone", "--nproc-per-node", "2", "-m", "jumar", *map(str, arguments)]
    process = start_ranks(launched, cwd)
    out, err = process.communicate(timeout=120)
    return process.returncode, out, err
