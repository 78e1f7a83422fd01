"""Files written whole or not at all: to a temporary file, then renamed."""

import os
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

from jumar.ground.paths import exists, unwritable

_LONGEST = 60
"""Letters of a name kept in its temporary file's: up to four bytes each, and 255 in all."""


@contextmanager
def written_beside(
    path: Path, *, what: str = "cannot be written", more: str = ""
) -> Generator[Path]:
    """A temporary path to write to, which becomes the file when the block ends.

    So no reader sees half of a file, and after an error there is neither a part of it nor a folder
    that was made for it; what was at `path` before stays.

    Args:
        path: The file; its parent folders are created.
        what: What an error says failed.
        more: More advice, as a sentence.

    Raises:
        UserError: The system refuses: no permission, no space, or something is in the way.
    """
    temporary = path.with_name(f".{path.name[:_LONGEST]}.{os.getpid()}")
    created: list[Path] = []
    try:
        created = [folder for folder in path.parents if not exists(folder)]
        path.parent.mkdir(parents=True, exist_ok=True)
        yield temporary
        temporary.replace(path)
    except BaseException as error:
        with suppress(OSError):
            temporary.unlink()
        for folder in created:
            with suppress(OSError):
                folder.rmdir()
        if isinstance(error, OSError):
            raise unwritable(path, error, what=what, more=more) from error
        raise


def write_text(path: Path, text: str, *, errors: str = "strict") -> None:
    """Write a text as UTF-8, its line ends as they are, whole or not at all.

    Args:
        path: The file; its parent folders are created.
        text: Its content.
        errors: How unpaired surrogates are encoded; see `str.encode`.

    Raises:
        UserError: The system refuses.
    """
    write_bytes(path, text.encode("utf-8", errors))


def write_bytes(path: Path, content: bytes) -> None:
    """Write bytes whole or not at all; raises as `write_text`."""
    with written_beside(path) as temporary:
        temporary.write_bytes(content)
