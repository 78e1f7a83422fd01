"""JSON that somebody else may have written."""

import json
from typing import Any


def parse_json(text: str | bytes) -> Any:
    """The value of a JSON text.

    Raises:
        ValueError: It is no JSON (`json.JSONDecodeError`, with the place), holds a number of
            thousands of digits, or is nested so deeply that Python's parser gives up, which by
            itself would be a RecursionError that no caller expects.
    """
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
