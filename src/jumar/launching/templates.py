"""Reads the files in `scripts/` and replaces their `@PLACEHOLDER@`s."""

import re
import shlex
from collections.abc import Mapping
from importlib.resources import files


def script_text(name: str) -> str:
    """Return the text of a file in `scripts/`, unchanged."""
    return (files("jumar.launching") / "scripts" / name).read_text(encoding="utf-8")


def filled(name: str, **values: str) -> str:
    """Return the text of a file in `scripts/` with its placeholders replaced.

    Args:
        name: The file name.
        values: The values by placeholder; placeholders within a value are kept.

    Raises:
        KeyError: A placeholder has no value.
    """
    return re.sub("@([A-Z_]+)@", lambda match: values[match[1]], script_text(name))


def comment(text: str) -> str:
    """Convert a text of any number of lines to a one-line shell comment."""
    return "# " + " ".join(text.split())


def assigned(values: Mapping[str, str]) -> str:
    """Return shell lines that export variables with quoted values."""
    return "\n".join(f"export {name}={shlex.quote(text)}" for name, text in values.items())
