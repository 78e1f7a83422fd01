"""The folder for files that can be regenerated."""

import os
from pathlib import Path

CACHE_VARIABLE = "JUMAR_CACHE"
"""Environment variable with the path of the folder for files that can be regenerated."""


def cache_folder() -> Path:
    """Return `$JUMAR_CACHE`, or `jumar` in the user's XDG cache folder."""
    if folder := os.environ.get(CACHE_VARIABLE):
        return Path(folder).expanduser()
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "jumar"
