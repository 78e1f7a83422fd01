"""Writes readable YAML for Kubernetes: maps, lists, strings, numbers."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

_PLAIN = re.compile(r"[A-Za-z/][A-Za-z0-9_./-]*")
"""Strings that need no quotes in any version of YAML, except for the reserved words."""
_RESERVED = {"true", "false", "yes", "no", "on", "off", "null", "none", "y", "n", "nan", "inf"}


def documents(*objects: Mapping[str, Any]) -> str:
    """Return several objects as the text of one file."""
    return "---\n".join("".join(f"{line}\n" for line in _lines(document)) for document in objects)


def _lines(value: object) -> Iterator[str]:
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _entry(f"{_scalar(str(key))}:", inner)
    elif isinstance(value, Sequence):
        for inner in value:
            yield from _item(inner)


def _entry(head: str, value: object) -> Iterator[str]:
    """Yield a key with its value: on the same line, or below it and indented."""
    if isinstance(value, str) and "\n" in value and _fits_block(value):
        yield f"{head} |"
        yield from map(_indented, value[:-1].split("\n"))
    elif isinstance(value, Mapping | list | tuple) and value:
        yield head
        yield from map(_indented, _lines(value))
    else:
        yield f"{head} {_scalar(value)}"


def _item(value: object) -> Iterator[str]:
    """Yield an entry of a list; a map begins next to the hyphen."""
    if isinstance(value, Mapping | list | tuple) and value:
        for number, line in enumerate(_lines(value)):
            yield _indented(line) if number else f"- {line}"
    else:
        yield from _entry("-", value)


def _indented(line: str) -> str:
    return f"  {line}" if line else ""


def _fits_block(text: str) -> bool:
    """Return whether a literal block preserves the text: one final newline, nothing unusual."""
    return (
        text.endswith("\n")
        and not text.endswith("\n\n")
        and not text.startswith((" ", "\n"))
        and all(line.isprintable() or not line for line in text[:-1].replace("\t", " ").split("\n"))
        and not any(line.isspace() for line in text.split("\n"))
    )


def _scalar(value: object) -> str:
    if isinstance(value, str):
        is_plain = _PLAIN.fullmatch(value) and value.lower() not in _RESERVED
        return value if is_plain else f'"{"".join(map(_escaped, value))}"'
    if isinstance(value, Mapping):
        return "{}"
    if isinstance(value, list | tuple):
        return "[]"
    return json.dumps(value)


def _escaped(character: str) -> str:
    """Escape a character for double quotes."""
    if character in '"\\':
        return f"\\{character}"
    # JSON writes some characters as two surrogates, which YAML reads as two characters.
    return character if character.isprintable() else f"\\U{ord(character):08X}"
