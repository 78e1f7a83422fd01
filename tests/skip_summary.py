"""What was skipped and why, in five lines at the end of a run of the tests.

Hundreds of skips that nobody reads hide the one that should not be there.
"""

import re
from collections import Counter
from collections.abc import Iterable

MOST_LINES = 5

_DOCUMENT = re.compile(r"(^|/)test_docs\.py$")
_NAMED = re.compile(r"'[^']*'|(?<!\w)/\S+")


def reason_of(path: str, reason: str) -> str:
    """A reason as it is counted: without paths, and one for all commands of documents.

    Args:
        path: The file of the test.
        reason: What the test said, with or without pytest's `Skipped: `.
    """
    if _DOCUMENT.search(path):
        return "commands of documents that are shown and not run"
    plain = _NAMED.sub("...", reason.removeprefix("Skipped: "))
    return re.sub(r"^could not import .*", "needs a package that is not installed", plain)


def summary(skips: Iterable[tuple[str, str]]) -> list[str]:
    """Lines with counts and reasons, the most frequent first; the rest in the last one.

    Args:
        skips: File and reason of each skipped test.
    """
    counts = Counter(reason_of(path, reason) for path, reason in skips)
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    if len(ordered) > MOST_LINES:
        ordered, rest = ordered[: MOST_LINES - 1], ordered[MOST_LINES - 1 :]
        others = "; ".join(f"{reason} ({count})" for reason, count in rest)
        ordered.append((others, sum(count for _, count in rest)))
    width = max((len(str(count)) for _, count in ordered), default=0)
    return [f"{count:{width}}  {reason}" for reason, count in ordered]
