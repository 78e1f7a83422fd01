"""What is said of a capture, where it is, and which events belong to it."""

from pathlib import Path
from typing import Any

import polars as pl
import pytest

from jumar.profiling.profile import HOST_SCHEMA, OPS_SCHEMA, STEPS_SCHEMA, Profile, empty
from jumar.training.parallel.ranks import Ranks
from jumar.training.profiling.files import (
    CaptureSummary,
    _steps,
    _with_layers,
    _with_work,
    _within_steps,
    profile_folder,
)
from jumar.training.profiling.layers import Event
from jumar.training.profiling.shapes import MissingShapes


def line(
    *,
    ops: int = 2,
    step_ms: float = 12.34,
    plain: float | None = None,
    with_shapes: bool = True,
    missing_shapes: MissingShapes | None = None,
) -> str:
    return CaptureSummary(
        folder=Path("runs/x/profile"),
        ops=ops,
        in_layers=0.874,
        step_ms=step_ms,
        plain_step_ms=plain,
        with_shapes=with_shapes,
        missing_shapes=missing_shapes or MissingShapes(),
    ).report()


def test_message_says_what_was_recorded_and_its_cost() -> None:
    head = "profile: runs/x/profile: {} op{}, 87 % of their time in layers, {} ms per recorded step"
    assert line(ops=1) == head.format(1, "", "12.3")
    assert line() == head.format(2, "s", "12.3")
    plain = " (100.0 ms without recording)"
    assert line(step_ms=114.9, plain=100.0) == head.format(2, "s", "114.9") + plain
    assert line(step_ms=116.4, plain=100.0) == (
        head.format(2, "s", "116.4") + plain + "\nrecording made steps 16 % longer; --no-shapes "
        "gives more accurate times, but no shapes or dtypes"
    )
    assert line(step_ms=116.4, plain=100.0, with_shapes=False) == (
        head.format(2, "s", "116.4") + plain
    )
    assert line(step_ms=50.0, plain=100.0) == head.format(2, "s", "50.0") + plain
    assert line(missing_shapes=MissingShapes(steps=(2, 4), data_ops=1)) == (
        head.format(2, "s", "12.3") + "\nno shapes or dtypes in step 2, 4: its ops or inputs "
        "differ from those of the steps recorded with shapes; --steps 1 records one step with its "
        "shapes"
        "\nno shapes or dtypes for 1 op that prepared data, which may differ from batch to batch"
    )
    assert line(missing_shapes=MissingShapes(data_ops=3)).endswith(
        "for 3 ops that prepared data, which may differ from batch to batch"
    )


@pytest.mark.parametrize(
    ("ranks", "folder"),
    [
        (Ranks(), "runs/x/profile"),
        (Ranks(rank=0, world=2, local_world=2), "runs/x/profile/rank-0"),
        (Ranks(rank=1, world=2, local_world=2), "runs/x/profile/rank-1"),
    ],
)
def test_each_of_several_ranks_has_a_folder(ranks: Ranks, folder: str) -> None:
    assert str(profile_folder(Path("runs/x"), ranks)) == folder


def test_events_before_the_first_step_are_dropped_except_thread_names() -> None:
    names = {"ph": "M", "name": "thread_name", "ts": 0}
    late = {"ph": "X", "name": "ProfilerStep#4", "ts": 30.0}
    first = {"ph": "X", "name": "ProfilerStep#3", "ts": 20.0}
    within, timeless = {"ph": "X", "name": "aten::add", "ts": 20.0}, {"name": "Record"}
    before = {"ph": "X", "name": "aten::mul", "ts": 19.9}
    events = [names, before, late, first, within, timeless]
    assert _within_steps(events) == [names, late, first, within, timeless]


def table(schema: Any, rows: list[dict[str, Any]]) -> pl.DataFrame:
    """Rows of which only some columns are known."""
    return pl.DataFrame([{**dict.fromkeys(schema), **row} for row in rows], schema=schema)


def test_npu_kernels_get_the_layer_whose_flow_ends_at_their_start() -> None:
    def event(name: str, start: int, **more: object) -> Event:
        return {"ph": "X", "name": name, "pid": 1, "tid": 1, "ts": start, "dur": 50, **more}

    events = [event("module:stem", 0), event("module:head", 100)]
    for number, (begins, ends) in enumerate(((10, 500), (110, 600), (300, 700))):
        flow = {"cat": "async_npu", "id": number, "pid": 1, "tid": 1}
        events += [{**flow, "ph": "s", "ts": begins}, {**flow, "ph": "f", "ts": ends}]
    starts = [600_002, None, 500_000, 600_003, 700_000, 499_998]
    ops = table(OPS_SCHEMA, [{"start_ns": at, "module": "old", "task": at} for at in starts])
    profile = Profile(source="x", producer="x", kind="npu", ops=ops)
    result = _with_layers(profile, events).ops
    assert result.columns == ops.columns
    assert result["task"].to_list() == starts
    assert result["module"].to_list() == ["head", None, "stem", None, None, "stem"]


def test_data_wait_belongs_to_the_step_that_requested_it() -> None:
    ops = table(OPS_SCHEMA, [{"rank": 0, "step": 1, "start_ns": 110, "duration_ns": 5}])
    bounds = [(1, 100, 200), (2, 200, 300), (3, 300, 400)]
    steps = table(
        STEPS_SCHEMA,
        [{"rank": 0, "step": step, "start_ns": a, "end_ns": b} for step, a, b in bounds],
    )
    marks = [
        ("mark", "data", 100, 7),
        ("mark", "data", 199, 20),
        ("mark", "data", 200, 3),
        ("mark", "optimizer", 300, 90),
        ("op", "data", 310, 80),
        ("mark", "data", 400, 60),
        ("mark", "data", 50, 40),
    ]
    host = table(
        HOST_SCHEMA,
        [
            {"rank": 0, "layer": layer, "name": name, "start_ns": at, "duration_ns": length}
            for layer, name, at, length in marks
        ],
    )
    profile = Profile(source="x", producer="x", kind="cpu", ops=ops, steps=steps, host=host)
    result = _steps(profile)
    assert result.select("step", "data_ns").rows() == [(1, 27), (2, 3), (3, None)]
    assert [name for name in STEPS_SCHEMA if name in result.columns] == result.columns


def test_only_cpu_ops_get_work_from_their_arguments() -> None:
    arguments = {"Input Dims": [[2, 3], [3, 4]], "Input type": ["float"] * 2}
    arguments |= {"Concrete Inputs": ["", ""], "External id": 7}
    product: Event = {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "args": arguments}
    ops = table(OPS_SCHEMA, [{"correlation": 9, "flops": 5}, {"correlation": 7}, {"type": "x"}])
    for kind, expected in (
        ("cpu", [(9, None, None), (7, "2,4", 48), (None, None, None)]),
        ("npu", [(9, None, 5), (7, None, None), (None, None, None)]),
    ):
        profile = Profile(source="x", producer="x", kind=kind, ops=ops)
        result = _with_work(profile, [{**product, "ts": 1, "dur": 1}]).ops
        assert result.select("correlation", "output_shapes", "flops").rows() == expected
        assert result.columns == ops.columns
    assert (
        _with_work(
            Profile(source="x", producer="x", kind="cpu", ops=empty(OPS_SCHEMA)), []
        ).ops.height
        == 0
    )
