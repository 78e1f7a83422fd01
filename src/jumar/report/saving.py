"""Texts that are written so that no reader sees half of one."""

import os
from contextlib import suppress
from pathlib import Path

from jumar.ground.paths import unwritable


def save_text(path: Path, text: str) -> None:
    """Write a text beside its place and rename it.

    Raises:
        UserError: The folder cannot be written to, or the disk is full.
    """
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        beside.write_text(text, encoding="utf-8", newline="")
        beside.replace(path)
    except OSError as error:
        with suppress(OSError):
            beside.unlink()
        raise unwritable(path, error) from error
