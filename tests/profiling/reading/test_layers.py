"""The layer that runs on a thread at a moment, from calls of modules and nodes of autograd."""

import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from jumar.profiling.reading import layers as room
from jumar.profiling.reading.layers import Backward, LayersOverTime, nodes_around

SPAN = {"thread": pl.Int64, "start_ns": pl.Int64, "duration_ns": pl.Int64}


def calls(*rows: tuple[int, int, int, str]) -> pl.DataFrame:
    schema = {**SPAN, "name": pl.String}
    named = [(thread, start, lasted, f"nn.Module: {name}") for thread, start, lasted, name in rows]
    return pl.DataFrame(named, schema=schema, orient="row")


def backward(*rows: tuple[tuple[int, int, int], tuple[int, int]]) -> Backward:
    nodes = pl.DataFrame([node for node, _ in rows], schema=SPAN, orient="row")
    forward = {"thread": pl.Int64, "start_ns": pl.Int64}
    return Backward(nodes, pl.DataFrame([op for _, op in rows], schema=forward, orient="row"))


def at(layers: LayersOverTime, *moments: tuple[int | None, int | None]) -> list[str | None]:
    threads, times = zip(*moments, strict=True)
    return layers.at(pl.Series(threads, dtype=pl.Int64), pl.Series(times, dtype=pl.Int64)).to_list()


NET = calls((1, 0, 100, "Net_0"), (1, 10, 20, "Linear_0"), (1, 30, 20, "Linear_1"))


def test_path_names_all_modules_around_a_moment_of_the_same_thread() -> None:
    layers = LayersOverTime(NET, backward())
    moments = [(1, time) for time in (-1, 0, 9, 10, 29, 30, 49, 50, 99, 100)]
    first, second = "Net_0.Linear_0", "Net_0.Linear_1"
    inner = [first, first, second, second]
    assert at(layers, *moments) == [None, "Net_0", "Net_0", *inner, "Net_0", "Net_0", None]
    assert at(layers, (2, 15), (None, 15), (1, None), (1, 15)) == [None, None, None, first]


def test_node_of_backward_has_the_layer_of_its_op_forward() -> None:
    nodes = backward(((2, 200, 10), (1, 12)), ((2, 220, 10), (1, 60)), ((2, 240, 10), (1, 500)))
    layers = LayersOverTime(NET, nodes)
    asked = [(2, 200), (2, 209), (2, 210), (2, 225), (2, 245), (1, 205)]
    expected = ["Net_0.Linear_0", "Net_0.Linear_0", None, "Net_0", None, None]
    assert at(layers, *asked) == expected


def test_backward_on_the_thread_of_forward_interrupts_the_module_around_it() -> None:
    layers = LayersOverTime(NET, backward(((1, 60, 10), (1, 35))))
    assert at(layers, (1, 59), (1, 60), (1, 70)) == ["Net_0", "Net_0.Linear_1", "Net_0"]


def test_recomputed_module_and_its_own_backward_keep_the_path_of_the_checkpoint() -> None:
    modules = pl.concat([NET, calls((2, 205, 20, "Linear_1"), (2, 210, 5, "ReLU_0"))])
    # Without gradients all ops have one number, so an arrow may come from any layer inside.
    nodes = backward(((2, 200, 100), (1, 15)), ((2, 250, 10), (2, 206)))
    layers = LayersOverTime(modules, nodes)
    asked = [(2, 201), (2, 206), (2, 211), (2, 230), (2, 255)]
    linear = "Net_0.Linear_1"
    expected = ["Net_0.Linear_0", linear, f"{linear}.ReLU_0", "Net_0.Linear_0", linear]
    assert at(layers, *asked) == expected


def test_call_that_outlasts_the_one_around_it_ends_with_it() -> None:
    layers = LayersOverTime(calls((1, 0, 50, "Net_0"), (1, 40, 20, "Linear_0")), backward())
    assert at(layers, (1, 49), (1, 55), (1, 65)) == ["Net_0.Linear_0", None, None]


def test_path_does_not_grow_with_modules_that_call_themselves() -> None:
    deep = calls(*((1, depth, 10_000 - 2 * depth, f"Deep_{depth}") for depth in range(1000)))
    (path,) = at(LayersOverTime(deep, backward()), (1, 5000))
    assert path is not None
    assert path.startswith("Deep_0.Deep_1.")
    assert len(path) <= room._MAX_CHARACTERS  # pyright: ignore[reportPrivateUsage]


def test_launches_lose_their_thread_and_get_a_layer_only_where_modules_were_called() -> None:
    launches = pl.DataFrame({"thread": [1, 3], "launch_ns": [15, 15], "correlation": [7, 8]})
    known = LayersOverTime(NET, backward()).with_modules(launches)
    assert known.to_dict(as_series=False) == {
        "launch_ns": [15, 15],
        "correlation": [7, 8],
        "module": ["Net_0.Linear_0", None],
    }
    unknown = LayersOverTime(calls(), backward()).with_modules(launches)
    assert unknown.columns == ["launch_ns", "correlation"]


def test_node_around_a_moment_is_the_innermost() -> None:
    nodes = backward(((2, 0, 100), (1, 0)), ((2, 10, 20), (1, 0))).nodes
    moments = pl.DataFrame({"thread": [2, 2, 2, 3], "start_ns": [5, 15, 100, 15]})
    assert nodes_around(nodes, moments).to_list() == [0, 1, None, None]


@st.composite
def nested(draw: st.DrawFn) -> list[tuple[int, int, int, str]]:
    """Calls of two threads, each inside another one or next to it."""
    rows: list[tuple[int, int, int, str]] = []

    def inside(thread: int, start: int, end: int, depth: int) -> None:
        while end - start > 1 and depth < 4 and draw(st.booleans()):
            begin = draw(st.integers(start, end - 1))
            finish = draw(st.integers(begin + 1, end))
            rows.append((thread, begin, finish - begin, f"M_{len(rows)}"))
            inside(thread, begin, finish, depth + 1)
            start = finish

    for thread in (1, 2):
        inside(thread, 0, 60, 0)
    return rows


@given(nested(), st.integers(1, 2), st.integers(0, 61))
def test_layer_is_that_of_the_calls_around_the_moment(
    rows: list[tuple[int, int, int, str]], thread: int, moment: int
) -> None:
    around = [
        name
        for of, start, lasted, name in rows
        if of == thread and start <= moment < start + lasted
    ]
    assert at(LayersOverTime(calls(*rows), backward()), (thread, moment)) == [
        ".".join(around) or None
    ]
