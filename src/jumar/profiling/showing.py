"""Values of a profile as text that is safe to show."""

import json
import math
from itertools import groupby
from typing import Any

from jumar.ground.text import plain_text

LONGEST = 200
"""Most characters in a text; names of kernels and lists of shapes have thousands."""


def shown(
    value: object,
    longest: int = LONGEST,
    digits: int = 3,
    *,
    is_fixed: bool = False,
    keeps_end: bool = False,
) -> str:
    """A value as text on one line; characters that move or hide others are escaped.

    Args:
        value: The value to show.
        longest: Letters of the text at most.
        digits: Most decimal places to show.
        is_fixed: Whether a fraction has all of them, zeros included.
        keeps_end: Whether a longer text loses its beginning.
    """
    if value is None:
        return ""
    if isinstance(value, float):
        # Adding 0 turns the "-0" of a rounding difference into "0".
        text = f"{round(value, digits) + 0.0:.{digits}f}" if math.isfinite(value) else ""
        return text if is_fixed or not digits else text.rstrip("0").rstrip(".")
    if isinstance(value, list):
        value = " | ".join(map(str, value))  # pyright: ignore[reportUnknownArgumentType]
    whole = str(value)
    text = plain_text(whole[-longest - 1 :] if keeps_end else whole[: longest + 1])
    if len(text) <= longest and len(whole) <= longest:
        return text
    return f"…{text[1 - longest :]}" if keeps_end else f"{text[: longest - 1]}…"


def short_types(types: str | None) -> str:
    """Dtypes in and out (`FLOAT;FLOAT|FLOAT`) for display; repeated ones are counted.

    Ops that go over all parameters have hundreds of inputs, which would fill a line and be cut.
    """
    return " → ".join(map(_counted, (types or "").split("|")))


def _counted(types: str) -> str:
    runs = [(name, len(list(same))) for name, same in groupby(types.split(";"))]
    if not any(name and count > 3 for name, count in runs):
        return types
    return "; ".join(f"{name} x {count}" if count > 1 else name for name, count in runs)


def inside_script(data: Any) -> str:
    r"""JSON that is safe in a `script` element, whatever its texts contain.

    Escaped as `\u003c`, no text can end the element or begin a comment in it.
    """
    text = json.dumps(data, separators=(",", ":"), allow_nan=False)
    for letter in "<>&":
        text = text.replace(letter, f"\\u{ord(letter):04x}")
    return text
