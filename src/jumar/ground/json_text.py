"""Parsing of untrusted JSON, and numbers that JSON does not have."""

import json
import math
from typing import Any


def parse_json(text: str | bytes) -> Any:
    """Parse a JSON text.

    Raises:
        ValueError: The text is not JSON (`json.JSONDecodeError`, with the position), contains a
            number with thousands of digits, or is nested too deeply for Python's parser, which
            would otherwise raise a RecursionError.
    """
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def finite_or_text(number: float | None) -> float | str | None:
    """Return a number for JSON, with infinity and NaN as text."""
    return number if number is None or math.isfinite(number) else str(number)
