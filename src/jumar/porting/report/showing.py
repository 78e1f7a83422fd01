"""Source code and names made safe to show."""

import re
from collections.abc import Iterator

from jumar.porting.edits import Place

_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ud800-\udfff]"
)
"""What a reader would not see, or what would move or hide other letters: control characters, marks
that turn the direction of writing, zero-width ones, halves of surrogate pairs (bytes of a file
name that are not text)."""


def visible(text: str) -> str:
    """A text with nothing hidden: invisible characters are spelt out.

    Code that reverses the writing direction, or moves the cursor of a terminal, would otherwise
    show a reader a different program than the one that runs. Line ends and tabs stay.
    """
    return _UNSEEN.sub(_spelt, text)


def one_line(text: str) -> str:
    """A text on one line, such as a file name that contains a line break."""
    return visible(text.replace("\r\n", "⏎").replace("\n", "⏎").replace("\t", " "))


def _spelt(match: "re.Match[str]") -> str:
    code = ord(match[0])
    if code < 0x20:
        return chr(0x2400 + code)
    if code == 0x7F:
        return "\u2421"
    return f"<U+{code:04X}>"


def lines_of(text: str) -> list[str]:
    """The lines of a source with their ends, as Python's parser counts them."""
    lines = re.findall(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+", text)
    return [str(line) for line in lines]


def code_and_prose(text: str) -> Iterator[tuple[bool, str]]:
    """The parts of a sentence, and whether each is code, that is, was between backticks.

    An unpaired backtick is an ordinary character.
    """
    parts = text.split("`")
    if len(parts) % 2 == 0:
        parts[-2:] = ["`".join(parts[-2:])]
    for index, part in enumerate(parts):
        if part:
            yield index % 2 == 1, part


def places(path: str, place: Place, place_after: Place | None, removed: str) -> str:
    """`path:line:column → line:column`; the second is omitted if it is the same."""
    location = f"{one_line(path)}:{place}"
    if place_after == place:
        return location
    return f"{location} → {place_after if place_after is not None else removed}"
