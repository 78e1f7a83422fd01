"""Branches with nothing in them."""

import ast

import pytest

from jumar.porting.rewriting.emptied import empty_branches, is_empty


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("if a: pass", True),
        ("if a:\n    pass\n    pass", True),
        ("if a:\n    pass\n    b", False),
        ("if a: b", False),
        ("if a: pass\nelse: pass", True),
        ("if a: pass\nelse: b", False),
        ("if a: pass\nelif b: pass", True),
        ("if a: pass\nelif b: pass\nelse: pass", True),
        ("if a: pass\nelif b: c", False),
        ("if a: pass\nelif b(): pass", False),
        ("if a: pass\nelse:\n    if b: pass\n    c", False),
        ("if a: pass\nelse:\n    if b: pass\n    pass", False),
        ("if a(): pass", False),
        ("if not (a and b[0].c > 1): pass", True),
        ("if (a := 1): pass", False),
        ("if (yield): pass", False),
        ("if (yield from a): pass", False),
        ("async def f():\n    if await a: pass", False),
    ],
)
def test_branch_is_empty_if_neither_it_nor_its_test_does_anything(
    text: str, expected: bool
) -> None:
    (branch, *_) = (node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.If))
    assert is_empty(branch) is expected


def test_empty_branches_are_identified_by_their_tests() -> None:
    text = "if (a  and b): pass\nif c: d\ndef f():\n    if e: pass\nif g(): pass\nwhile h: pass\n"
    assert empty_branches(ast.parse(text)) == {"a and b", "e"}
