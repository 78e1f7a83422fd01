"""The stored comparisons of a tuning, to resume it after an interruption."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final, Literal, cast

from jumar.experiments.tuning.pairs import Pair
from jumar.ground.json_text import parse_json
from jumar.ground.paths import is_file, make_writable, unwritable

FILE: Final = "comparisons.jsonl"
Outcome = Literal["faster", "not faster", "undecided", "failed", "changes the weights"]


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """A candidate compared with the best settings before it.

    Attributes:
        against: Labels of the choices that it was compared with.
        candidate: Labels of the candidate's choices.
        outcome: The outcome.
        pairs: Seconds per step of both, timed alternately.
        reason: The reason if it failed.
        hashes: Hashes of the candidate's weights.
        memory_bytes: The candidate's peak memory.
    """

    against: tuple[str, ...]
    candidate: tuple[str, ...]
    outcome: Outcome
    pairs: tuple[Pair, ...] = ()
    reason: str = ""
    hashes: Mapping[str, str]
    memory_bytes: int = 0


class Journal:
    """The comparisons of one tuning, one per line.

    Args:
        folder: Folder of the file.
        key: The conditions of the measurements; those with another key are not reused.

    Attributes:
        discarded: Number of comparisons with another key.
        facts: The measurement of the initial settings; None if there is none yet.
    """

    def __init__(self, folder: Path, key: Mapping[str, Any]) -> None:
        make_writable(folder)
        self._path, self._key = folder / FILE, json.loads(json.dumps(key))
        self._comparisons: dict[tuple[tuple[str, ...], tuple[str, ...]], Comparison] = {}
        self.discarded = 0
        self.facts: dict[str, Any] | None = None
        lines = _lines(self._path)
        if lines and lines[0] == {"key": self._key}:
            for line in lines[1:]:
                self._remember(_comparison(line))
                if isinstance(line, dict) and isinstance(line.get("facts"), dict):
                    self.facts = line["facts"]
        else:
            self.discarded = max(len(lines) - 1, 0)
            self._write("w", {"key": self._key})

    def __len__(self) -> int:
        return len(self._comparisons)

    def found(self, against: Sequence[str], candidate: Sequence[str]) -> Comparison | None:
        """Return an earlier comparison of the same two settings, if there is one."""
        return self._comparisons.get((tuple(against), tuple(candidate)))

    def add(self, comparison: Comparison) -> None:
        """Record a comparison.

        Raises:
            UserError: The file cannot be written.
        """
        self._remember(comparison)
        self._write("a", asdict(comparison))

    def keep_facts(self, facts: Mapping[str, Any]) -> None:
        """Record the measurement of the initial settings.

        Raises:
            UserError: The file cannot be written.
        """
        self.facts = dict(facts)
        self._write("a", {"facts": self.facts})

    def _remember(self, comparison: Comparison | None) -> None:
        if comparison is not None:
            self._comparisons[comparison.against, comparison.candidate] = comparison

    def _write(self, mode: str, content: Mapping[str, Any]) -> None:
        try:
            with self._path.open(mode, encoding="utf-8") as file:
                file.write(json.dumps(content) + "\n")
        except OSError as error:
            raise unwritable(self._path, error) from error


def _lines(path: Path) -> list[Any]:
    """Return the lines that are valid JSON; a crash may have truncated the last one."""
    if not is_file(path):
        return []
    records: list[Any] = []
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        try:
            records.append(parse_json(line))
        except ValueError:
            continue
    return records


def _comparison(line: Any) -> Comparison | None:
    if not isinstance(line, dict):
        return None
    values = cast("dict[str, Any]", line)
    try:
        return Comparison(
            against=tuple(values["against"]),
            candidate=tuple(values["candidate"]),
            outcome=values["outcome"],
            pairs=tuple(
                (float(reference_s), float(candidate_s))
                for reference_s, candidate_s in values["pairs"]
            ),
            reason=str(values["reason"]),
            hashes=dict(values["hashes"]),
            memory_bytes=int(values["memory_bytes"]),
        )
    except (KeyError, TypeError, ValueError):
        return None
