"""Parsing of untrusted JSON."""

import json
from typing import Any


def parse_json(text: str | bytes) -> Any:
    """The value of a JSON text.

    Raises:
        ValueError: It is not JSON (`json.JSONDecodeError`, with the position), has a number with
            thousands of digits, or is nested so deeply that Python's parser gives up, which would
            otherwise be an unexpected RecursionError.
    """
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
