"""The options of NpuOptimizer: names, defaults, allowed values.

The table itself is `options.json` of the stand-in, which reads it in a Python without jumar.
`since` is a release that is known to have the option; earlier ones were not checked. It is empty if
unknown.
"""

from dataclasses import dataclass
from typing import Literal

from jumar.porting.edits import Language, Remark, Severity, Text
from jumar.porting.standin import standin_data

Field = Literal["b", "i", "s"]
Status = Literal["current", "deprecated", "not read"]


@dataclass(frozen=True, kw_only=True)
class NpuOption:
    """One key of `parameter_map`.

    Args:
        key: The key.
        field: The field of the value that the adapter reads: `b`, `i` or `s`.
        default: The value if the key is not set; None if there is no default.
        allowed: The allowed values, as text; empty if all are allowed.
        mixed: The allowed values that select mixed precision.
        minimum: The smallest allowed number.
        maximum: The largest allowed number.
        pattern: A regular expression that the whole text must match.
        example: A text that matches the pattern.
        read_with: Keys; the adapter reads the option only if one of them is true.
        status: Whether the current adapter reads it.
        since: A release that reads it.
        note: What to do about it if it is deprecated or not read.
    """

    key: str
    field: Field
    default: bool | int | str | None = None
    allowed: tuple[str, ...] = ()
    mixed: tuple[str, ...] = ()
    minimum: int | None = None
    maximum: int | None = None
    pattern: str = ""
    example: str = ""
    read_with: tuple[str, ...] = ()
    status: Status = "current"
    since: str = ""
    note: Text | None = None

    def allowed_text(self, language: Language) -> str:
        """A description of the allowed values."""
        if self.allowed:
            return ", ".join(self.allowed)
        if self.pattern:
            return f"如 {self.example}" if language == "zh" else f"text such as {self.example}"
        if self.minimum is not None and self.maximum is not None:
            dash = "～" if language == "zh" else " to "
            return f"{self.minimum}{dash}{self.maximum}"
        if self.minimum is not None:
            return f"不小于 {self.minimum}" if language == "zh" else f"at least {self.minimum}"
        return {"b": "bool", "i": "int", "s": "bytes"}[self.field]


@dataclass(frozen=True, kw_only=True)
class Condition:
    """Holds if a key is set or, with `values`, if it is set to one of them; values as text."""

    key: str
    values: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Combination(Remark):
    """A constraint: one option excludes or needs others.

    Args:
        rule: Id of the finding.
        when: When the constraint applies.
        needs: Conditions, at least one of which must hold.
        excludes: A condition that must not hold.
        above: With `excludes`, only numbers above it are forbidden.
    """

    rule: str
    when: Condition
    needs: tuple[Condition, ...] = ()
    excludes: Condition | None = None
    above: int | None = None
    severity: Severity = "blocking"


def _options() -> dict[str, NpuOption]:
    data = standin_data("options")
    notes = {name: Text(**texts) for name, texts in data["notes"].items()}
    options: dict[str, NpuOption] = {}
    for key, entry in data["options"].items():
        # Only the stand-in needs `unread`.
        fields = {name: value for name, value in entry.items() if name != "unread"}
        for name in ("allowed", "mixed", "read_with"):
            fields[name] = tuple(entry.get(name, ()))
        fields["note"] = notes[entry["note"]] if "note" in entry else None
        options[key] = NpuOption(key=key, **fields)
    return options


NPU_OPTIONS = _options()
"""Options that the adapter reads, and others that scripts set although it ignores them."""

ADAPTER_OPTIONS = {
    key: option for key, option in NPU_OPTIONS.items() if option.status != "not read"
}
"""Options that the adapter reads."""
