"""Durations as users type them: `90`, `90s`, `10min`, `1h`."""

import re

from jumar.ground.errors import UserError

_SECONDS = {"": 1.0, "s": 1.0, "min": 60.0, "h": 3600.0}


def seconds_of(text: str, *, where: str) -> float:
    """Convert a duration to seconds.

    Raises:
        UserError: The text is not a duration, or the duration is zero.
    """
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*(s|min|h|)\s*", text)
    seconds = float(match[1]) * _SECONDS[match[2]] if match else 0.0
    if seconds <= 0:
        raise UserError(
            f"'{text}' is not a duration",
            where=where,
            todo="Use a duration such as 90s, 10min or 1h.",
        )
    return seconds
