"""What a rule asks for, before it becomes an edit or a finding of the report."""

import ast
from dataclasses import dataclass
from typing import Literal

from jumar.porting.edits import Confidence, Severity, Text


@dataclass(frozen=True, kw_only=True)
class Replacement:
    """Characters `start` to `end` of the text become `text`; an insertion where both are equal.

    `side` orders insertions at one position: what opens a wrapping stands before what it wraps.
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
        functions: Of `prelude.py`, that the new text calls.
    """

    node: ast.AST
    replacements: tuple[Replacement, ...]
    reason: Text
    confidence: Confidence = "certain"
    imports: tuple[str, ...] = ()
    functions: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Notice:
    """A finding: something that a person has to decide."""

    node: ast.AST
    reason: Text
    todo: Text
    severity: Severity = "look"
    confidence: Confidence = "certain"


@dataclass(frozen=True, kw_only=True)
class Leave:
    """Something that stays as it is, on purpose."""

    node: ast.AST
    reason: Text


Change = Rewrite | Notice | Leave
