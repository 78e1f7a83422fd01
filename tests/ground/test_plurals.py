"""Numbers with nouns by `jumar.ground.text`, which every message uses."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import jumar
from jumar.ground.text import counted

SOURCE = Path(jumar.__file__).parent
OWN_PLURAL = re.compile(
    r"""f?['"]1 [a-z]+['"] if .* else f['"]\{[^}]*\} [a-z]+s['"]|['"]e?s['"] if|"""
    r"""['"]{2} if .* else ['"]e?s['"]"""
)


@pytest.mark.parametrize(
    ("number", "noun", "text"),
    [
        (0, "finding", "0 findings"),
        (1, "finding", "1 finding"),
        (2, "finding", "2 findings"),
        (1.0, "call", "1 call"),
        (1.5, "call", "1.5 calls"),
        (2, "loss", "2 losses"),
        (2, "batch", "2 batches"),
        (2, "entry", "2 entries"),
        (2, "key", "2 keys"),
        (1, "damaged line", "1 damaged line"),
    ],
)
def test_noun_follows_its_number(number: float, noun: str, text: str) -> None:
    assert counted(number, noun) == text


def _choices() -> Iterator[str]:
    """Places that choose between a singular and a plural by themselves."""
    for path in sorted(SOURCE.rglob("*.py")):
        if path == SOURCE / "ground" / "text.py" or {"standin", "scripts", "runner37"} & set(
            path.parts
        ):
            continue
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.IfExp):
                text = ast.unparse(node)
                if OWN_PLURAL.match(text):
                    yield f"{path.relative_to(SOURCE)}:{node.lineno}: {text}"


def test_no_other_code_builds_plurals() -> None:
    assert not list(_choices())
