"""Writes the files of a launch atomically; other files are kept."""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from jumar.ground.errors import UserError
from jumar.ground.files import folder_beside, write_text
from jumar.ground.json_text import parse_json
from jumar.ground.paths import exists, is_folder, read_text

MANIFEST = "launch.json"
"""The options, and the hash of each file as written."""


def write_launch(to: Path, files: Mapping[str, str], options: Mapping[str, Any]) -> None:
    """Write the files of a launch into a folder, with `launch.json`.

    Args:
        to: The folder. It may contain an earlier launch and the results of its training: unmodified
            files are replaced, and all others are kept.
        files: The texts by path within the folder.
        options: The options to record in `launch.json`.

    Raises:
        UserError: A file that was not written by a launch would be replaced, or writing fails.
    """
    hashes = {name: _hash(text) for name, text in files.items()}
    manifest = f"{json.dumps({**options, 'files': hashes}, indent=2, ensure_ascii=False)}\n"
    if not exists(to) or (is_folder(to) and not any(to.iterdir())):
        with folder_beside(to) as temporary:
            for name, text in {**files, MANIFEST: manifest}.items():
                write_text(temporary / name, text)
        return
    if not is_folder(to):
        raise UserError("is a file", where=f"--to {to}", todo="Specify a folder.")
    known_hashes = _recorded_hashes(to)
    for name, text in files.items():
        if exists(to / name):
            current_hash = _hash_of(to / name)
            if current_hash not in (known_hashes.get(name), _hash(text)):
                raise UserError(
                    "was changed since a launch wrote it",
                    where=str(to / name),
                    todo="Choose another --to, or delete it.",
                )
    if exists(to / MANIFEST) and not known_hashes:
        raise UserError(
            "was not written by a launch", where=str(to / MANIFEST), todo="Choose another --to."
        )
    for name, text in {**files, MANIFEST: manifest}.items():
        write_text(to / name, text)


def _recorded_hashes(to: Path) -> dict[str, str]:
    """Return the hashes of the files that an earlier launch wrote to the folder."""
    if not exists(to / MANIFEST):
        return {}
    try:
        files = parse_json(read_text(to / MANIFEST))["files"]
        return {str(name): str(value) for name, value in files.items()}
    except (ValueError, KeyError, TypeError, AttributeError):
        return {}


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _hash_of(path: Path) -> str:
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError:
        return ""
