"""The changes that a rule requests, before they become edits or findings of the report."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

from jumar.porting.edits import Confidence, Severity, Text


@dataclass(frozen=True, kw_only=True)
class Replacement:
    """Replaces characters `start` to `end` with `text`; an insertion if the two are equal.

    `side` and `width` order insertions at the same position: `open` and `close` are the two sides
    of a wrapping around `width` characters.
    """

    start: int
    end: int
    text: str
    side: Literal["close", "plain", "open"] = "plain"
    width: int = 0


@dataclass(frozen=True, kw_only=True)
class Rewrite:
    """An edit: replacements that belong together, shown as the statement or expression `node`.

    Args:
        imports: Names of `npu_bridge.npu_init` (or `module:name`) that the new text uses.
        functions: Functions of `prelude.py` that the new text calls.
    """

    node: ast.AST
    replacements: tuple[Replacement, ...]
    reason: Text
    confidence: Confidence = "certain"
    imports: tuple[str, ...] = ()
    functions: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Remark:
    """What a rule tells a person, in both languages: `reason` is the reason, `todo` the advice.

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


@dataclass(frozen=True, kw_only=True)
class Notice:
    """A finding: a decision that is left to a person."""

    node: ast.AST
    reason: Text
    todo: Text
    severity: Severity = "look"
    confidence: Confidence = "certain"


@dataclass(frozen=True, kw_only=True)
class Leave:
    """Something deliberately left unchanged."""

    node: ast.AST
    reason: Text


Change = Rewrite | Notice | Leave
Changes = Iterator[Change]
