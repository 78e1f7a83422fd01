"""Kills training at random moments, goes on, and compares with runs that nothing disturbed.

    python benchmarks/resume_faults.py --kills 200 --seed 1

Each draw trains a small VQ-VAE with float16 (emulated), a loss scale that grows, averaged weights
and a checkpoint every second step on one to four ranks. It is killed once, or twice in a row, by
KILL, TERM or INT at a random moment, one in three while a checkpoint is written; a signal meets
one rank, or all of them as torchrun passes it on. The same command then has to go on: weights,
averages, optimizer, loss scale and batch norms of the last checkpoint have the hashes of the
undisturbed run, and every step is logged once with its loss, so that the order of samples is the
same. Ranks are forks of one process that has torch loaded; it ends the others where one dies, as
torchrun does.

Exit codes: 0 every run ended as if never disturbed; 1 at least one did not, and its folder stays.
"""

import argparse
import gc
import importlib
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from forked_ranks import command_line, send, start_ranks
from jumar.training.checkpoint_retention import list_checkpoints
from jumar.training.state_hashes import checkpoint_hashes

LOADED_FIRST = ("jumar.runs.train", "torch._dynamo", "sklearn.datasets")
"""What every run would import for seconds; most faults are to meet the training itself."""
STEPS = 40
SETTINGS = (
    "data.path=digits",
    "model.codes=8",
    "model.width=8",
    "data.batch_size=2",
    "data.eval_path=none",
    "training.log_every=1it",
    "training.evaluate_every=",
    "training.ema_decay=0.9",
    f"training.duration={STEPS}it",
    "checkpoints.every=2it",
    "precision.mode=allow_mix_precision",
    "precision.emulate_fp16=true",
    "precision.loss_scale=exponential",
    "precision.loss_scale.incr_every_n_steps=9",
)
SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT)
LIMIT_S = 120.0
GRACE_S = 30.0
_EXPECTED = {0, *(128 + number for number in SIGNALS), *(-number for number in SIGNALS)}
"""Exit codes of ranks that all met a signal: finished, saved and left, or ended by a signal."""


@dataclass(frozen=True, kw_only=True)
class Kill:
    """One fault.

    Attributes:
        signal: What is sent.
        after_s: Seconds after the start.
        in_checkpoint: Whether to wait from then on for a checkpoint that is being written.
        rank: The rank that is met; None for all.
    """

    signal: signal.Signals
    after_s: float
    in_checkpoint: bool
    rank: int | None


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """How a run ended: its exit codes, what was written, and how long it took."""

    codes: Sequence[int]
    was_met: bool
    seconds: float


def arguments(folder: Path, workers: int) -> list[str]:
    """The command line of a run."""
    settings = [*SETTINGS, f"data.workers={workers}"]
    chosen = [word for each in settings for word in ("--set", each)]
    return ["train", "vqvae-mnist", "--device", "cpu", "--run-dir", str(folder), *chosen]


def start(command: Sequence[str], ranks: int, log: Path) -> list[int]:
    """Fork the ranks of a run; returns their processes."""
    train_with = command_line(command, ranks, log)

    def work(rank: int) -> None:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        os.setsid()
        train_with(rank)

    return start_ranks(ranks, work)


def train(
    command: Sequence[str], ranks: int, folder: Path, log: Path, kill: Kill | None
) -> Outcome:
    """Let a run go to its end, or to what a fault makes of it."""
    processes = start(command, ranks, log)
    codes: dict[int, int] = {}
    try:
        return _watched(processes, codes, folder, kill)
    finally:
        # They lead sessions of their own, so that Ctrl-C does not reach them.
        send([each for each in processes if each not in codes], signal.SIGKILL)


def _watched(
    processes: Sequence[int], codes: dict[int, int], folder: Path, kill: Kill | None
) -> Outcome:
    """Wait for the ranks, whose exit codes go into `codes`, and send the signal in its moment."""
    began = time.monotonic()
    was_met, ends_at = False, began + LIMIT_S
    while len(codes) < len(processes):
        now = time.monotonic()
        for process in processes:
            if process not in codes:
                ended, status = os.waitpid(process, os.WNOHANG)
                if ended:
                    codes[process] = os.waitstatus_to_exitcode(status)
        if kill is not None and not was_met and now - began >= kill.after_s:
            writing = not kill.in_checkpoint or any((folder / "checkpoints").glob(".step-*"))
            if writing and not codes:
                was_met = True
                send(processes if kill.rank is None else [processes[kill.rank]], kill.signal)
        if any(code != 0 for code in codes.values()) and ends_at > now + GRACE_S:
            send([each for each in processes if each not in codes], signal.SIGTERM)
            ends_at = now + GRACE_S
        if now > ends_at:
            send([each for each in processes if each not in codes], signal.SIGKILL)
        time.sleep(0.0005)
    return Outcome(
        codes=[codes[each] for each in processes],
        was_met=was_met,
        seconds=time.monotonic() - began,
    )


def result(folder: Path) -> tuple[Mapping[str, str], dict[int, float], int]:
    """The hashes of the last checkpoint, the loss of each step, and how many lines those have."""
    *_, last = list_checkpoints(folder / "checkpoints")
    lines = (folder / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    rows = [row for row in map(json.loads, lines) if row["kind"] == "train"]
    return checkpoint_hashes(last), {row["step"]: row["loss"] for row in rows}, len(rows)


def differences(folder: Path, reference: Path) -> list[str]:
    """In what a run differs from the undisturbed one."""
    hashes, losses, rows = result(folder)
    expected, expected_losses, _ = result(reference)
    parts = sorted({name for name, _ in set(hashes.items()) ^ set(expected.items())})
    differing = [f"{len(parts)} parts of the state, first {parts[0]}"] if parts else []
    if losses != expected_losses:
        differing.append("losses of steps")
    if rows != len(losses):
        differing.append(f"{rows} log lines for {len(losses)} steps")
    left = [path.name for path in (folder / "checkpoints").glob(".step-*")]
    return [*differing, *(f"{name} is left" for name in left)]


def drawn(draw: random.Random, ranks: int, duration: float) -> Kill:
    """A fault somewhere in a run of that duration."""
    in_checkpoint = draw.random() < 1 / 3
    return Kill(
        signal=draw.choice(SIGNALS),
        after_s=draw.uniform(0, duration),
        in_checkpoint=in_checkpoint,
        rank=draw.choice([None, draw.randrange(ranks)]),
    )


def disturbed(
    draw: random.Random, place: Path, name: str, setting: tuple[int, int], lasted: float, count: int
) -> tuple[list[str], list[Kill], float]:
    """One run with faults: what is wrong with it, the faults that met it, the longest ending."""
    ranks, workers = setting
    folder, log = place / name, place / f"{name}.log"
    command, kills, longest = arguments(folder, workers), [], 0.0
    for _ in range(count):
        kill = drawn(draw, ranks, lasted)
        outcome = train(command, ranks, folder, log, kill)
        if outcome.was_met:
            kills.append(kill)
            longest = max(longest, outcome.seconds - kill.after_s)
            if kill.rank is None and not _EXPECTED.issuperset(outcome.codes):
                return [f"exit codes {outcome.codes} after {kill.signal.name}"], kills, longest
    outcome = train(command, ranks, folder, log, None)
    if any(outcome.codes):
        return [f"does not go on: exit codes {outcome.codes}"], kills, longest
    return differences(folder, place / f"reference-{ranks}"), kills, longest


def main() -> int:
    """Disturb runs until the number of faults is reached; print what became of them."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--ranks", type=int, nargs="+", default=[1, 2, 3, 4])
    parser.add_argument("--to", type=Path, help="where runs go; by default a temporary folder")
    chosen = parser.parse_args()
    # In forks, what they have in common is loaded once.
    os.environ.update(OMP_NUM_THREADS="1", PYTHONUNBUFFERED="1")
    for name in LOADED_FIRST:
        importlib.import_module(name)
    gc.freeze()
    if chosen.to is not None:
        chosen.to.mkdir(parents=True, exist_ok=True)
    place = Path(tempfile.mkdtemp(prefix="kills-", dir=chosen.to))
    draw = random.Random(chosen.seed)
    lasted: dict[int, float] = {}
    for ranks in chosen.ranks:
        name = f"reference-{ranks}"
        outcome = train(
            arguments(place / name, 0), ranks, place / name, place / f"{name}.log", None
        )
        if any(outcome.codes):
            print((place / f"{name}.log").read_text(encoding="utf-8"))
            return 1
        lasted[ranks] = outcome.seconds
    met: Counter[str] = Counter()
    wrong, runs, longest = 0, 0, 0.0
    while met.total() < chosen.kills:
        runs += 1
        ranks, workers = draw.choice(chosen.ranks), draw.choice([0, 0, 1])
        name = f"run-{runs:03}"
        problems, kills, ending = disturbed(
            draw, place, name, (ranks, workers), lasted[ranks], draw.choice([1, 1, 2])
        )
        longest = max(longest, ending)
        met.update(f"{each.signal.name} on {ranks}" for each in kills)
        if problems:
            wrong += 1
            print(f"{name}, {ranks} ranks, {workers} workers: {'; '.join(problems)}")
            print("  " + ", ".join(str(each) for each in kills), flush=True)
        else:
            shutil.rmtree(place / name, ignore_errors=True)
    for name, count in sorted(met.items()):
        print(f"{name:14} {count:4}")
    print(
        f"{met.total()} kills in {runs} runs, {wrong} of them not as if undisturbed; "
        f"the longest ending took {longest:.1f} s"
    )
    if not wrong:
        shutil.rmtree(place)
    else:
        print(f"Their folders: {place}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
