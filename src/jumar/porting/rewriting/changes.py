"""The changes that a rule requests, before they become edits or findings of the report."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from jumar.porting.edits import Confidence, Remark, Text


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
class Notice:
    """A finding: a decision that is left to a person."""

    node: ast.AST
    remark: Remark


@dataclass(frozen=True, kw_only=True)
class Leave:
    """Something deliberately left unchanged."""

    node: ast.AST
    reason: Text


Change = Rewrite | Notice | Leave
Changes = Iterator[Change]
