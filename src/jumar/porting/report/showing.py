"""Makes source code and names safe to show."""

import re
from collections.abc import Iterator

from jumar.porting.edits import Place

_INVISIBLE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ud800-\udfff]"
)
"""Characters that are invisible, or that move or hide others: control characters, bidirectional
marks, zero-width characters, and lone surrogates (undecodable bytes of a file name)."""


def visible(text: str) -> str:
    """Return the text with invisible characters spelt out.

    Code that reverses the writing direction, or moves the cursor of a terminal, would otherwise
    show a reader a different program from the one that runs. Line ends and tabs stay.
    """
    return _INVISIBLE.sub(_spelt, text)


def one_line(text: str) -> str:
    """Return the text on one line; file names, for instance, may contain line breaks."""
    return visible(text.replace("\r\n", "⏎").replace("\n", "⏎").replace("\t", " "))


def _spelt(match: "re.Match[str]") -> str:
    code = ord(match[0])
    if code < 0x20:
        return chr(0x2400 + code)
    if code == 0x7F:
        return "\u2421"
    return f"<U+{code:04X}>"


def lines_of(text: str) -> list[str]:
    """Return the lines of a source with their line endings, as Python's parser counts them."""
    lines = re.findall(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+", text)
    return [str(line) for line in lines]


def code_and_prose(text: str) -> Iterator[tuple[bool, str]]:
    """Yield the parts of a sentence, each with whether it is code, that is, between backticks.

    An unpaired backtick is an ordinary character.
    """
    parts = text.split("`")
    if len(parts) % 2 == 0:
        parts[-2:] = ["`".join(parts[-2:])]
    for index, part in enumerate(parts):
        if part:
            yield index % 2 == 1, part


def moved_location(path: str, place: Place, place_after: Place | None, removed: str) -> str:
    """Return `path:line:column → line:column`, without the second position if it is the same."""
    location = f"{one_line(path)}:{place}"
    if place_after == place:
        return location
    return f"{location} → {place_after if place_after is not None else removed}"
