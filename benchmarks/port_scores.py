"""Score ports of repositories against ports of the same that people made by hand.

    python benchmarks/port_scores.py monodepth=monodepth:MONODEPTH_ID2099_for_TensorFlow

Each argument names a repository: its name, the folder of the original, and the folder of the
hand-made port, such as those of Ascend/ModelZoo-TensorFlow. `--pairs FOLDER` takes all folders in
it that have `original` and `hand` in them. Both are laid side by side, statement by statement; a
change whose words belong to the port is held against what `jumar port` does to the original with
the options by which the person ported: rewritten, reported, left for a reason, or silent. A change
of two topics counts twice. `--silent` prints the silent ones, `--others` the changes that do not
belong to the port, `--needless` those that were made without need. The exit code is 1 where less
than `--least` of the changes of all repositories together is covered.
"""

import argparse
import sys
from collections import Counter
from pathlib import Path

from hand_ports.changes import HandChange
from hand_ports.scoring import Score, score


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("pairs", nargs="*", help="NAME=ORIGINAL:HAND")
    parser.add_argument("--pairs", dest="folder", type=Path, help="folder of folders")
    parser.add_argument("--only", nargs="+", default=[], help="names within --pairs")
    parser.add_argument("--least", type=float, default=0.0, help="share that must be covered")
    for what in ("silent", "others", "needless", "answers", "topics"):
        parser.add_argument(f"--{what}", action="store_true")
    arguments = parser.parse_args()
    scores: list[Score] = []
    print(
        "| repository | changes | rewritten | reported | left | silent | covered | needless "
        "| other |"
    )
    print("|---|---|---|---|---|---|---|---|---|")
    for name, original, hand in _pairs(arguments):
        scores.append(score(name, original, hand))
        print(_row(scores[-1].name, [scores[-1]]), flush=True)
    print(_row("all", scores))
    if arguments.topics:
        _print_topics(scores)
    for one in scores:
        for item in one.scored:
            if (
                (item.outcome == "silent" and arguments.silent)
                or (item.outcome == "needless" and arguments.needless)
                or (item.outcome in ("rewritten", "reported", "left") and arguments.answers)
            ):
                _print_change(
                    one.name,
                    f"{item.outcome} [{item.topic}] {item.near} {item.rule}",
                    item.change,
                )
        for change in one.others if arguments.others else ():
            _print_change(one.name, "other", change)
    return int(_covered(scores) < arguments.least)


def _pairs(arguments: argparse.Namespace) -> list[tuple[str, Path, Path]]:
    found: list[tuple[str, Path, Path]] = []
    for text in arguments.pairs:
        name, _, paths = text.partition("=")
        original, _, hand = paths.partition(":")
        if not (original and hand):
            sys.exit(f"'{text}' is not NAME=ORIGINAL:HAND")
        found.append((name, Path(original), Path(hand)))
    if arguments.folder:
        found += [
            (path.name, path / "original", path / "hand")
            for path in sorted(arguments.folder.iterdir())
            if (path / "hand").is_dir() and (not arguments.only or path.name in arguments.only)
        ]
    for name, original, hand in found:
        for folder in (original, hand):
            if not folder.is_dir():
                sys.exit(f"{name}: {folder} is not a folder")
    return found


def _row(name: str, scores: list[Score]) -> str:
    counted = [
        sum(one.count(outcome) for one in scores)
        for outcome in ("rewritten", "reported", "left", "silent")
    ]
    needless = sum(one.count("needless") for one in scores)
    others = sum(len(one.others) for one in scores)
    cells = [name, sum(counted), *counted, f"{_covered(scores):.1%}", needless, others]
    return "| " + " | ".join(map(str, cells)) + " |"


def _covered(scores: list[Score]) -> float:
    counted = sum(len(one.scored) - one.count("needless") for one in scores)
    silent = sum(one.count("silent") for one in scores)
    return (counted - silent) / counted if counted else 1.0


def _print_topics(scores: list[Score]) -> None:
    print("\n| topic | changes | rewritten | reported | left | silent |\n|---|---|---|---|---|---|")
    counts = Counter(
        (item.topic, item.outcome)
        for one in scores
        for item in one.scored
        if item.outcome != "needless"
    )
    for topic in sorted({topic for topic, _ in counts}):
        row = [counts[topic, kind] for kind in ("rewritten", "reported", "left", "silent")]
        print("| " + " | ".join(map(str, [topic, sum(row), *row])) + " |")


def _print_change(name: str, what: str, change: HandChange) -> None:
    print(f"\n{name}/{change.path}:{change.first}-{change.last}: {what}")
    for text in change.before:
        print("  - " + text.replace("\n", "\n  - "))
    for text in change.after:
        print("  + " + text.replace("\n", "\n  + "))


if __name__ == "__main__":
    sys.exit(main())
