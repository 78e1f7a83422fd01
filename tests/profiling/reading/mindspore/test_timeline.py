"""MindSpore's timeline of ops."""

import json
from pathlib import Path
from typing import Any

import polars as pl

from jumar.profiling.profile import Missing
from jumar.profiling.reading.file_content import FileContent
from jumar.profiling.reading.mindspore.timeline import on_device_clock, read_clock, read_timeline


def op(pid: object, name: str, **args: Any) -> dict[str, Any]:
    times = {"ts": 2.5, "dur": 1.25}
    return {"ph": "X", "pid": pid, "tid": 7, "name": name, **times, "args": args}


def read(folder: Path, *events: object, cut: bool = False) -> FileContent:
    path = folder / "x.json"
    text = json.dumps(events)
    path.write_text(text[:-1] if cut else text)
    return read_timeline(path, "shown.json", "mindspore_timeline")


def test_ops_have_shapes_and_types_except_on_the_ai_cpu(tmp_path: Path) -> None:
    tensor = {"format": "NC1HWC0", "data_type": "NUMBER_TYPE_FLOAT32", "shape": "2,3"}
    facts = {"input_0": tensor, "input_1": tensor | {"shape": "4"}, "output_0": tensor}
    core = op(3, "short", fullname="net/Mul-op1", type="Mul", **facts)
    found = read(
        tmp_path,
        core,
        op(9000, "TopK", input_0=tensor),
        op(3, "without a full name"),
        op(3, "odd name", fullname=5),
        core | {"ph": "B"},
        core | {"pid": "odd"},
        core | {"pid": 1 << 20},
        core | {"pid": (1 << 20) - 1},
        core | {"pid": -1},
        core | {"dur": -1},
        op(9000, "bare") | {"args": 3},
        cut=True,
    )
    assert (found.file, found.kind, found.producer, found.device) == (
        *("shown.json", "mindspore_timeline", "mindspore", "npu"),
    )
    none = dict.fromkeys(
        f"{side}_{what}s" for side in ("input", "output") for what in ("shape", "type", "format")
    )
    row = {
        **{"device": 3, "stream": "7", "name": "net/Mul-op1", "type": "Mul", "core": "AI_CORE"},
        **{"start_ns": 2_500, "duration_ns": 1_250, "input_shapes": "2,3;4"},
        **{"input_types": "FLOAT;FLOAT", "input_formats": "NC1HWC0;NC1HWC0"},
        **{"output_shapes": "2,3", "output_types": "FLOAT", "output_formats": "NC1HWC0"},
    }
    of_cpu = row | none | {"device": None, "name": "TopK", "type": "TopK", "core": "AI_CPU"}
    assert found.ops is not None
    assert found.ops.to_dicts() == [
        *(row, of_cpu, row | {"device": None}, row | {"device": None}),
        *(row | {"device": (1 << 20) - 1}, row | {"device": None}),
        of_cpu | {"name": "bare", "type": "bare"},
    ]
    assert found.missing == (
        Missing(file="shown.json", what="1 number cannot be read: event 'short', dur: '-1'"),
        Missing(file="shown.json", what="the end: truncated"),
    )


def test_timeline_without_ops_has_no_table(tmp_path: Path) -> None:
    found = read(tmp_path, op(3, "x"))
    assert (found.ops, found.device, found.missing) == (None, None, ())


def test_device_clock_ticks_are_ten_nanoseconds(tmp_path: Path) -> None:
    path = tmp_path / "min_cycle_counter_0.txt"
    path.write_text(" 123456789012345678.0\n")
    content = read_clock(path, "shown.txt", "mindspore_clock")
    assert (content.file, content.kind, content.producer) == (
        "shown.txt",
        "mindspore_clock",
        "mindspore",
    )
    assert list(content.statistics) == ["mindspore_clock"]
    assert content.statistics["mindspore_clock"].to_dicts() == [{"zero_ns": 1234567890123456780}]


def test_timeline_ops_are_moved_to_the_device_clock() -> None:
    ops = pl.DataFrame({"core": ["AI_CORE", "AI_CPU", "AI_CPU"], "start_ns": [5, 30, 20]})
    timeline = FileContent(file="t", kind="mindspore_timeline", ops=ops)
    clock = FileContent(
        file="c",
        kind="mindspore_clock",
        statistics={"mindspore_clock": pl.DataFrame({"zero_ns": [1000]})},
    )

    def aicpu(*starts: int) -> FileContent:
        table = pl.DataFrame({"timestamp_ns": starts}, schema={"timestamp_ns": pl.Int64})
        return FileContent(file="a", kind="mindspore_aicpu", statistics={"aicpu": table})

    def starts(*contents: FileContent, table: pl.DataFrame = ops) -> list[int]:
        return on_device_clock(table, contents)["start_ns"].to_list()

    assert starts(timeline, aicpu(90, 70), clock) == [55, 80, 70]
    assert starts(timeline, clock) == [1005, 1030, 1020]
    assert starts(timeline, aicpu(), clock) == [1005, 1030, 1020]
    assert starts(timeline) == [5, 30, 20]
    # Ops of another file are on its own clock.
    assert starts(aicpu(70), clock) == [5, 30, 20]
    other = FileContent(file="o", kind="op_summary", ops=ops)
    assert starts(other, clock) == [5, 30, 20]
    assert starts(timeline, clock, table=ops.clone()) == [5, 30, 20]
    core = ops.filter(pl.col("core") == "AI_CORE")
    bare = FileContent(file="t", kind="mindspore_timeline", ops=core)
    assert starts(bare, aicpu(70), clock, table=core) == [1005]
