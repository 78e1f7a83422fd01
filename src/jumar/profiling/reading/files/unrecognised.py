"""Why a file is not recognised as part of a profile."""

from pathlib import Path

from jumar.profiling.reading.events import EventReader
from jumar.profiling.reading.files.opening import head_of, opened, text_of


def why_unrecognised(path: Path) -> str:
    """The reason for a message about a file of unknown kind: empty, broken JSON, or another table.

    Raises:
        OSError: The file cannot be read.
    """
    text = text_of(head_of(path)).strip()
    if not text:
        return "is empty"
    if not text.startswith(("{", "[")):
        return "its header matches no known table"
    with opened(path) as file:
        reader = EventReader(file)
        for _ in reader:
            pass
    if reader.problem == "truncated":
        return "is JSON that ends in the middle"
    return reader.problem or "is JSON, but not of a kind that profilers write"
