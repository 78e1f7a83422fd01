"""Files in `scripts/`, and how their `@PLACEHOLDER@`s are filled."""

import re
import shlex
from collections.abc import Mapping
from importlib.resources import files


def script_text(name: str) -> str:
    """The text of a file in `scripts/`, unchanged."""
    return (files("jumar.launching") / "scripts" / name).read_text(encoding="utf-8")


def filled(name: str, **values: str) -> str:
    """The text of a file in `scripts/` with its placeholders replaced.

    Args:
        name: The file.
        values: Texts by placeholder; placeholders within a text are kept.

    Raises:
        KeyError: A placeholder has no text.
    """
    return re.sub("@([A-Z_]+)@", lambda match: values[match[1]], script_text(name))


def comment(text: str) -> str:
    """A text as one comment of a shell script, however many lines it has."""
    return "# " + " ".join(text.split())


def assigned(values: Mapping[str, str]) -> str:
    """Lines that export variables, each with its quoted text."""
    return "\n".join(f"export {name}={shlex.quote(text)}" for name, text in values.items())
