"""Converts reports to JSON and back.

The schema is versioned (`"schema": 1`); `docs/port-reports.md` describes it. Sentences are kept in
both languages, so that a report can later be shown in either.
"""

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeVar, get_args

from jumar.ground.errors import UserError
from jumar.ground.json_text import parse_json
from jumar.ground.paths import read_text
from jumar.porting.edits import (
    Confidence,
    Edit,
    FileReport,
    FileStatus,
    Finding,
    Kept,
    Place,
    Severity,
    Text,
    TreeReport,
)

FORMAT = "jumar port report"
SCHEMA = 1

_TODO = "Use a file that `jumar port ... --report FILE.json` wrote."

_Read = TypeVar("_Read")
_Json = dict[str, Any]


def to_json(report: TreeReport) -> _Json:
    """Convert a report to JSON values: dicts, lists, strings, numbers and None."""
    return {
        "format": FORMAT,
        "schema": SCHEMA,
        "version": report.version,
        "root": report.root,
        "options": list(report.options),
        "added": list(report.added),
        "totals": {
            "files": {status: report.count(status) for status in get_args(FileStatus)},
            "edits": dict(sorted(report.edits_by_rule().items())),
            "findings": dict(sorted(report.findings_by_rule().items())),
            "kept": dict(sorted(report.kept_by_rule().items())),
        },
        "files": [_file(file) for file in report.files],
    }


def dumps(report: TreeReport) -> str:
    """Return a report as the text of a JSON file, with Chinese unescaped."""
    text = json.dumps(to_json(report), ensure_ascii=False, indent=1)
    # File names may contain undecodable bytes, which no encoding can write.
    return re.sub("[\ud800-\udfff]", lambda match: f"\\u{ord(match[0]):04x}", text) + "\n"


def from_json(value: object, *, where: str = "") -> TreeReport:
    """Return the report that `to_json` converted; `totals` are redundant and not read.

    Args:
        value: The parsed JSON.
        where: The file name for error messages.

    Raises:
        UserError: The value is not a report, or has another schema; the message names the field.
    """
    top = _Field(value, where)
    if top["format"].text() != FORMAT:
        raise top["format"].rejected(f'"{FORMAT}"')
    schema = top["schema"].number()
    if schema != SCHEMA:
        raise UserError(
            f"the report has schema {schema}, but this version of jumar reads schema {SCHEMA}",
            where=where,
            todo="Write it again with `jumar port ... --report FILE.json`, or update jumar.",
        )
    return TreeReport(
        root=top["root"].text(),
        files=top["files"].each(_read_file),
        options=top["options"].each(_Field.text),
        added=top["added"].each(_Field.text),
        version=top["version"].text(),
    )


def read_report(path: Path) -> TreeReport:
    """Read a report that was saved as JSON.

    Raises:
        UserError: The file cannot be read, is not JSON, or is not a report.
    """
    try:
        value = parse_json(read_text(path))
    except ValueError as error:
        raise UserError(f"is not JSON: {error}", where=str(path), todo=_TODO) from error
    return from_json(value, where=str(path))


def _file(file: FileReport) -> _Json:
    return {
        "path": file.path,
        "status": file.status,
        "note": None if file.note is None else asdict(file.note),
        "edits": [asdict(edit) for edit in file.edits],
        "findings": [asdict(finding) for finding in file.findings],
        "kept": [asdict(entry) for entry in file.kept],
        "before": file.before,
        "after": file.after,
    }


class _Field:
    """A value of a JSON file with its location, which rejects unexpected types."""

    def __init__(self, value: object, where: str, name: str = "") -> None:
        self.value = value
        self.where = where
        self.name = name

    def rejected(self, expected: str) -> UserError:
        return UserError(
            f"{self.name or 'the file'} is not {expected}",
            where=self.where,
            todo=_TODO,
        )

    def __getitem__(self, key: str) -> "_Field":
        name = f"{self.name}.{key}" if self.name else key
        if not isinstance(self.value, dict):
            raise self.rejected("an object")
        if key not in self.value:
            raise UserError(f"{name} is missing", where=self.where, todo=_TODO)
        return _Field(self.value[key], self.where, name)

    def text(self) -> str:
        if not isinstance(self.value, str):
            raise self.rejected("a string")
        return self.value

    def number(self) -> int:
        # True is an int in Python, but not a line number.
        if not isinstance(self.value, int) or isinstance(self.value, bool) or self.value < 1:
            raise self.rejected("an integer of at least 1")
        return self.value

    def one_of(self, known: Sequence[_Read]) -> _Read:
        for candidate in known:
            if candidate == self.value:
                return candidate
        raise self.rejected("one of " + ", ".join(map(str, known)))

    def each(self, read: "Callable[[_Field], _Read]") -> tuple[_Read, ...]:
        if not isinstance(self.value, list):
            raise self.rejected("a list")
        return tuple(
            read(_Field(item, self.where, f"{self.name}[{index}]"))
            for index, item in enumerate(self.value)
        )

    def optional(self, read: "Callable[[_Field], _Read]") -> _Read | None:
        return None if self.value is None else read(self)


def _read_text(field: _Field) -> Text:
    return Text(en=field["en"].text(), zh=field["zh"].text())


def _read_place(field: _Field) -> Place:
    return Place(line=field["line"].number(), column=field["column"].number())


def _read_file(field: _Field) -> FileReport:
    return FileReport(
        path=field["path"].text(),
        status=field["status"].one_of(get_args(FileStatus)),
        note=field["note"].optional(_read_text),
        edits=field["edits"].each(_read_edit),
        findings=field["findings"].each(_read_finding),
        kept=field["kept"].each(_read_kept),
        before=field["before"].text(),
        after=field["after"].text(),
    )


def _read_edit(field: _Field) -> Edit:
    return Edit(
        rule=field["rule"].text(),
        place=_read_place(field["place"]),
        place_after=field["place_after"].optional(_read_place),
        before=field["before"].text(),
        after=field["after"].text(),
        reason=_read_text(field["reason"]),
        confidence=field["confidence"].one_of(get_args(Confidence)),
        source=field["source"].text(),
    )


def _read_finding(field: _Field) -> Finding:
    return Finding(
        rule=field["rule"].text(),
        place=_read_place(field["place"]),
        place_after=field["place_after"].optional(_read_place),
        code=field["code"].text(),
        reason=_read_text(field["reason"]),
        todo=_read_text(field["todo"]),
        severity=field["severity"].one_of(get_args(Severity)),
        confidence=field["confidence"].one_of(get_args(Confidence)),
        source=field["source"].text(),
    )


def _read_kept(field: _Field) -> Kept:
    return Kept(
        rule=field["rule"].text(),
        place=_read_place(field["place"]),
        code=field["code"].text(),
        reason=_read_text(field["reason"]),
    )
