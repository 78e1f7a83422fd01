"""Text for people: numbers with their nouns, and foreign text as a terminal may safely show it.

Names of tensors, ops, classes and files may hold anything: an escape sequence that clears the
screen, or a mark that turns the direction of writing. What is printed of them goes through here.
Source code is shown by `porting/report/showing.py`, where a backslash would be mistaken for one of
the script's own.
"""

import sys
import unicodedata
from typing import TextIO

_SIBILANTS = ("s", "x", "z", "ch", "sh")


def counted(number: float, noun: str) -> str:
    """A number with its noun: `1 finding`, `2 findings`, `0 losses`, `1.5 calls`.

    Args:
        number: How many; a whole one is written without a decimal point.
        noun: The regular English noun in the singular, after any adjectives.
    """
    text = f"{number:g}" if isinstance(number, float) else str(number)
    return f"{text} {noun if number == 1 else _plural(noun)}"


def _plural(noun: str) -> str:
    if noun.endswith(_SIBILANTS):
        return f"{noun}es"
    if noun.endswith("y") and noun[-2:-1] not in "aeiou":
        return f"{noun[:-1]}ies"
    return f"{noun}s"


def plain_text(text: str, keep: str = "") -> str:
    r"""A text in which everything unseen is spelt out, as `\x1b`, `\n`, `\u202e`.

    Args:
        text: What control characters, marks of direction, zero-width letters and halves of
            surrogate pairs are spelt out in. Blanks of other alphabets stay.
        keep: Characters that stay as well.
    """
    if text.isprintable():
        return text
    return "".join(letter if _is_seen(letter, keep) else _spelt(letter) for letter in text)


def print_plain(text: str, file: TextIO | None = None) -> None:
    """Print a text of one or more lines, with everything unseen in them spelt out.

    Args:
        text: The text; its line ends and tabs stay.
        file: Where to; the standard output by default.
    """
    (file or sys.stdout).write(plain_text(text, keep="\n\t") + "\n")


def _is_seen(letter: str, keep: str) -> bool:
    return letter.isprintable() or letter in keep or unicodedata.category(letter) == "Zs"


def _spelt(letter: str) -> str:
    return letter.encode("unicode_escape").decode("ascii")
