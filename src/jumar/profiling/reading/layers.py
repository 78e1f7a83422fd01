"""The layer of each op, from the calls of torch.nn modules in which it was launched.

With `with_stack=True` or `with_modules=True` torch.profiler and torch_npu record each call of a
module as `nn.Module: Conv2d_3`: its class, numbered in the order of the first calls. Backward runs
outside of these calls, mostly on another thread; autograd's arrows lead from an op forward to the
node that computes its gradient.
"""

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

import polars as pl

from jumar.profiling.reading.traces.nesting import innermost

MODULE: Final = r"^nn\.Module: "
"""Names of calls of modules."""
NODE: Final = "^autograd::engine::evaluate_function: "
"""Names of calls that evaluate one node of autograd."""

_LONGEST: Final = 1000
"""Characters of a path; modules that call themselves would make it as long as their depth."""

_Change = tuple[int | str, int, str | None]
"""A thread, a time, and the layer that runs on the thread from then on."""


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
        self._homes: dict[str, str] = {}
        for _, _, path in sorted(_swept(calls, {}), key=lambda change: len(change[2] or "")):
            if path is not None:
                self._homes[path.rpartition(".")[2]] = path
        self._changes = self._swept_in_time(calls)
        nodes = backward.nodes.select(
            "thread",
            "start_ns",
            (pl.col("start_ns") + pl.col("duration_ns")).alias("end_ns"),
            self.of(backward.forward["thread"], backward.forward["start_ns"]).alias("name"),
        )
        self._changes = self._swept_in_time(pl.concat([calls, nodes.drop_nulls()]))

    def _swept_in_time(self, calls: pl.DataFrame) -> pl.DataFrame:
        """From when on each layer runs: `thread`, `at_ns`, `module`, in order of time."""
        schema = {"thread": calls.schema["thread"], "at_ns": pl.Int64(), "module": pl.String()}
        return (
            pl.DataFrame(list(_swept(calls, self._homes)), schema=schema, orient="row")
            # Of several changes at one time the last one holds.
            .unique(["thread", "at_ns"], keep="last", maintain_order=True)
            .sort("at_ns", maintain_order=True)
        )

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


def _swept(calls: pl.DataFrame, homes: Mapping[str, str]) -> Iterator[_Change]:
    """When the layer of a thread changes, one thread after the other.

    Args:
        calls: `thread`, `start_ns`, `end_ns`, and as `name` the layer of a node of autograd, or the
            name of a module after a tab.
        homes: The path of a module that is called outside of all others: what a checkpoint
            recomputes runs in a node of autograd.
    """
    ordered = calls.drop_nulls().sort(
        "thread", "start_ns", "end_ns", descending=[False, False, True], maintain_order=True
    )
    thread: int | str = ""
    stack: list[tuple[int, str, bool]] = []

    def ended(until: int | None) -> Iterator[_Change]:
        while stack and (until is None or stack[-1][0] <= until):
            end, _, _ = stack.pop()
            yield thread, end, stack[-1][1] if stack else None

    for of, start, end, name in ordered.iter_rows():
        yield from ended(start if of == thread else None)
        thread = of
        path, is_module = name.removeprefix("\t"), name.startswith("\t")
        if is_module and stack and stack[-1][2]:
            longer = f"{stack[-1][1]}.{path}"
            path = longer if len(longer) <= _LONGEST else stack[-1][1]
        elif is_module:
            path = homes.get(path, path)[:_LONGEST]
        # A call that outlasts the one around it is cut: clocks of Python and C++ differ a little.
        stack.append((min(end, stack[-1][0]) if stack else end, path, is_module))
        yield thread, start, path
    yield from ended(None)
