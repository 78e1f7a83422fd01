"""Parsing of untrusted JSON, numbers that JSON does not have, and trees of objects and lists."""

import json
import math
from collections.abc import Callable, Mapping
from typing import Any, cast


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


def flattened(tree: Mapping[str, Any], separator: str = ".", prefix: str = "") -> dict[str, Any]:
    """Flatten nested objects to values by their path, such as `section.field`."""
    flat: dict[str, Any] = {}
    for name, value in tree.items():
        if isinstance(value, Mapping):
            branch = cast("Mapping[str, Any]", value)
            flat |= flattened(branch, separator, f"{prefix}{name}{separator}")
        else:
            flat[f"{prefix}{name}"] = value
    return flat


def mapped(value: Any, change: Callable[[Any], Any]) -> Any:
    """Apply a change to the items of an object or a list; return any other value as it is."""
    if isinstance(value, Mapping):
        return {key: change(item) for key, item in cast("Mapping[str, Any]", value).items()}
    if isinstance(value, (list, tuple)):
        return [change(item) for item in cast("list[Any]", value)]
    return value
