"""What a run of the tests skipped: counted by reason, and held against what may be skipped."""

import os
import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import pytest

VARIABLE = "JUMAR_ALLOWED_SKIPS"
"""Names a file of regular expressions, a line each; a skip whose reason none of them finds fails
the run. `.ci/run` sets it: what the machine offers is not left out unnoticed."""
ALLOWED = pytest.StashKey[list[str]]()
UNEXPECTED = pytest.StashKey[list[str]]()
MAX_SKIP_LINES = 5

_DOCUMENT = re.compile(r"(^|/)test_docs\.py$")
_NAMED = re.compile(r"'[^']*'|(?<!\w)/\S+")


def keep_allowed(config: pytest.Config) -> None:
    """Read the file that VARIABLE names, and hide it from runs that tests start."""
    path = os.environ.pop(VARIABLE, "")
    if path:
        lines = Path(path).read_text(encoding="utf-8").splitlines()
        config.stash[ALLOWED] = [line for line in lines if line and not line.startswith("#")]


def reported_skips(reporter: pytest.TerminalReporter) -> list[tuple[str, str]]:
    """File and reason of each test that was skipped."""
    skips: list[tuple[str, str]] = []
    for report in reporter.stats.get("skipped", []):
        path, _, reason = report.longrepr
        skips.append((str(path), str(reason)))
    return skips


def unexpected_skips(skips: Iterable[tuple[str, str]], allowed: Iterable[str]) -> list[str]:
    """A line for each reason that nothing allows, with how many tests skipped for it.

    Args:
        skips: File and reason of each skipped test.
        allowed: Regular expressions, each looked for in `file: reason`.
    """
    patterns = [re.compile(line) for line in allowed]
    counts: Counter[str] = Counter()
    for path, reason in skips:
        text = f"{path}: {reason.removeprefix('Skipped: ')}"
        if not any(pattern.search(text) for pattern in patterns):
            counts[skip_reason(path, reason)] += 1
    return [
        f"skipped, but could have been run: {reason} ({count})"
        for reason, count in sorted(counts.items())
    ]


def skip_reason(path: str, reason: str) -> str:
    """A reason as it is counted: without paths, and one for all commands of documents.

    Args:
        path: The file of the test.
        reason: What the test said, with or without pytest's `Skipped: `.
    """
    if _DOCUMENT.search(path):
        return "commands of documents that are shown and not run"
    plain = _NAMED.sub("...", reason.removeprefix("Skipped: "))
    return re.sub(r"^could not import .*", "needs a package that is not installed", plain)


def skip_summary(skips: Iterable[tuple[str, str]]) -> list[str]:
    """Lines with counts and reasons, the most frequent first; the rest in the last one.

    Args:
        skips: File and reason of each skipped test.
    """
    counts = Counter(skip_reason(path, reason) for path, reason in skips)
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    if len(ordered) > MAX_SKIP_LINES:
        ordered, rest = ordered[: MAX_SKIP_LINES - 1], ordered[MAX_SKIP_LINES - 1 :]
        others = "; ".join(f"{reason} ({count})" for reason, count in rest)
        ordered.append((others, sum(count for _, count in rest)))
    width = max((len(str(count)) for _, count in ordered), default=0)
    return [f"{count:{width}}  {reason}" for reason, count in ordered]
