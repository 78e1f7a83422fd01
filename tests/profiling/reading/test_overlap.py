"""Op tables of one capture that overlap in time are not silently of one device."""

from collections.abc import Sequence
from typing import Any

import polars as pl

from jumar.profiling.advice.gate import gate
from jumar.profiling.profile import Missing
from jumar.profiling.reading.file_content import FileContent
from jumar.profiling.reading.gathering import combined


def _timed(starts: Sequence[int], lasted: int = 40, **more: Any) -> pl.DataFrame:
    rows = [{"name": f"a{at}", "start_ns": at, "duration_ns": lasted, **more} for at in starts]
    return pl.DataFrame(rows, schema_overrides={"device": pl.Int32} if "device" in more else None)


def _mixed(*tables: pl.DataFrame, kind: str = "kernel_details") -> list[Missing]:
    contents = [FileContent(file=str(at), kind=kind, ops=table) for at, table in enumerate(tables)]
    return list(combined("x", {"x": contents}).missing)


def test_tables_whose_ops_run_at_the_same_time_are_not_silently_one_device() -> None:
    one, other = _timed([0, 100, 200]), _timed([10, 110, 300])
    what = "its rank: its ops overlap those of 0, so they ran on another device; put each rank's"
    gap = Missing(
        file="1", what=f"{what} files into a separate folder", needed_for=("ranks", "gate")
    )
    assert _mixed(one, other) == _mixed(one, other, kind="op_summary") == [gap]
    (measured,) = gate(
        combined(
            "x",
            {
                "x": [
                    FileContent(file=n, kind="op_summary", ops=t)
                    for n, t in (("0", one), ("1", other))
                ]
            },
        ),
        {"step-ms": 1},
    )
    assert (measured.value, measured.needs) == (None, "needs ops of known ranks")
    # Copies, slices one after the other, other kinds and tables that name their device or rank.
    assert _mixed(one, one) == _mixed(one, _timed([300, 400])) == _mixed(one, other[:1]) == []
    assert _mixed(one, _timed([40, 140, 240])) == _mixed(one, other, kind="task_time") == []
    assert _mixed(_timed([0, 100], device=0), _timed([10, 110], device=1)) == []
    assert _mixed(_timed([0, 100], rank=0), _timed([10, 110], rank=1)) == []
    assert _mixed(one, other.drop("start_ns")) == _mixed(one.drop("start_ns"), other) == []
    assert _mixed(_timed([0, 100], device=0), _timed([10, 110], device=0)) != []
    # Two of forty are a twentieth.
    later = range(1_000, 1_000 + 37 * 50, 50)
    assert _mixed(one, _timed([10, 110, *later, 9_000])) == [gap]
    assert _mixed(one, _timed([10, 110, *later, 9_000, 9_100])) == []
