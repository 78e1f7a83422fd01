"""Walking syntax trees without the standard library's generators."""

import ast
import asyncio.tasks
import dataclasses
import enum
import inspect
import typing

import pytest

from jumar.porting.script.nodes import children, walk

RARE = """
def f(a, /, b: int = 1, *c, d, e=2, **g) -> "r":
    global h
    nonlocal_ = {**a, "k": [*b]}
    async def inner():
        async with x as (y, z), w:
            return [await v async for v in q if v]
    match a:
        case {"k": p, **rest} if p:
            del a[1:2, ::3], b.c
        case P(1, q=None) | [_, *tail]:
            yield from tail
    try:
        raise X from None
    except* (A, B) as error:
        print(f"{error!r:>{width}}", lambda: (n := 1))
    finally:
        assert a < b < c, "text"
"""
SOURCES = {
    "rare": RARE,
    **{
        module.__name__: inspect.getsource(module)
        for module in (ast, asyncio.tasks, dataclasses, enum, typing)
    },
}


def without_contexts(nodes: typing.Iterable[ast.AST]) -> list[ast.AST]:
    return [node for node in nodes if not isinstance(node, ast.expr_context)]


@pytest.mark.parametrize("name", SOURCES)
def test_walk_visits_what_the_standard_library_visits_in_its_order(name: str) -> None:
    tree = ast.parse(SOURCES[name])
    assert walk(tree) == without_contexts(ast.walk(tree))


@pytest.mark.parametrize("name", SOURCES)
def test_children_are_those_of_the_standard_library(name: str) -> None:
    for node in ast.walk(ast.parse(SOURCES[name])):
        assert children(node) == without_contexts(ast.iter_child_nodes(node))


def test_several_roots_are_walked_together() -> None:
    first, second = ast.parse("a = b").body[0], ast.parse("c(d)").body[0]
    names = [node.id for node in walk(first, second) if isinstance(node, ast.Name)]
    assert names == ["a", "b", "c", "d"]
