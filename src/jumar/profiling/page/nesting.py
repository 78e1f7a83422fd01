"""Nested host calls: the depth of each, and the call tree."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import polars as pl

MAX_NODES: Final = 4000
"""Maximum number of nodes of all call trees on a page."""


def with_depths(calls: pl.DataFrame) -> pl.DataFrame:
    """The calls by thread and start, outer ones first, with `depth` counted from 0.

    The depth of a call is the number of calls that run on its thread when it starts. Where calls
    do not nest, as with asynchronous annotations, calls of the same depth may overlap.

    Args:
        calls: `thread_id`, `start` and `end`, with durations above 0.
    """
    calls = calls.sort("thread_id", "start", "end", descending=[False, False, True])
    starts = calls.select("thread_id", pl.col("start").alias("at"), pl.lit(1).alias("change"))
    ends = calls.select("thread_id", pl.col("end").alias("at"), pl.lit(-1).alias("change"))
    # A call that starts when another ends is its sibling, not its child.
    events = pl.concat([starts, ends]).sort("thread_id", "at", "change", maintain_order=True)
    running = pl.col("change").cum_sum().over("thread_id")
    depths = events.with_columns((running - 1).alias("depth")).filter(pl.col("change") > 0)
    return calls.with_columns(depths["depth"].cast(pl.Int32))


@dataclass(slots=True)
class _Node:
    name: int
    total: int = 0
    count: int = 0
    children: dict[int, "_Node"] = field(default_factory=lambda: {})

    def child(self, name: int) -> "_Node":
        if name not in self.children:
            self.children[name] = _Node(name)
        return self.children[name]


def call_tree(calls: pl.DataFrame, threads: Sequence[str]) -> list[list[Any]]:
    """The calls of each thread as a tree, in which calls with the same name and parent are summed.

    Args:
        calls: The result of `with_depths`, with `label`, the number of the name.
        threads: The name of each `thread_id`.

    Returns:
        A node for each thread, `[name, nanoseconds, calls, children]`, the longest first. A
        thread's name is a string, a call's is its label. Nodes too short to be drawn are omitted.
    """
    roots = [_Node(-1) for _ in threads]
    path: list[_Node] = []
    columns = (calls[name].to_list() for name in ("thread_id", "depth", "label", "start", "end"))
    for thread, depth, label, start, end in zip(*columns, strict=True):
        del path[depth:]
        parent = path[depth - 1] if depth and len(path) == depth else roots[thread]
        node = parent.child(label)
        node.total += end - start
        node.count += 1
        path.append(node)
    for root in roots:
        root.total = sum(node.total for node in root.children.values())
    # One limit for all threads: shorter nodes would be narrower than a pixel.
    totals = sorted(_totals(roots), reverse=True)
    shortest = totals[MAX_NODES - 1] if len(totals) > MAX_NODES else 0
    named_roots = zip(threads, roots, strict=True)
    trees = [[name, *_as_lists(root, shortest)[1:]] for name, root in named_roots if root.total]
    return sorted(trees, key=lambda tree: -int(tree[1]))


def _totals(roots: Sequence[_Node]) -> list[int]:
    totals: list[int] = []
    pending = list(roots)
    while pending:
        node = pending.pop()
        totals.append(node.total)
        pending.extend(node.children.values())
    return totals


def _as_lists(root: _Node, shortest: int) -> list[Any]:
    """A node as nested lists; iterative, since calls may nest beyond Python's recursion limit."""
    root_row: list[Any] = [root.name, root.total, root.count, []]
    pending = [(root, root_row)]
    while pending:
        node, row = pending.pop()
        for child in sorted(node.children.values(), key=lambda node: -node.total):
            if child.total >= max(shortest, 1):
                row[3].append([child.name, child.total, child.count, []])
                pending.append((child, row[3][-1]))
    return root_row
