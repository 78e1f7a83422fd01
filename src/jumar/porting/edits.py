"""The result of porting: edits, findings, and places left unchanged.

All output (diff, Markdown, JSON, page) is made from a `TreeReport`.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Literal

from jumar.ground.text import Language as Language
from jumar.ground.text import Text as Text

Confidence = Literal["certain", "likely", "unsure"]
"""`certain`: the construct is resolved to its library by name. `likely`: it follows from how a
value is used. `unsure`: a person should look."""

Severity = Literal["blocking", "accuracy", "speed", "look"]
"""What happens if a finding is ignored: the script does not run on the NPU, it computes something
else, it is slow, or it may be none of these."""

FileStatus = Literal["ported", "unchanged", "copied", "unreadable"]
"""`ported`: with edits. `unchanged`: read, nothing to do. `copied`: not a script. `unreadable`: a
script that could not be read or parsed; it is copied as it is."""


WHOLE_TREE_RULE = "npu-options"
"""The rule whose finding concerns the whole tree; it is listed first."""


@dataclass(frozen=True, kw_only=True)
class Remark:
    """What a rule tells a person: the reason and the advice of a finding, and their weight.

    Args:
        en: What is wrong.
        zh: The same in Chinese.
        todo_en: What to do.
        todo_zh: The same in Chinese.
        severity: What happens if it is ignored.
        confidence: How certain it is.
    """

    en: str
    zh: str
    todo_en: str = ""
    todo_zh: str = ""
    severity: Severity = "look"
    confidence: Confidence = "certain"

    @property
    def reason(self) -> Text:
        return Text(en=self.en, zh=self.zh)

    @property
    def todo(self) -> Text:
        return Text(en=self.todo_en, zh=self.todo_zh)

    def filled(self, **values: object) -> "Remark":
        """Return a copy with `{name}` replaced in all texts, as `Text.filled` does."""
        reason, todo = self.reason.filled(**values), self.todo.filled(**values)
        return replace(self, en=reason.en, zh=reason.zh, todo_en=todo.en, todo_zh=todo.zh)

    def finding(
        self, *, rule: str, place: "Place", place_after: "Place | None", code: str, source: str
    ) -> "Finding":
        """Return the finding that a rule makes with it at a place."""
        return Finding(
            rule=rule,
            place=place,
            place_after=place_after,
            code=code,
            reason=self.reason,
            todo=self.todo,
            severity=self.severity,
            confidence=self.confidence,
            source=source,
        )


@dataclass(frozen=True, kw_only=True, order=True)
class Place:
    """A position in a file: line and column in characters, both counted from 1."""

    line: int
    column: int

    def __str__(self) -> str:
        return f"{self.line}:{self.column}"


@dataclass(frozen=True, kw_only=True)
class Edit:
    """One decision to rewrite something.

    `before` and `after` are the source before and after, shortened to what a reader needs;
    `place_after` is the position in the ported file, None if the source was removed.
    """

    rule: str
    place: Place
    place_after: Place | None
    before: str
    after: str
    reason: Text
    confidence: Confidence
    source: str


@dataclass(frozen=True, kw_only=True)
class Finding:
    """Something a person has to decide, with advice; it does not change the source."""

    rule: str
    place: Place
    place_after: Place | None
    code: str
    reason: Text
    todo: Text
    severity: Severity
    confidence: Confidence
    source: str


@dataclass(frozen=True, kw_only=True)
class Kept:
    """Something that a rule looked at and deliberately left unchanged."""

    rule: str
    place: Place
    code: str
    reason: Text


@dataclass(frozen=True, kw_only=True)
class FileReport:
    """The outcome for one file.

    `path` is relative to the tree, with forward slashes; `note` explains why a file was copied
    or could not be read; `defect` is set if the cause is a bug in jumar. `before` and `after` are
    the texts of a ported file, with their original line endings and byte order mark; both are
    empty for other files.
    """

    path: str
    status: FileStatus
    edits: tuple[Edit, ...] = ()
    findings: tuple[Finding, ...] = ()
    kept: tuple[Kept, ...] = ()
    note: Text | None = None
    defect: bool = False
    before: str = field(default="", repr=False)
    after: str = field(default="", repr=False)


@dataclass(frozen=True, kw_only=True)
class TreeReport:
    """The outcome for a tree, in the order of the paths.

    `options` are the command's options as a user would type them, `added` the paths of files that
    the original lacks, such as a launch script.
    """

    root: str
    files: tuple[FileReport, ...]
    options: tuple[str, ...] = ()
    added: tuple[str, ...] = ()
    version: str = ""

    def count(self, status: FileStatus) -> int:
        return sum(file.status == status for file in self.files)

    def edits_by_rule(self) -> Counter[str]:
        return Counter(edit.rule for file in self.files for edit in file.edits)

    def findings_by_rule(self) -> Counter[str]:
        return Counter(finding.rule for file in self.files for finding in file.findings)

    def kept_by_rule(self) -> Counter[str]:
        return Counter(entry.rule for file in self.files for entry in file.kept)

    def findings_by_severity(self) -> Iterable[tuple[FileReport, Finding]]:
        """Return all findings with their files: the one about the whole tree, then by severity."""
        order: dict[Severity, int] = {"blocking": 0, "accuracy": 1, "speed": 2, "look": 3}
        pairs = [(file, finding) for file in self.files for finding in file.findings]
        return sorted(
            pairs,
            key=lambda pair: (
                pair[1].rule != WHOLE_TREE_RULE,
                order[pair[1].severity],
                pair[0].path,
                pair[1].place,
            ),
        )
