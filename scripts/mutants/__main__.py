"""Plant defects drawn by a seed, run the tests that cover each, and say which went unnoticed.

    python -m scripts.mutants --seed 1 --count 300

The first run of a state of the tests also runs the suite once, to see which test runs which line;
it is kept in `.mutants/` and taken again with `--keep-coverage`. What changes nothing that anyone
could see is listed with its reason in `equivalent.json` and not counted.
"""

import argparse
import json
import sys
import tempfile
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue

from scripts.mutants import covering
from scripts.mutants.drawing import ROOMS, Mutant, draw
from scripts.mutants.trying import Copy, Trial

CHECKOUT = Path(__file__).resolve().parents[2]
KEPT = CHECKOUT / ".mutants"
EQUIVALENT = Path(__file__).with_name("equivalent.json")


def main() -> int:
    """Draw, try, and print the score by room."""
    options = _options()
    kept: Path = options.kept.resolve()
    kept.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="mutants-") as name:
        copies = [Copy(CHECKOUT, Path(name) / str(number)) for number in range(options.jobs)]
        first = copies[0]
        drawn = draw(CHECKOUT, options.seed, options.count, options.room or ROOMS, options.below)
        print(f"mutants: {len(drawn)} drawn by seed {options.seed}", flush=True)
        files = sorted({mutant.file for mutant in drawn})
        covered = _covering(options, kept, first, files)
        trials = _try_all(drawn, covered, copies, options.seconds)
        doubtful = _failing_anyway(trials, first, covered)
    trials = [trial for trial in trials if trial.killer not in doubtful]
    for test in sorted(doubtful):
        print(f"fails without a defect too, its trials are left out: {test}")
    report = [_row(trial) for trial in trials]
    (options.to or kept / "trials.json").write_text(
        json.dumps(report, indent=1) + "\n", encoding="utf-8"
    )
    print(score(trials, _equivalents()))
    return 0


def _covering(
    options: argparse.Namespace, kept: Path, copy: Copy, files: list[str]
) -> covering.Covering:
    """Which tests to run for which line of these files."""
    if options.mirrors:
        print("mutants: running the tests that mirror or import these files once", flush=True)
        # In a folder of its own: the times of a few tests must not replace those of the coverage.
        return covering.time_mirrors(
            *(copy.path, copy.python, kept / "mirrors", options.jobs, copy.environment, files),
            keep=options.keep_coverage,
        )
    if not options.keep_coverage or not (kept / "coverage").exists():
        rooms = (options.room or ROOMS) if options.own_tests else ()
        which = "the rooms' own tests" if rooms else "the suite"
        print(f"mutants: running {which} once, to see which runs which line", flush=True)
        covering.collect(copy.path, copy.python, kept, options.jobs, copy.environment, rooms)
        (kept / "copy").write_text(str(copy.path), encoding="utf-8")
    ran_in = Path((kept / "copy").read_text(encoding="utf-8"))
    return covering.read(kept, ran_in, files)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="mutants", description=__doc__)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--room", action="append", choices=ROOMS)
    parser.add_argument(
        "--below",
        action="append",
        default=[],
        metavar="PATH",
        help="only files whose path within src/jumar/ begins with this",
    )
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=60.0, help="of tests for each defect")
    parser.add_argument("--keep-coverage", action="store_true", help="of the last call")
    parser.add_argument(
        "--own-tests",
        action="store_true",
        help="only those of the rooms, not the whole suite: cheaper, and a lower bound",
    )
    parser.add_argument(
        "--mirrors",
        action="store_true",
        help="only tests that mirror or import the drawn files, no coverage: a lower bound",
    )
    parser.add_argument("--kept", type=Path, default=KEPT, help="the folder of what is kept")
    parser.add_argument("--to", type=Path, help="trials.json of that folder if not given")
    return parser.parse_args()


def _try_all(
    drawn: list[Mutant], covered: covering.Covering, copies: list[Copy], budget: float
) -> list[Trial]:
    """Try each defect in the next free copy; a line for each as it ends."""
    free: SimpleQueue[Copy] = SimpleQueue()
    for copy in copies:
        free.put(copy)
    printing = threading.Lock()

    def one(mutant: Mutant) -> Trial:
        tests = covering.chosen_tests(covered, CHECKOUT, mutant.file, mutant.line, budget)
        limit = 60 + 4 * covering.expected_seconds(covered, tests)
        copy = free.get()
        try:
            trial = copy.attempt(mutant, tests, limit)
        finally:
            free.put(copy)
        with printing:
            print(
                f"{trial.outcome:8} {mutant.file}:{mutant.line} {mutant.before} -> {mutant.after}"
                f"  [{trial.killer or trial.tests}]",
                flush=True,
            )
        return trial

    with ThreadPoolExecutor(len(copies)) as pool:
        return list(pool.map(one, drawn))


def _failing_anyway(trials: list[Trial], copy: Copy, covered: covering.Covering) -> set[str]:
    """The tests that fail without a defect too, of those that noticed one."""
    killers = sorted({trial.killer for trial in trials if "::" in trial.killer})
    left = list(killers)
    failing: set[str] = set()
    while left:
        limit = 60 + 4 * sum(covered.seconds.get(name, 1.0) for name in left)
        result, name = copy.run(left, limit)
        if result == "passed":
            break
        if name not in left:
            print(f"mutants: the tests that noticed could not be run again: {result} {name}")
            break
        failing.add(name)
        left = left[left.index(name) + 1 :]
    return failing


def _row(trial: Trial) -> dict[str, str | int]:
    mutant = trial.mutant
    return {
        "outcome": trial.outcome,
        "file": mutant.file,
        "line": mutant.line,
        "before": mutant.before,
        "after": mutant.after,
        "tests": trial.tests,
        "killer": trial.killer,
    }


def _equivalents() -> set[tuple[str, str, str]]:
    rows: list[dict[str, str]] = json.loads(EQUIVALENT.read_text(encoding="utf-8"))
    return {(row["file"], row["before"], row["after"]) for row in rows}


def score(trials: list[Trial], equivalents: set[tuple[str, str, str]]) -> str:
    """The table: what was noticed of what was planted, by room, without equivalents."""
    counted = [
        trial
        for trial in trials
        if trial.outcome in ("killed", "timeout")
        or (trial.mutant.file, trial.mutant.before, trial.mutant.after) not in equivalents
    ]
    planted = Counter(trial.mutant.room for trial in counted)
    noticed = Counter(
        trial.mutant.room for trial in counted if trial.outcome in ("killed", "timeout")
    )
    lines = ["", "| room | planted | noticed | |", "|---|---|---|---|"]
    for room in ROOMS:
        if planted[room]:
            share = noticed[room] / planted[room]
            lines.append(f"| `{room}` | {planted[room]} | {noticed[room]} | {share:.0%} |")
    total, all_noticed = sum(planted.values()), sum(noticed.values())
    share = all_noticed / total if total else 0.0
    lines.append(f"| all | {total} | {all_noticed} | {share:.0%} |")
    lines.append(f"\nequivalent, not counted: {len(trials) - len(counted)}")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
