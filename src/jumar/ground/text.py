"""Text for display: both languages, numbers with their nouns, escaped untrusted text.

Names of tensors, ops, classes and files may contain anything: an escape sequence that clears the
screen, or a mark that reverses the writing direction. They are escaped here before printing. Source
code is shown by `porting/report/showing.py` instead, since an added backslash would look like part
of the script.
"""

import re
import sys
import unicodedata
from dataclasses import dataclass
from typing import Final, Literal, TextIO

Language = Literal["en", "zh"]

_SIBILANTS = ("s", "x", "z", "ch", "sh")


@dataclass(frozen=True, kw_only=True)
class Text:
    """A text in both languages of reports and pages."""

    en: str
    zh: str

    def in_language(self, language: Language) -> str:
        return self.zh if language == "zh" else self.en

    def filled(self, **values: object) -> "Text":
        """Return a copy with `{name}` replaced in both languages; a value may be a `Text`."""
        return Text(en=self._filled("en", values), zh=self._filled("zh", values))

    def _filled(self, language: Language, values: dict[str, object]) -> str:
        texts = {
            name: value.in_language(language) if isinstance(value, Text) else str(value)
            for name, value in values.items()
        }
        return self.in_language(language).format(**texts)


def counted(number: float, noun: str) -> str:
    """Return a number with its noun: `1 finding`, `2 findings`, `0 losses`, `1.5 calls`.

    Args:
        number: The number; an integral value is written without a decimal point.
        noun: A regular English noun in the singular, which may be preceded by adjectives.
    """
    text = f"{number:g}" if isinstance(number, float) else str(number)
    return f"{text} {noun if number == 1 else _plural(noun)}"


def _plural(noun: str) -> str:
    if noun.endswith(_SIBILANTS):
        return f"{noun}es"
    if noun.endswith("y") and noun[-2:-1] not in "aeiou":
        return f"{noun[:-1]}ies"
    return f"{noun}s"


def size_text(size: float) -> str:
    """Format a number of bytes for people, as in `12 MiB`."""
    for unit in ("B", "KiB", "MiB"):
        if size < 1024:
            return f"{size:.0f} {unit}"
        size /= 1024
    return f"{size:,.1f} GiB"


def time_text(seconds: float) -> str:
    """Format a duration for people, as in `12 min`."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    if seconds < 6000:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h" if seconds < 360000 else f"{seconds / 86400:.1f} days"


def first_line(text: str, default: str = "") -> str:
    """Return the first line of a text that is not blank; the default if there is none."""
    return next(iter(text.strip().splitlines()), default)


FORMULA: Final = r"^[=+\-@\t\r]"
"""Matches text that some spreadsheet programs interpret as a formula."""

NUMBER: Final = r"^[+-]?[0-9.]+(e[+-]?[0-9]+)?$"


def no_formula(text: str) -> str:
    """Prefix text that a spreadsheet might execute as a formula with an apostrophe."""
    return f"'{text}" if re.search(FORMULA, text) and not re.search(NUMBER, text) else text


def plain_text(text: str, keep: str = "") -> str:
    r"""Escape invisible characters in a text, as `\x1b`, `\n`, `\u202e`.

    Args:
        text: The text; control characters, direction marks, zero-width characters and
            unpaired surrogates are escaped. Whitespace of other scripts is kept.
        keep: Further characters to keep.
    """
    if text.isprintable():
        return text
    return "".join(letter if _is_visible(letter, keep) else _escaped(letter) for letter in text)


def print_plain(text: str, file: TextIO | None = None) -> None:
    """Print a text of one or more lines, with invisible characters escaped.

    Args:
        text: The text; its line breaks and tabs are kept.
        file: Destination; standard output by default.
    """
    (file or sys.stdout).write(plain_text(text, keep="\n\t") + "\n")


def print_at_once(text: str, file: TextIO | None = None) -> None:
    """Call `print_plain` and flush, so that a pipe receives each line at once."""
    print_plain(text, file)
    (file or sys.stdout).flush()


def print_aside(text: str) -> None:
    """Call `print_plain` for standard error, separate from output that programs read."""
    print_plain(text, sys.stderr)


def _is_visible(letter: str, keep: str) -> bool:
    return letter.isprintable() or letter in keep or unicodedata.category(letter) == "Zs"


def _escaped(letter: str) -> str:
    return letter.encode("unicode_escape").decode("ascii")
