"""Captures of one worker, and workers whose files lie in one folder."""

from pathlib import Path
from typing import Any

import polars as pl
import pytest

from jumar.profiling import read
from jumar.profiling.profile import Missing
from jumar.profiling.reading.file_content import FileContent
from jumar.profiling.reading.workers import newest_of_each_worker

TRACE = ".pt.trace.json.gz"


def table(start: int | None) -> pl.DataFrame:
    return pl.DataFrame({"start_ns": [start, start]}, schema={"start_ns": pl.Int64})


def content(file: str, kind: str = "trace", start: int | None = None, **more: Any) -> FileContent:
    return FileContent(file=file, kind=kind, ops=None if start is None else table(start), **more)


def files(captures: dict[str, list[FileContent]]) -> dict[str, list[tuple[str, int | None]]]:
    """Files and ranks of what is kept, by capture."""
    kept = newest_of_each_worker(captures)
    return {
        name: [(one.file, one.rank) for one in contents if not one.missing]
        for name, contents in kept.items()
    }


def older(file: str, newer: str) -> FileContent:
    what = (
        f"not read: {newer} is a newer capture of the same worker; to see this one, pass it alone"
    )
    return FileContent(file=file, kind="", missing=(Missing(file=file, what=what),))


def test_newest_capture_of_a_worker_is_kept_and_the_others_named() -> None:
    first = content("a/host_1.1700000000000_ascend_pt/x.csv", start=5)
    second = content("a/host_1.1700000000001_ascend_pt/x.csv", start=9)
    third = content("a/host_1_1700000000002_ascend_pt/x.csv", start=9)
    other = content("a/host_2.1700000000000_ascend_pt/x.csv", start=1)
    captures = {one.file.rpartition("/")[0]: [one] for one in (first, second, third, other)}
    names = list(captures)
    assert newest_of_each_worker(captures) == {
        # Of two that begin at the same time the first is kept.
        names[1]: [older(first.file, second.file), second, older(third.file, second.file)],
        names[3]: [other],
    }


def _recording(
    file: str, *, ops: int = 8, late: int = 0, longer: int = 0, **more: Any
) -> FileContent:
    starts = [1_736_408_883_704_643_212 + 1000 * place for place in range(ops)]
    table = pl.DataFrame({"start_ns": starts, "duration_ns": [500] * ops})
    table[0, "start_ns"] += late
    table[0, "duration_ns"] += longer
    return FileContent(file=file, kind="kineto", ops=table, **more)


def test_copy_of_a_recording_is_no_rank() -> None:
    copied = {name: [_recording(name)] for name in ("a", "b", "c")}
    kept = newest_of_each_worker(copied)
    assert list(kept) == ["a"]
    assert [one.file for one in kept["a"]] == ["a", "b", "c"]
    assert [gap.what for one in kept["a"] for gap in one.missing] == [
        "not read: a copy of a, with the same ops; to see this one, pass it alone"
    ] * 2


def test_recordings_that_differ_or_name_their_ranks_are_no_copies() -> None:
    for other in (
        _recording("b", late=1),
        _recording("b", longer=1),
        _recording("b", ops=9),
        _recording("b", rank=1),
    ):
        assert list(newest_of_each_worker({"a": [_recording("a")], "b": [other]})) == ["a", "b"]
    few = {name: [_recording(name, ops=7)] for name in ("a", "b")}
    assert list(newest_of_each_worker(few)) == ["a", "b"]


def test_worker_is_named_by_rank_or_capture_name() -> None:
    ranked = {
        "a": [content("a/x", start=5), content("a/info", rank=3)],
        "b": [content("b/x", start=6, rank=3)],
        "c": [content("c/x", start=1)],
        "d": [content("d/x", start=2)],
    }
    assert files(ranked) == {"b": [("b/x", 3)], "c": [("c/x", None)], "d": [("d/x", None)]}
    # Nine digits are no time.
    names = ["w.123456789" + TRACE, "w.123456780" + TRACE, "v_1234567890" + TRACE]
    names += ["v_1234567891" + TRACE, "w_1234567890_ascend_ms", "w_1234567891_ascend_ms"]
    kept = files({f"in/{name}": [content(name, start=place)] for place, name in enumerate(names)})
    assert list(kept) == [f"in/{names[place]}" for place in (0, 1, 3, 5)]


def test_capture_starts_with_its_first_table() -> None:
    late = [FileContent(file="late", kind="trace", rank=1, ops=table(100), host=table(50))]
    early = [
        FileContent(
            file="early", kind="trace", rank=1, ops=table(200), host=table(None), steps=table(40)
        )
    ]
    assert files({"l": late, "e": early}) == {"l": [("late", 1)]}
    without = [FileContent(file="w", kind="k", rank=1, ops=pl.DataFrame({"name": ["a"]}))]
    assert files({"w": without, "l": late}) == {"l": [("late", 1)]}


def test_torch_profiler_traces_in_one_folder_are_separate() -> None:
    traces = [content(f"f/{name}.json", "kineto", start=1) for name in ("b", "a")]
    table_ = content("f/op_summary.csv", "op_summary", start=1)
    assert files({"f": [*traces, table_]}) == {
        "f/b.json": [("f/b.json", None)],
        "f/a.json": [("f/a.json", None)],
        "f": [("f/op_summary.csv", None)],
    }
    alone = content("f/a.json", "kineto", start=1)
    assert files({"f": [alone, table_]}) == {
        "f": [("f/a.json", None), ("f/op_summary.csv", None)],
    }
    assert list(files({"f": traces})) == ["f/b.json", "f/a.json"]


def test_mindspore_devices_in_one_folder_get_ranks_from_file_name_suffixes() -> None:
    names = ["timeline_1.json", "aicore_0_detail.csv", "step_2_detail_time.csv", "x_123456.csv"]
    contents = [content(f"f/{name}", "mindspore_x", start=1) for name in names]
    contents += [
        content("f/aicpu_1.csv", "mindspore_aicpu"),
        content("f/y_1.csv", "op_summary", start=1),
    ]
    assert files({"f": contents}) == {
        "f, device 0": [("f/aicore_0_detail.csv", 0)],
        "f, device 1": [("f/timeline_1.json", 1), ("f/aicpu_1.csv", 1)],
        "f, device 2": [("f/step_2_detail_time.csv", 2)],
        "f": [("f/x_123456.csv", None), ("f/y_1.csv", None)],
    }
    # A device without any record of its work and times does not count.
    lone = [
        content("f/timeline_1.json", "mindspore_x", start=1),
        content("f/aicpu_0.csv", "mindspore_a"),
    ]
    assert list(files({"f": lone})) == ["f"]
    for told in ("steps", "collectives"):
        other = FileContent(file="f/z_0.csv", kind="mindspore_z", **{told: table(1)})
        assert list(files({"f": [lone[0], other]})) == ["f, device 0", "f, device 1"]


def test_files_of_several_ranks_are_distinguished_by_rank_or_number() -> None:
    contents = [
        *(content("f/a.db", "sqlite", start=1, rank=4), content("f/b.json.gz", rank=0, start=2)),
        *(content("f/kernel_details_4.csv", start=1), content("f/trace_0.json.gz", start=1)),
        *(content("f/kernel_details_7.csv", start=1), content("f/plain.csv", start=1)),
    ]
    assert files({"f": contents}) == {
        "f, rank 0": [("f/b.json.gz", 0), ("f/trace_0.json.gz", 0)],
        "f, rank 4": [("f/a.db", 4), ("f/kernel_details_4.csv", 4)],
        "f": [("f/kernel_details_7.csv", None), ("f/plain.csv", None)],
    }
    assert list(files({"f": [contents[0], contents[2]]})) == ["f"]


def test_table_next_to_info_of_several_ranks_has_no_known_owner() -> None:
    infos = [content(f"f/info_{rank}.json", "profiler_info", rank=rank) for rank in (5, 2)]
    table_ = content("f/kernel_details.csv", "kernel_details", start=1)
    second = content("f/other.csv", "other", start=1)
    what = "its rank: the folder has profiler_info files of ranks 2, 5"
    gap = Missing(file=table_.file, what=what, needed_for=("ranks",))
    kept = newest_of_each_worker({"f": [*infos, table_, second]})
    assert list(kept) == ["f"]
    assert [one.missing for one in kept["f"]] == [(gap,), ()]
    # Where the other rank has a table, only the one without is named.
    own = content("f/op_2.csv", "op_summary", start=1)
    kept = newest_of_each_worker({"f": [*infos, own, table_]})
    assert [(name, len(contents)) for name, contents in kept.items()] == [
        ("f, rank 2", 2),
        ("f", 1),
    ]
    assert "of ranks 5" in kept["f"][0].missing[0].what


_HOUR = 3_600 * 10**9
_NOW = 1_700_000_000 * 10**9


def test_captures_of_another_time_are_named_instead_of_read_as_ranks() -> None:
    before = [content("a/x", start=_NOW, rank=3), FileContent(file="a/y", kind="")]
    beside = [content("b/x", start=_NOW + _HOUR, rank=0)]
    after = [content("c/x", start=_NOW + 3 * _HOUR, rank=1)]
    later = [content("d/x", start=_NOW + 3 * _HOUR, rank=2), content("d/y", rank=2)]
    timeless = [content("e/x", rank=5)]
    captures = {"a": before, "b": beside, "c": after, "d": later, "e": timeless}

    def unread(file: str, hours: str) -> FileContent:
        what = f"not read: c/x was recorded {hours} h later, so they are not ranks of one job"
        gap = Missing(file=file, what=f"{what}; to see this one, pass it alone")
        return FileContent(file=file, kind="", missing=(gap,))

    kept = newest_of_each_worker(captures)
    gaps = [unread("a/x", "3.0"), before[1], unread("b/x", "2.0")]
    assert kept == {"c": [*gaps, *after], "d": later, "e": timeless}
    # An hour may lie between clocks; what has begun anew on each machine says nothing.
    assert newest_of_each_worker({"a": before, "b": beside}) == {"a": before, "b": beside}
    short = {
        name: [content(f"{name}/x", start=start, rank=rank)]
        for rank, (name, start) in enumerate({"a": 5, "b": 5 + 9 * _HOUR, "c": _NOW}.items())
    }
    assert newest_of_each_worker(short) == short


@pytest.mark.parametrize(
    ("hours", "shown"),
    [
        (2, "2.0 h"),
        (47.9, "47.9 h"),
        (48, "2.0 days"),
        (17_500, "729.2 days"),
        (28_623.2, "3.3 years"),
    ],
)
def test_time_between_recordings_is_in_hours_days_or_years(hours: float, shown: str) -> None:
    later = _NOW + round(hours * _HOUR)
    captures = {"a": [content("a/x", start=_NOW)], "b": [content("b/x", start=later)]}
    ((gap, _),) = newest_of_each_worker(captures).values()
    assert f"b/x was recorded {shown} later, so" in gap.missing[0].what


def test_sample_pair_of_two_jobs_is_no_pair_of_ranks(shared: Path) -> None:
    profile = read(shared / "data" / "msprof" / "torch_cuda_pair")
    assert (profile.ranks, profile.chip) == ((1,), "Tesla V100-SXM2-16GB")
    (gap,) = profile.missing
    assert gap.file.endswith("control.json.gz")
    assert "recorded 8.5 days later, so they are not ranks of one job" in gap.what
