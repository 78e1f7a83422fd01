"""Nested calls of the host: the depth of each, and the tree of names they form."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import polars as pl

MOST_NODES: Final = 4000
"""Nodes of a call tree on a page."""


def with_depths(calls: pl.DataFrame) -> pl.DataFrame:
    """The calls by thread and start, outer before inner ones, with `depth` counted from 0.

    The depth of a call is the number of calls of its thread that run when it starts. Threads nest
    their calls, so that is the length of the stack; where they do not (ranges of an asynchronous
    annotation), calls at one depth may overlap.

    Args:
        calls: `thread_id`, `start` and `end`, each longer than 0.
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
    inner: dict[int, "_Node"] = field(default_factory=lambda: {})

    def within(self, name: int) -> "_Node":
        if name not in self.inner:
            self.inner[name] = _Node(name)
        return self.inner[name]


def call_tree(calls: pl.DataFrame, threads: Sequence[str]) -> list[list[Any]]:
    """The calls of each thread as a tree: equal names at the same place are added up.

    Args:
        calls: As `with_depths` returns them, with `label`, the number of a name.
        threads: The name of each `thread_id`.

    Returns:
        A node for each thread, `[name, nanoseconds, calls, inner nodes]`, the longest first; the
        thread's own name is a text, those of its calls are labels. Nodes that are too short to
        be drawn are left out.
    """
    roots = [_Node(-1) for _ in threads]
    path: list[_Node] = []
    columns = (calls[name].to_list() for name in ("thread_id", "depth", "label", "start", "end"))
    for thread, depth, label, start, end in zip(*columns, strict=True):
        del path[depth:]
        outer = path[depth - 1] if depth and len(path) == depth else roots[thread]
        node = outer.within(label)
        node.total += end - start
        node.count += 1
        path.append(node)
    for root in roots:
        root.total = sum(node.total for node in root.inner.values())
    # One limit for all: what is shorter on every thread would be narrower than a pixel.
    totals = sorted(_totals(roots), reverse=True)
    least = totals[MOST_NODES - 1] if len(totals) > MOST_NODES else 0
    named = zip(threads, roots, strict=True)
    trees = [[name, *_listed(root, least)[1:]] for name, root in named if root.total]
    return sorted(trees, key=lambda tree: -int(tree[1]))


def _totals(roots: Sequence[_Node]) -> list[int]:
    totals: list[int] = []
    waiting = list(roots)
    while waiting:
        node = waiting.pop()
        totals.append(node.total)
        waiting.extend(node.inner.values())
    return totals


def _listed(root: _Node, least: int) -> list[Any]:
    """A node as lists; iterative, since a recursive program may nest deeper than Python allows."""
    listed: list[Any] = [root.name, root.total, root.count, []]
    waiting = [(root, listed)]
    while waiting:
        node, row = waiting.pop()
        for inner in sorted(node.inner.values(), key=lambda one: -one.total):
            if inner.total >= max(least, 1):
                row[3].append([inner.name, inner.total, inner.count, []])
                waiting.append((inner, row[3][-1]))
    return listed
