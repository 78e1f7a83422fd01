"""Times below zero are left out of every table and counted."""

import polars as pl

from jumar.profiling.profile import Missing
from jumar.profiling.reading.file_content import FileContent
from jumar.profiling.reading.negative import without_negative


def table(**columns: list[int | None]) -> pl.DataFrame:
    return pl.DataFrame(columns, schema=dict.fromkeys(columns, pl.Int64))


def test_rows_with_negative_durations_are_omitted_and_counted() -> None:
    old = Missing(file="x", what="something else")
    content = FileContent(
        file="x",
        kind="k",
        ops=table(duration_ns=[0, -1, 5, None, -2]),
        host=table(duration_ns=[-1, 1]),
        collectives=table(elapse_ns=[-1, 0, -3, -4]),
        steps=table(
            step=[1, 2, 3, 4, 5, 6],
            start_ns=[10, 10, 10, None, -9, 3],
            end_ns=[10, 9, 11, 3, -8, 5],
            free_ns=[0, 1, -1, 2, 3, None],
        ),
        missing=(old,),
    )
    found = without_negative(content)
    assert found.ops is not None
    assert found.host is not None
    assert found.collectives is not None
    assert found.steps is not None
    assert found.ops["duration_ns"].to_list() == [0, 5, None]
    assert found.host["duration_ns"].to_list() == [1]
    assert found.collectives["elapse_ns"].to_list() == [0]
    assert found.steps["step"].to_list() == [1, 4, 5, 6]
    what = "2 ops, 1 call, 3 collectives, 2 steps with a negative duration"
    assert found.missing == (old, Missing(file="x", what=what))


def test_part_without_negative_times_is_unchanged() -> None:
    for content in (
        FileContent(file="x", kind="k"),
        FileContent(file="x", kind="k", ops=table(a=[-1]), steps=table(step=[-1])),
        FileContent(file="x", kind="k", ops=table(duration_ns=[0]), steps=table(start_ns=[-5])),
        FileContent(file="x", kind="k", steps=table(start_ns=[5], end_ns=[5], free_ns=[0])),
        FileContent(file="x", kind="k", steps=table(start_ns=[], end_ns=[])),
    ):
        assert without_negative(content) is content
