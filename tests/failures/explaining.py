"""Logs as the tests give them: files in a folder, explained with the table of the package."""

from pathlib import Path

from jumar.failures import Explanation, explained, fault_table, read_job


def explain(*paths: Path) -> Explanation:
    """The result for the logs."""
    return explained(read_job([str(path) for path in paths], fault_table()))


def explain_text(folder: Path, **logs: str) -> Explanation:
    """The result for these logs; the keyword is the file's name without `.log`."""
    for name, text in logs.items():
        (folder / f"{name}.log").write_text(text, encoding="utf-8")
    return explain(folder)


def named(explanation: Explanation) -> list[str]:
    """The faults of the candidates, the likeliest first."""
    return [each.fault.id for each in explanation.candidates]


def to_blame(explanation: Explanation) -> tuple[int, ...]:
    """The ranks to blame for the first candidate."""
    culprit = explanation.candidates[0].culprit
    return culprit.ranks if culprit else ()
