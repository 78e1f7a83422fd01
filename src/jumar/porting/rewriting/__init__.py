"""How a script is rewritten: changes, rules and their registry, and where code is added.

The names below are those that the files of `rules/` share.
"""

from jumar.porting.edits import Confidence, Remark, Severity, Text
from jumar.porting.rewriting.changes import Change, Changes, Leave, Replacement
from jumar.porting.rewriting.registry import rule
from jumar.porting.rewriting.reporting import Case, report
from jumar.porting.rewriting.view import NPU_INIT, View

__all__ = [
    "NPU_INIT",
    "Case",
    "Change",
    "Changes",
    "Confidence",
    "Leave",
    "Remark",
    "Replacement",
    "Severity",
    "Text",
    "View",
    "report",
    "rule",
]
