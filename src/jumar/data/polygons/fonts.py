"""Finds the fonts on the machine that have the characters of a text."""

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from PIL import ImageFont

from jumar.ground.errors import UserError
from jumar.ground.paths import exists, expanded, is_folder, missing

FOLDERS = (
    "/usr/share/fonts",
    "/usr/local/share/fonts",
    "~/.fonts",
    "~/.local/share/fonts",
    "/System/Library/Fonts",
    "/Library/Fonts",
)
"""Folders in which systems store fonts."""
SUFFIXES = (".ttf", ".otf", ".ttc")

_NO_CHARACTER = "\U0010fffd"
_PROBE_SIZE = 24


def fonts_with(characters: str, paths: Sequence[Path | str] = ()) -> list[Path]:
    """Return the fonts that have all of some characters, sorted by name.

    Args:
        characters: The characters to be written.
        paths: Fonts, or folders to search recursively; by default, the system's folders.

    Raises:
        UserError: A path does not exist, or no font has the characters.
    """
    candidates = set(_files(paths or FOLDERS, must_exist=bool(paths)))
    # By path if names are equal, since the order of a set differs between processes.
    files = sorted(candidates, key=lambda path: (path.name, str(path)))
    fonts = [path for path in files if _has(path, characters)]
    if not fonts:
        sample = characters[:12] + ("..." if len(characters) > 12 else "")
        raise UserError(
            f"none of {len(files)} fonts has all of the characters '{sample}'",
            todo="Install one (Debian: fonts-dejavu for Latin, fonts-noto-cjk for Chinese), or "
            "specify font files or folders.",
        )
    return fonts


def _files(paths: Iterable[Path | str], *, must_exist: bool) -> Iterable[Path]:
    for path in map(expanded, paths):
        if not exists(path):
            if must_exist:
                raise missing(path)
        elif is_folder(path):
            for folder, _, names in os.walk(path):
                yield from (Path(folder, name) for name in names if name.lower().endswith(SUFFIXES))
        else:
            yield path


def _has(path: Path, characters: str) -> bool:
    """Return whether a font has glyphs for all characters; False if the file is not a font."""
    try:
        font = ImageFont.truetype(str(path), _PROBE_SIZE)
        missing_glyph = _drawn(font, _NO_CHARACTER)
        glyphs = [_drawn(font, character) for character in set(characters) - {" "}]
    except (OSError, ValueError):
        return False
    return all(any(glyph) and glyph != missing_glyph for glyph in glyphs)


def _drawn(font: ImageFont.FreeTypeFont, character: str) -> bytes:
    mask: Any = font.getmask(character)
    return bytes(mask)
