"""Values from a profile as text that is safe to display."""

import json
import math
from itertools import groupby
from typing import Any

from jumar.ground.text import plain_text

MAX_CHARACTERS = 200
"""Maximum length of a text; kernel names and lists of shapes may have thousands of characters."""


def shown(
    value: object,
    max_characters: int = MAX_CHARACTERS,
    *,
    is_fixed: bool = False,
    keeps_end: bool = False,
) -> str:
    """A value as text on one line, with control and invisible characters escaped.

    Args:
        value: The value.
        max_characters: Maximum length of the text; longer texts are cut.
        is_fixed: Whether a number keeps trailing zeros; it has at most three decimal places.
        keeps_end: Whether longer texts are cut at the start instead of the end.
    """
    if value is None:
        return ""
    if isinstance(value, float):
        # Adding 0 turns the "-0" of a rounding difference into "0".
        text = f"{round(value, 3) + 0.0:.3f}" if math.isfinite(value) else ""
        return text if is_fixed else text.rstrip("0").rstrip(".")
    if isinstance(value, list):
        value = " | ".join(map(str, value))  # pyright: ignore[reportUnknownArgumentType]
    whole = str(value)
    text = plain_text(whole[-max_characters - 1 :] if keeps_end else whole[: max_characters + 1])
    if len(text) <= max_characters and len(whole) <= max_characters:
        return text
    return f"…{text[1 - max_characters :]}" if keeps_end else f"{text[: max_characters - 1]}…"


def short_types(types: str | None) -> str:
    """Input and output dtypes (`FLOAT;FLOAT|FLOAT`) for display, with counts of repeated ones.

    Ops on all parameters have hundreds of inputs, which would not fit into a line.
    """
    return " → ".join(map(_with_counts, (types or "").split("|")))


def _with_counts(types: str) -> str:
    runs = [(name, len(list(same))) for name, same in groupby(types.split(";"))]
    if not any(name and count > 3 for name, count in runs):
        return types
    return "; ".join(f"{name} x {count}" if count > 1 else name for name, count in runs)


def json_for_script(data: Any) -> str:
    r"""Data as JSON that is safe inside a `script` element, whatever texts it contains.

    With `<` escaped as `\u003c`, no text can close the element or open a comment.
    """
    text = json.dumps(data, separators=(",", ":"), allow_nan=False)
    for letter in "<>&":
        text = text.replace(letter, f"\\u{ord(letter):04x}")
    return text
