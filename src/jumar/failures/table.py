"""The fault table: the meaning of log lines, and which faults can lead to which.

Its entries are data in `faults/*.json`. A mark is literal text with `…` for gaps, so that
matching takes time linear in the line's length.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache, cached_property
from importlib.resources import files
from typing import Any, Final, Literal, NamedTuple, get_args

from jumar.ground.text import Text

Role = Literal["cause", "general", "wait", "effect", "end", "note"]
"""Roles of faults, the likeliest first cause first.

`cause`: states what is wrong. `general`: an exception that only its own message explains. `wait`: a
rank waited in vain for others. `effect`: an operation failed for a reason that is logged elsewhere.
`end`: the end of processes, or a launcher's summary. `note`: worth knowing, but not a failure.
"""

ROLES: Final[tuple[Role, ...]] = get_args(Role)
_GAP: Final = "…"
_CODE: Final = re.compile(r"E(?<![A-Za-z0-9]E)(?:[A-Z0-9]\d{4}|RR\d{5})(?!\d)")
_NUMBER: Final = re.compile(r"[1235]\d{5}(?!\d)")
_CODE_LABEL: Final = re.compile(
    r"(?:err(?:or)? ?(?:code|no)?|ret(?:code|val| ?code)?|result|status)(?: is)?[\s=:\[(]{1,4}$",
    re.IGNORECASE,
)
_WORD: Final = re.compile(r"\w+")
_WHOLE_WORD: Final = re.compile(r"(?<=\W)\w{3,}(?=\W)")
_TRIGGERS: Final = (
    *("nccl", "hccl", "socket", "alloc", "memory", "device", "cuda", "stream", "kernel"),
    *("invalid", "module", "import", "version", "killed", "signal", "connect", "timed out"),
    *("timeout", "time out", "cannot", "expect", "assert", "mismatch", "not found", "no such"),
    *("not supported", "unsupported", "abnormal", "exception", "fail", "error"),
)
"""Words from rare to frequent; a mark is searched for only in lines that contain its word."""


@dataclass(frozen=True, kw_only=True)
class Mark:
    """Literal pieces that must occur in a line in this order."""

    pieces: tuple[str, ...]

    @cached_property
    def weight(self) -> int:
        return sum(map(len, self.pieces))

    @cached_property
    def longest(self) -> str:
        return max(self.pieces, key=len)

    @cached_property
    def word(self) -> str:
        """A whole word that every line with this mark contains; empty if there is none."""
        return max(
            (word for piece in self.pieces for word in _WHOLE_WORD.findall(piece)),
            key=len,
            default="",
        )

    def is_in(self, lower_line: str) -> bool:
        position = 0
        for piece in self.pieces:
            position = lower_line.find(piece, position)
            if position < 0:
                return False
            position += len(piece)
        return True


@dataclass(frozen=True, kw_only=True)
class Fault:
    """One entry of the table.

    Args:
        id: The name of the entry.
        role: See `Role`.
        what: The explanation.
        first: What to try first.
        marks: Any of them identifies a line as this fault.
        codes: Error codes of CANN and torch_npu that identify it, if a line calls one a code.
        follows: Faults that can lead to this one.
        blames: Text before and after a number that names the rank to blame.
        sources: Where the fault is documented or was reported.
        example: A real line.
        quoted: Whether to quote the line as well, because the entry is more general.
        informs: Whether the note is the cause if all failures can follow from it.
        telling: Whether the line states why the job ended.
        undone: Marks of later lines that show that the fault is over.
    """

    id: str
    role: Role
    what: Text
    first: Text
    marks: tuple[Mark, ...] = ()
    codes: tuple[str, ...] = ()
    follows: frozenset[str] = frozenset()
    blames: tuple[str, str] | None = None
    sources: tuple[str, ...] = ()
    example: str = ""
    quoted: bool = False
    informs: bool = False
    telling: bool = False
    undone: tuple[Mark, ...] = ()

    @property
    def priority(self) -> int:
        """The position of the role: the lower, the likelier the fault is the first cause."""
        return ROLES.index(self.role)


@dataclass
class Table:
    """All faults, indexed for fast lookup."""

    faults: dict[str, Fault]
    _by_trigger: dict[str, list[tuple[Mark, Fault]]] = field(
        default_factory=dict[str, list[tuple[Mark, Fault]]]
    )
    _by_code: dict[str, Fault] = field(default_factory=dict[str, Fault])
    _undone: list[Fault] = field(default_factory=list[Fault])

    def __post_init__(self) -> None:
        self._undone = [fault for fault in self.faults.values() if fault.undone]
        for fault in self.faults.values():
            for code in fault.codes:
                self._by_code[code] = fault
            for mark in fault.marks:
                trigger = next((word for word in _TRIGGERS if word in mark.longest), mark.longest)
                self._by_trigger.setdefault(trigger, []).append((mark, fault))

    def sieve(self, text: str) -> "Sieve":
        """Return the entries of the table that can match lines of a text."""
        lower_text = text.lower()
        words = frozenset(_WORD.findall(lower_text))
        present = tuple(
            (trigger, kept)
            for trigger, marks in self._by_trigger.items()
            if (
                kept := [
                    (mark, fault)
                    for mark, fault in marks
                    if (not mark.word or mark.word in words) and mark.longest in lower_text
                ]
            )
        )
        return Sieve(present, self._by_code if any(codes_in(text)) else {})

    def undone_in(self, lower_text: str) -> list[tuple[Mark, str]]:
        """Return the faults that lines of a text may show to be over, with their marks."""
        return [
            (mark, fault.id)
            for fault in self._undone
            for mark in fault.undone
            if mark.longest in lower_text
        ]

    def fault_in(self, line: str) -> Fault | None:
        """Return the fault of a line; of several, the likeliest cause, then the longest mark."""
        return self.sieve(line).fault_in(line)


class Sieve(NamedTuple):
    """The part of the table that can match some lines."""

    marks: tuple[tuple[str, list[tuple[Mark, Fault]]], ...]
    codes: dict[str, Fault]

    def fault_in(self, line: str) -> Fault | None:
        """Like `Table.fault_in`."""
        matches = [(-fault.priority, weight, fault) for weight, fault in self._matches(line)]
        return max(matches, key=lambda match: match[:2])[2] if matches else None

    def _matches(self, line: str) -> Iterator[tuple[int, Fault]]:
        lower_line = line.lower()
        for word, marks in self.marks:
            if word in lower_line:
                yield from ((mark.weight, fault) for mark, fault in marks if mark.is_in(lower_line))
        if self.codes:
            for code in codes_in(line):
                if code in self.codes:
                    yield len(code), self.codes[code]


def codes_in(line: str) -> Iterator[str]:
    """Yield codes of CANN and torch_npu: `EI0002`, `ERR02200`, and `507018` if labelled a code."""
    yield from _CODE.findall(line)
    for match in _NUMBER.finditer(line):
        start = match.start()
        if _CODE_LABEL.search(line, max(0, start - 24), start):
            yield match.group()


def mark_of(text: str) -> Mark:
    """Parse a mark in the notation of the table: `first piece … second piece`."""
    return Mark(pieces=tuple(piece.strip(" ").lower() for piece in text.split(_GAP)))


@cache
def fault_table() -> Table:
    """Return the table that is part of jumar."""
    faults: dict[str, Fault] = {}
    folder = files("jumar.failures") / "faults"
    for file in sorted(folder.iterdir(), key=lambda path: path.name):
        if file.name.endswith(".json"):
            for entry in json.loads(file.read_text(encoding="utf-8")):
                faults[entry["id"]] = _fault(entry)
    return Table(faults)


def _fault(entry: dict[str, Any]) -> Fault:
    before, _, after = entry.get("blames", "").partition("{}")
    return Fault(
        id=entry["id"],
        role=entry["role"],
        what=Text(en=entry["en"], zh=entry["zh"]),
        first=Text(en=entry["try_en"], zh=entry["try_zh"]),
        marks=tuple(mark_of(text) for text in entry.get("marks", ())),
        codes=tuple(entry.get("codes", ())),
        follows=frozenset(entry.get("follows", ())),
        blames=(before, after) if before else None,
        sources=tuple(entry["sources"]),
        example=entry["example"],
        quoted=entry["role"] == "general" or entry.get("quote", False),
        informs=entry.get("informs", False),
        telling=entry.get("telling", False),
        undone=tuple(mark_of(text) for text in entry.get("undone", ())),
    )
