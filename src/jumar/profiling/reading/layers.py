"""The layer of each op, from the call of a torch.nn module in which it was launched.

With `with_stack=True` or `with_modules=True`, torch.profiler and torch_npu record each call of a
module as `nn.Module: Conv2d_3`: its class, numbered in the order of first calls. The backward pass
runs outside these calls, usually on another thread; autograd's arrows lead from an op of the
forward pass to the node that computes its gradient.
"""

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

import polars as pl

from jumar.profiling.profile import END
from jumar.profiling.reading.traces.nesting import innermost

MODULE_CALL: Final = r"^nn\.Module: "
"""Names of module calls."""
AUTOGRAD_NODE: Final = "^autograd::engine::evaluate_function: "
"""Names of calls that evaluate an autograd node."""

_MAX_CHARACTERS: Final = 1000
"""Maximum length of a layer's path, which recursive modules would make arbitrarily long."""

_Change = tuple[int | str, int, str | None]
"""A thread, a time, and the layer that runs on the thread from then on."""


class Backward(NamedTuple):
    """Autograd nodes, each with the op of the forward pass whose gradient it computes.

    `nodes` has `thread`, `start_ns` and `duration_ns`; `forward` has the same number of rows, with
    `thread` and `start_ns` of the ops.
    """

    nodes: pl.DataFrame
    forward: pl.DataFrame


class LayersOverTime:
    """The layer that runs on each thread at any time.

    Args:
        modules: Module calls: `thread`, `start_ns`, `duration_ns`, and the recorded `name`.
        backward: The autograd nodes with their ops of the forward pass.
    """

    def __init__(self, modules: pl.DataFrame, backward: Backward) -> None:
        calls = modules.select(
            "thread",
            "start_ns",
            END.alias("end_ns"),
            ("\t" + pl.col("name").str.replace(MODULE_CALL, "")).alias("name"),
        )
        self._path_of: dict[str, str] = {}
        for _, _, path in sorted(_changes(calls, {}), key=lambda change: len(change[2] or "")):
            if path is not None:
                self._path_of[path.rpartition(".")[2]] = path
        self._changes = self._changes_by_time(calls)
        nodes = backward.nodes.select(
            "thread",
            "start_ns",
            END.alias("end_ns"),
            self.at(backward.forward["thread"], backward.forward["start_ns"]).alias("name"),
        )
        self._changes = self._changes_by_time(pl.concat([calls, nodes.drop_nulls()]))

    def _changes_by_time(self, calls: pl.DataFrame) -> pl.DataFrame:
        """The changes of each thread's layer: `thread`, `at_ns` and the new `module`, by time."""
        schema = {"thread": calls.schema["thread"], "at_ns": pl.Int64(), "module": pl.String()}
        return (
            pl.DataFrame(list(_changes(calls, self._path_of)), schema=schema, orient="row")
            # Of several changes at the same time, the last one counts.
            .unique(["thread", "at_ns"], keep="last", maintain_order=True)
            .sort("at_ns", maintain_order=True)
        )

    def at(self, threads: pl.Series, times: pl.Series) -> pl.Series:
        """The layers running on some threads at some times; null if none is."""
        if not self._changes.height:
            return pl.Series("module", [None] * len(times), dtype=pl.String)
        queries = pl.DataFrame({"thread": threads, "at_ns": times}).with_row_index("row")
        answers = (
            queries.drop_nulls()
            .sort("at_ns", maintain_order=True)
            .join_asof(
                self._changes, on="at_ns", by="thread", strategy="backward", check_sortedness=False
            )
        )
        return queries.join(
            answers.select("row", "module"), on="row", how="left", maintain_order="left"
        )["module"]

    def with_modules(self, calls: pl.DataFrame) -> pl.DataFrame:
        """The calls with `module` instead of `thread`.

        Without module calls this column is omitted, since op names may contain the layer.

        Args:
            calls: `thread`, `launch_ns` and other columns.
        """
        bare_calls = calls.drop("thread")
        if not self._changes.height:
            return bare_calls
        return bare_calls.with_columns(self.at(calls["thread"], calls["launch_ns"]).alias("module"))


def nodes_around(nodes: pl.DataFrame, moments: pl.DataFrame) -> pl.Series:
    """The row of the autograd node around each moment (`thread`, `start_ns`); null if none."""
    return innermost(
        nodes.with_columns(pl.col("thread").cast(pl.String)),
        moments.with_columns(pl.col("thread").cast(pl.String)),
    )


def _changes(calls: pl.DataFrame, path_of: Mapping[str, str]) -> Iterator[_Change]:
    """The changes of each thread's layer, one thread after the other.

    Args:
        calls: `thread`, `start_ns`, `end_ns`, and `name`: the layer of an autograd node, or after a
            tab the name of a module.
        path_of: Paths by name for modules called outside all others, such as those that a
            checkpoint recomputes in an autograd node.
    """
    ordered = calls.drop_nulls().sort(
        "thread", "start_ns", "end_ns", descending=[False, False, True], maintain_order=True
    )
    thread: int | str = ""
    stack: list[tuple[int, str, bool]] = []

    def end_calls(until: int | None) -> Iterator[_Change]:
        while stack and (until is None or stack[-1][0] <= until):
            end, _, _ = stack.pop()
            yield thread, end, stack[-1][1] if stack else None

    for call_thread, start, end, name in ordered.iter_rows():
        yield from end_calls(start if call_thread == thread else None)
        thread = call_thread
        path, is_module = name.removeprefix("\t"), name.startswith("\t")
        if is_module and stack and stack[-1][2]:
            longer = f"{stack[-1][1]}.{path}"
            path = longer if len(longer) <= _MAX_CHARACTERS else stack[-1][1]
        elif is_module:
            path = path_of.get(path, path)[:_MAX_CHARACTERS]
        # Cut calls that outlast the enclosing one: the clocks of Python and C++ differ slightly.
        stack.append((min(end, stack[-1][0]) if stack else end, path, is_module))
        yield thread, start, path
    yield from end_calls(None)
