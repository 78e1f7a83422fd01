"""The layer of each op, from the calls of torch.nn modules in which it was launched.

With `with_stack=True` or `with_modules=True` torch.profiler and torch_npu record each call of a
module as `nn.Module: Conv2d_3`: its class, numbered in the order of the first calls. Backward runs
outside of these calls, mostly on another thread; autograd's arrows lead from an op forward to the
node that computes its gradient.
"""

from collections.abc import Iterator
from typing import Final, NamedTuple

import polars as pl

from jumar.profiling.reading.traces.nesting import innermost

MODULE: Final = r"^nn\.Module: "
"""Names of calls of modules."""
NODE: Final = "^autograd::engine::evaluate_function: "
"""Names of calls that evaluate one node of autograd."""

_LONGEST: Final = 1000
"""Characters of a path; modules that call themselves would make it as long as their depth."""

_Row = tuple[int | str, int, int, str]
"""A call: its thread, start and end, and its layer: a path, or a name after a tab."""


class Backward(NamedTuple):
    """Nodes of autograd (`thread`, `start_ns`, `duration_ns`), each with an op of its forward pass.

    `forward` has the `thread` and `start_ns` of these ops, row by row.
    """

    nodes: pl.DataFrame
    forward: pl.DataFrame


class Layers:
    """Which layer runs on each thread at any time.

    Args:
        modules: Calls of modules: `thread`, `start_ns`, `duration_ns`, and `name` as recorded.
        backward: The nodes of autograd with their ops forward.
    """

    def __init__(self, modules: pl.DataFrame, backward: Backward) -> None:
        calls = modules.select(
            "thread",
            "start_ns",
            (pl.col("start_ns") + pl.col("duration_ns")).alias("end_ns"),
            ("\t" + pl.col("name").str.replace(MODULE, "")).alias("name"),
        )
        self._changes = _changes(calls)
        # A second time: what backward recomputes (checkpointing) has a backward pass of its own.
        for _ in range(2 if backward.nodes.height else 0):
            nodes = backward.nodes.select(
                "thread",
                "start_ns",
                (pl.col("start_ns") + pl.col("duration_ns")).alias("end_ns"),
                self.of(backward.forward["thread"], backward.forward["start_ns"]).alias("name"),
            )
            self._changes = _changes(pl.concat([calls, nodes.drop_nulls()]))

    def of(self, threads: pl.Series, moments: pl.Series) -> pl.Series:
        """The layer that runs on each thread at each moment; null where there is none."""
        if not self._changes.height:
            return pl.Series("module", [None] * len(moments), dtype=pl.String)
        asked = pl.DataFrame({"thread": threads, "at_ns": moments}).with_row_index("row")
        known = (
            asked.drop_nulls()
            .sort("at_ns", maintain_order=True)
            .join_asof(
                self._changes, on="at_ns", by="thread", strategy="backward", check_sortedness=False
            )
        )
        return asked.join(
            known.select("row", "module"), on="row", how="left", maintain_order="left"
        )["module"]

    def of_launches(self, calls: pl.DataFrame) -> pl.DataFrame:
        """Calls with their `module` in place of their `thread`.

        Without any call of a module there is no such column: then names may tell the layers.

        Args:
            calls: `thread`, `launch_ns` and other columns.
        """
        rest = calls.drop("thread")
        if not self._changes.height:
            return rest
        return rest.with_columns(self.of(calls["thread"], calls["launch_ns"]).alias("module"))


def nodes_around(nodes: pl.DataFrame, moments: pl.DataFrame) -> pl.Series:
    """The row of the node of autograd around each moment (`thread`, `start_ns`), or null."""
    return innermost(
        nodes.with_columns(pl.col("thread").cast(pl.String)),
        moments.with_columns(pl.col("thread").cast(pl.String)),
    )


def _changes(calls: pl.DataFrame) -> pl.DataFrame:
    """From when on each layer runs: `thread`, `at_ns`, `module`, in order of time."""
    ordered = calls.drop_nulls().sort(
        "thread", "start_ns", "end_ns", descending=[False, False, True], maintain_order=True
    )
    rows = list(_swept(ordered.iter_rows()))
    schema = {"thread": calls.schema["thread"], "at_ns": pl.Int64(), "module": pl.String()}
    return (
        pl.DataFrame(rows, schema=schema, orient="row")
        # Of several changes at one time the last one holds.
        .unique(["thread", "at_ns"], keep="last", maintain_order=True)
        .sort("at_ns", maintain_order=True)
    )


def _swept(calls: Iterator[_Row]) -> Iterator[tuple[int | str, int, str | None]]:
    """The changes of layer of calls that are sorted by thread and start, outer ones first."""
    thread: int | str | None = None
    stack: list[tuple[int, str]] = []

    def ended(until: int | None) -> Iterator[tuple[int | str, int, str | None]]:
        while stack and (until is None or stack[-1][0] <= until):
            end, _ = stack.pop()
            assert thread is not None
            yield thread, end, stack[-1][1] if stack else None

    for of, start, end, name in calls:
        yield from ended(start if of == thread else None)
        thread = of
        path = name
        if name.startswith("\t"):
            path = f"{stack[-1][1]}.{name[1:]}" if stack else name[1:]
            path = path if len(path) <= _LONGEST else stack[-1][1] if stack else path[:_LONGEST]
        # A call that outlasts the one around it is cut: clocks of Python and C++ differ a little.
        stack.append((min(end, stack[-1][0]) if stack else end, path))
        yield thread, start, path
    yield from ended(None)
