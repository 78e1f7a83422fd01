"""Files of one capture and of several ranks become one profile in which nothing is lost."""

import json
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from jumar.profiling import read
from jumar.profiling.advice.gate import gate
from jumar.profiling.profile import (
    COLLECTIVES_SCHEMA,
    HOST_SCHEMA,
    LINKS_SCHEMA,
    OPS_SCHEMA,
    STEPS_SCHEMA,
    Missing,
    Profile,
)
from jumar.profiling.reading.file_content import FileContent
from jumar.profiling.reading.gathering import combined
from jumar.profiling.views.step_split import contradictions, step_split


def _spent(elapse_ms: float) -> dict[str, object]:
    return {"Communication Time Info": {"Elapse Time(ms)": elapse_ms, "Transit Time(ms)": 1}}


def test_cluster_file_keeps_collectives_of_every_rank(tmp_path: Path) -> None:
    ranks = {"0": _spent(3), "1": _spent(9)}
    tree = {"(0, 1)": {"step1": {"hcom_allReduce__1_0@7": ranks}}}
    (tmp_path / "communication.json").write_text(json.dumps(tree))
    found = read(tmp_path).collectives.select("rank", "step", "elapse_ns").sort("rank")
    assert found.rows() == [(0, 1, 3_000_000), (1, 1, 9_000_000)]


def test_unreadable_database_collectives_are_reported_missing(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "x.db") as database:
        database.executescript(
            "CREATE TABLE STEP_TIME (id, startNs, endNs);"
            "INSERT INTO STEP_TIME VALUES (1, 0, 10);"
            "CREATE TABLE CommAnalyzerTime (hccl_op_name, group_name, step, elapse_time);"
            "INSERT INTO CommAnalyzerTime VALUES ('a', 'g', 'step1', 1e300);"
        )
    profile = read(tmp_path / "x.db")
    assert profile.steps["step"].to_list() == [1]
    assert profile.collectives.is_empty()
    assert [gap.what.partition(":")[0] for gap in profile.missing] == ["collectives"]


def test_transfers_count_if_the_transit_time_is_zero(tmp_path: Path) -> None:
    """Level 2 of CANN 8.3 writes 0, and 622 MB in 32.7 ms in the table of bandwidths."""
    zero = {"Elapse Time(ms)": 121, "Transit Time(ms)": 0, "Wait Time(ms)": 100}
    moved = {"Transit Size(MB)": 622, "Transit Time(ms)": 32.7}
    nothing = {"Transit Size(MB)": 0, "Transit Time(ms)": 0}
    name = "Communication Bandwidth Info"
    ops = {
        "a@1": {
            "Communication Time Info": {**zero, "Idle Time(ms)": 21},
            name: {"HCCS": moved, "SDMA": moved, "RDMA": nothing},
        },
        "b@1": {"Communication Time Info": {**zero, "Idle Time(ms)": 21}, name: {"SDMA": nothing}},
    }
    (tmp_path / "communication.json").write_text(json.dumps({"step1": {"collective": ops}}))
    profile = read(tmp_path)
    times = profile.collectives.select("name", "transit_ns", "wait_ns", "idle_ns").rows()
    assert times == [("a", 32_700_000, 88_300_000, 0), ("b", 0, 100_000_000, 21_000_000)]
    (gap,) = profile.missing
    assert "the transfer time of 1 collective: Transit Time is 0" in gap.what
    assert "Communication Bandwidth Info are used" in gap.what


_OPS = "Op Name,OP Type,Task Type,Task Start Time(us),Task Duration(us)\n"
_SPLIT = "Step,Computing,Communication(Not Overlapped),Overlapped,Communication,Free\n"


def _marked(folder: Path, marks: int) -> Path:
    """Two ops of 40 us with 60 us behind each, and steps of 100 us that begin at `marks`."""
    folder.mkdir()
    rows = [f"a,Mul,AI_CORE,{start}.000,40\n" for start in (1_000_000, 1_000_100)]
    (folder / "op_summary.csv").write_text(_OPS + "".join(rows))
    with sqlite3.connect(folder / "x.db") as database:
        database.executescript("CREATE TABLE STEP_TIME (id, startNs, endNs);")
        for step in (1, 2):
            start = (marks + 100 * step - 100) * 1000
            values = (step, start, start + 100_000)
            database.execute("INSERT INTO STEP_TIME VALUES (?, ?, ?)", values)
    return folder


def test_steps_on_another_clock_are_named_and_cause_no_idle_time(tmp_path: Path) -> None:
    same = read(_marked(tmp_path / "same", 999_990))
    assert same.ops["step"].to_list() == [1, 2]
    assert not [gap for gap in same.missing if "clock" in gap.what]
    other = read(_marked(tmp_path / "other", 1_700_000_000_000_000))
    (gap,) = (gap for gap in other.missing if "clock" in gap.what)
    assert Path(gap.file).name == "x.db"
    assert "all ops are treated as one step" in gap.what
    split = step_split(other).to_dicts()
    assert [(row["computing_ns"], row["free_ns"]) for row in split] == [(80_000, 60_000)]
    for measured in gate(other, {"free-share": 10, "step-ms": 1}):
        assert (measured.value, measured.needs) == (None, "needs steps on the clock of the ops")
    assert gate(same, {"free-share": 99})[0].value is not None


def test_large_deviation_from_the_captures_figures_is_a_contradiction(tmp_path: Path) -> None:
    table = tmp_path / "a" / "step_trace_time.csv"
    for computing, contradicts in ((40, False), (80, True)):
        folder = table.parent
        if not folder.exists():
            _marked(folder, 999_990)
        table.write_text(_SPLIT + f"1,{computing},0,0,0,0\n2,{computing},0,0,0,0\n")
        profile = read(folder)
        note = next(iter(contradictions(profile)), None)
        (measured,) = gate(profile, {"free-share": 10})
        assert (note is not None) == contradicts
        assert (measured.value is None) == contradicts
        if note is not None:
            assert (
                "computing is 0.080 ms according to the ops, but 0.160 ms in the capture's own"
                in note.en
            )
            assert "计算按算子为 0.080 ms" in note.zh
            assert "figures that agree" in measured.needs


def test_renamed_torch_npu_folder_has_the_rank_from_its_info(tmp_path: Path) -> None:
    header = "Step Id,Name,Type,Accelerator Core,Start Time(us),Duration(us)\n"
    for folder, rank in (("first", 5), ("second", 3)):
        output = tmp_path / folder / "ASCEND_PROFILER_OUTPUT"
        output.mkdir(parents=True)
        (output / "kernel_details.csv").write_text(f"{header}1,mul_{rank},Mul,AI_CORE,10,2\n")
        info = {"config": {"common_config": {}}, "rank_id": rank}
        (tmp_path / folder / f"profiler_info_{rank}.json").write_text(json.dumps(info))
    ops = read(tmp_path).ops
    assert ops.select("rank", "name").rows() == [(3, "mul_3"), (5, "mul_5")]


def test_four_mindspore_devices_in_one_folder_are_four_ranks(tmp_path: Path, shared: Path) -> None:
    sample = shared / "data" / "msprof" / "mindspore_r1_2021"
    for source in ("ascend_timeline_display_1.json", "aicore_intermediate_1_detail.csv"):
        for device in range(4):
            name = source.replace("_1", f"_{device}")
            (tmp_path / name).write_bytes((sample / source).read_bytes())
    one = read(sample)
    four = read(tmp_path)
    assert four.ranks == (0, 1, 2, 3)
    assert four.ops.height == 4 * one.ops.height
    assert four.ops.group_by("rank").len()["len"].n_unique() == 1


def _flat(folder: Path, tables: Sequence[str]) -> Path:
    """`profiler_info` of two ranks in one folder, with tables of these names."""
    folder.mkdir()
    for rank in (0, 1):
        info = {"config": {"common_config": {}}, "rank_id": rank}
        (folder / f"profiler_info_{rank}.json").write_text(json.dumps(info))
    header = "Step Id,Name,Type,Accelerator Core,Start Time(us),Duration(us)\n"
    for number, name in enumerate(tables):
        (folder / name).write_text(f"{header}1,mul_{number},Mul,AI_CORE,10,2\n")
    return folder


def test_tables_of_several_ranks_in_one_folder_are_distinguished_by_number(
    tmp_path: Path,
) -> None:
    told = read(_flat(tmp_path / "a", ["kernel_details_0.csv", "kernel_details_1.csv"]))
    assert told.ops.select("rank", "name").rows() == [(0, "mul_0"), (1, "mul_1")]
    assert not told.missing or not [gap for gap in told.missing if "its rank: " in gap.what]


def test_ambiguous_table_next_to_two_ranks_is_not_silently_assigned(
    tmp_path: Path,
) -> None:
    told = read(_flat(tmp_path / "a", ["kernel_details.csv"]))
    assert told.ops.height == 1
    (gap,) = (gap for gap in told.missing if "its rank: " in gap.what)
    assert "profiler_info files of ranks 0, 1" in gap.what


def test_mindspore_devices_without_ops_are_separate_ranks(tmp_path: Path, shared: Path) -> None:
    sample = shared / "data" / "msprof" / "mindspore_r1_2021" / "hccl_raw_0.csv"
    for device in range(4):
        (tmp_path / f"hccl_raw_{device}.csv").write_bytes(sample.read_bytes())
    told = read(tmp_path)
    assert told.collectives["rank"].unique().sort().to_list() == [0, 1, 2, 3]


def _table(*rows: dict[str, Any]) -> pl.DataFrame:
    return pl.DataFrame(rows, infer_schema_length=None)


def _ops(*names: str, start: int | None = 0, **more: Any) -> pl.DataFrame:
    known = {} if start is None else {"start_ns": start}
    return _table(*({"name": name, "duration_ns": 5, **known, **more} for name in names))


def _content(kind: str, **more: Any) -> FileContent:
    return FileContent(file=f"{kind}.x", kind=kind, **more)


def _combined(*contents: FileContent) -> Profile:
    return combined("source", {"capture": contents})


def test_profile_without_tables_has_the_contract_columns() -> None:
    profile = _combined()
    for name, schema in (
        *(("ops", OPS_SCHEMA), ("steps", STEPS_SCHEMA), ("host", HOST_SCHEMA)),
        *(("collectives", COLLECTIVES_SCHEMA), ("links", LINKS_SCHEMA)),
    ):
        table = getattr(profile, name)
        assert table.schema == dict(schema)
        assert table.is_empty()
    assert (profile.source, profile.kind, profile.producer) == ("source", "npu", "unknown")
    assert (profile.chip, profile.files, profile.missing) == ("", (), ())


def test_facts_come_from_any_part_that_has_them() -> None:
    gap = Missing(file="a", what="b")
    profile = _combined(
        _content("x", producer="msprof", missing=(gap,)),
        _content("y", producer="torch_npu level 1", device="cuda", chip="first", missing=(gap,)),
        _content("z", producer="torch_npu", device="cpu", chip="second"),
    )
    assert (profile.producer, profile.kind, profile.chip) == ("torch_npu level 1", "cuda", "first")
    assert profile.files == (("x.x", "x"), ("y.x", "y"), ("z.x", "z"))
    assert profile.missing == (gap,)
    ours = _combined(_content("x", producer="torch_npu level 1"), _content("y", producer="jumar"))
    assert ours.producer == "jumar"


def test_op_table_with_most_columns_is_used() -> None:
    order = ("kernel_details", "op_summary", "sqlite", "kineto", "trace", "mindspore_timeline")
    order += ("mindspore_op_detail", "task_time")
    for place in range(len(order)):
        contents = [
            _content(kind, ops=_ops(kind, core="x", correlation=1, launch_ns=1))
            for kind in reversed(order[place:])
        ]
        empty = [_content(kind, ops=_ops(kind).clear()) for kind in order[:place]]
        assert _combined(*contents, *empty).ops["name"].to_list() == [order[place]]


def test_first_step_and_call_table_is_used() -> None:
    steps = ("step_trace_time", "cluster_step_trace_time", "sqlite", "step_trace", "kineto")
    steps += ("trace", "mindspore_step_trace")
    for place, kind in enumerate(steps):
        found = _combined(
            *(
                _content(one, steps=_table({"step": number}))
                for number, one in reversed(list(enumerate(steps)))
                if number >= place
            )
        )
        assert found.steps["step"].to_list() == [place], kind
    hosts = ("sqlite", "kineto", "trace")
    for place, kind in enumerate(hosts):
        contents = [_content(one, host=_table({"name": one})) for one in reversed(hosts[place:])]
        assert _combined(*contents).host["name"].to_list() == [kind]
    # A database with times of steps is as good as the file of these.
    timed = _content("sqlite", steps=_table({"step": 5, "computing_ns": 1}))
    marks = _content("sqlite", steps=_table({"step": 6}))
    cluster = _content("cluster_step_trace_time", steps=_table({"step": 7}))
    assert _combined(cluster, marks, timed).steps["step"].to_list() == [5]


def test_rows_repeated_across_files_occur_once() -> None:
    place = {"device": 0, "stream": "1", "task": 2, "correlation": 3}
    first = _table(*({"name": "a", "start_ns": 1, "duration_ns": 2, **place} for _ in range(2)))
    other = _table({"name": "a", "start_ns": 1, "duration_ns": 2, **place, "correlation": 4})
    found = _combined(_content("op_summary", ops=first), _content("op_summary", ops=other))
    assert found.ops["correlation"].to_list() == [3]
    assert _combined(_content("op_summary", ops=first)).ops.height == 2
    for name in ("device", "stream", "task", "name", "start_ns", "duration_ns"):
        changed = other.with_columns((pl.col(name).cast(pl.String) + "1").cast(other[name].dtype))
        two = _combined(_content("op_summary", ops=first), _content("op_summary", ops=changed))
        assert two.ops.height == 2, name
    call = _table({"name": "f", "start_ns": 1}, {"name": "f", "start_ns": 1})
    assert _combined(_content("trace", host=call)).host.height == 2
    assert _combined(_content("trace", host=call), _content("trace", host=call)).host.height == 1
    step = _table({"step": 1}, {"step": 1})
    assert _combined(_content("step_trace", steps=step)).steps.height == 1
    assert _combined(_content("x", links=step)).links.height == 1


def test_repeated_rows_keep_file_order() -> None:
    ops = _table(*({"name": f"op{n}", "start_ns": 7 * n % 997, "stream": "1"} for n in range(997)))
    found = _combined(_content("op_summary", ops=ops), _content("op_summary", ops=ops[::-1]))
    assert found.ops["name"].to_list() == ops["name"].to_list()


def test_collectives_of_several_files_are_merged_and_database_links_have_lower_priority() -> None:
    spent = _table({"step": 1, "name": "a", "start_ns": None, "transit_ns": 3})
    begins = _table({"step": 1, "name": "a", "start_ns": 7}, {"step": 2, "name": "a"})
    found = _combined(_content("x", collectives=spent), _content("y", collectives=begins))
    assert found.collectives.select("step", "name", "start_ns", "transit_ns").rows() == [
        (1, "a", 7, 3),
        (2, "a", None, None),
    ]
    database = _content("sqlite", links=_table({"source": 1}))
    matrix = _content("communication_matrix", links=_table({"source": 2}))
    assert _combined(database, matrix).links["source"].to_list() == [2]
    assert _combined(database, _content("z")).links["source"].to_list() == [1]


def test_collective_of_a_database_does_not_hide_the_one_of_the_text_file_next_to_it() -> None:
    """A database keeps the transit time of 0 that is corrected where the transfers are known."""
    place = {"rank": 0, "step": 1, "name": "all", "group": "7"}
    database = _content("sqlite", collectives=_table({**place, "transit_ns": 0, "idle_ns": 9}))
    text = _content(
        "communication", collectives=_table({**place, "transit_ns": 8, "wait_ns": None})
    )
    for contents in ((database, text), (text, database)):
        found = _combined(*contents).collectives.select("transit_ns", "idle_ns")
        assert found.rows() == [(8, 9)]


def test_ranks_are_named_ones_or_devices_or_the_next_free() -> None:
    def capture(name: str, **more: Any) -> list[FileContent]:
        table = _ops(name, **({"device": more.pop("device")} if "device" in more else {}))
        return [FileContent(file=name, kind="op_summary", ops=table, **more)]

    profile = combined(
        "s",
        {
            "a": capture("a"),
            "b": capture("b", rank=3),
            "c": capture("c", device=2),
            "d": capture("d", rank=3),
            "e": capture("e"),
            "f": capture("f", rank=5, device=0),
        },
    )
    assert profile.ops.select("rank", "name").rows() == [
        *((0, "a"), (1, "d"), (2, "c"), (3, "b"), (4, "e"), (5, "f")),
    ]
    steps = FileContent(file="g", kind="step_trace", steps=_table({"step": 1, "device": 6}))
    assert combined("s", {"g": [steps]}).steps["rank"].to_list() == [6]
    # msprof's settings name the device if the ops do not.
    settings = FileContent(
        file="h", kind="msprof_info", statistics={"device": _table({"device": 0})}
    )
    both = {"h": [settings, *capture("h")], "i": capture("i")}
    assert combined("s", both).ops.select("rank", "name").rows() == [(0, "h"), (1, "i")]
    assert combined("s", {"i": capture("i"), "h": both["h"]}).ranks == (0, 1)


def test_renamed_folders_of_two_devices_have_their_ranks_and_cores(tmp_path: Path) -> None:
    for device in (1, 2):
        folder = tmp_path / f"node{device}" / f"device_{device}"
        (folder / "timeline").mkdir(parents=True)
        facts = {"id": device, "ai_core_num": 30 + device}
        (folder / f"info.json.{device}").write_text(json.dumps({"DeviceInfo": [facts]}))
        named = {"ph": "M", "name": "process_name", "pid": 3, "args": {"name": "Ascend Hardware"}}
        op = {"ph": "X", "name": "Add", "pid": 3, "tid": 2, "ts": 5, "dur": 10 * device}
        trace = [named, {**op, "args": {"Task Type": "AI_CORE"}}]
        (folder / "timeline" / f"msprof_{device}_0_1.json").write_text(json.dumps(trace))
    profile = read(tmp_path)
    assert profile.ops.select("rank", "duration_ns").rows() == [(1, 10_000), (2, 20_000)]
    cores = profile.statistics["device"].select("rank", "ai_core_num")
    assert sorted(cores.rows()) == [(1, 31), (2, 32)]
    assert read(tmp_path / "node2" / "device_2").ranks == (2,)


def test_settings_apart_from_the_tables_of_a_device_take_no_rank(tmp_path: Path) -> None:
    (tmp_path / "PROF_1" / "device_0").mkdir(parents=True)
    settings = {"DeviceInfo": [{"id": 0, "ai_core_num": 32}]}
    (tmp_path / "PROF_1" / "device_0" / "info.json.0").write_text(json.dumps(settings))
    tables = tmp_path / "PROF_1" / "mindstudio_profiler_output"
    tables.mkdir()
    (tables / "op_summary_1.csv").write_text(
        "Device_id,Op Name,OP Type,Task Type,Task Start Time(us),Task Duration(us)\n"
        "0,a,Add,AI_CORE,5,1\n"
    )
    profile = read(tmp_path)
    assert profile.ranks == (0,)
    assert profile.statistics["device"]["rank"].to_list() == [0]


def test_rows_naming_a_rank_or_one_of_several_devices_keep_it() -> None:
    named = _table({"name": "a", "rank": 4}, {"name": "b", "rank": None})
    devices = _table({"name": "c", "device": 7}, {"name": "d", "device": 8}, {"name": "e"})
    memory = pl.DataFrame({"device": ["NPU:3", "NPU:12 ", None]})
    one = FileContent(
        file="x",
        kind="op_summary",
        rank=2,
        ops=devices,
        host=named,
        statistics={"memory": memory, "single": pl.DataFrame({"device": ["NPU:3", "NPU:3"]})},
    )
    profile = _combined(one)
    assert profile.ops["rank"].to_list() == [7, 8, 2]
    assert profile.statistics["memory"]["rank"].to_list() == [3, 12, 2]
    assert profile.statistics["single"]["rank"].to_list() == [2, 2]
    host = FileContent(file="x", kind="trace", rank=2, host=named)
    assert _combined(host).host["rank"].to_list() == [4, 2]


def test_equally_named_tables_are_merged_without_duplicate_rows() -> None:
    row = pl.DataFrame({"a": [1, 1]})
    wide = pl.DataFrame({"a": [1.0, 2.0], "b": ["x", "y"]})
    alone = _combined(_content("x", statistics={"t": row})).statistics["t"]
    assert alone["a"].to_list() == [1, 1]
    both = _combined(_content("x", statistics={"t": row}), _content("y", statistics={"t": wide}))
    assert both.statistics["t"].select("a", "b").rows() == [(1.0, None), (1.0, "x"), (2.0, "y")]
    ranks = {name: [_content("x", statistics={"t": row})] for name in ("c", "d")}
    assert combined("s", ranks).statistics["t"]["rank"].to_list() == [0, 0, 1, 1]


def test_ops_without_steps_get_marks_from_other_files_by_launch_time() -> None:
    marks = _table(
        {"step": 1, "start_ns": 0, "end_ns": 10},
        {"step": 2, "start_ns": 10, "end_ns": 20},
        {"step": 3, "start_ns": None, "end_ns": 30},
    )
    steps = _content("step_trace", steps=marks)
    ops = _table(
        {"name": "a", "start_ns": 5, "duration_ns": 1, "launch_ns": None, "step": None},
        {"name": "b", "start_ns": 12, "duration_ns": 1, "launch_ns": 9, "step": None},
        {"name": "c", "start_ns": 12, "duration_ns": 1, "launch_ns": None, "step": 7},
        {"name": "d", "start_ns": 25, "duration_ns": 1, "launch_ns": None, "step": None},
    )
    with_some = _combined(_content("op_summary", ops=ops), steps)
    assert with_some.ops["step"].to_list() == [1, 1, 7, None]
    bare = _combined(_content("op_summary", ops=ops.drop("step", "launch_ns")), steps)
    assert bare.ops["step"].to_list() == [1, 2, 2, None]
    full = ops.with_columns(step=pl.lit(9))
    assert _combined(_content("op_summary", ops=full), steps).ops["step"].to_list() == [9] * 4
    no_marks = _content("step_trace", steps=_table({"step": 1}))
    assert _combined(_content("op_summary", ops=ops), no_marks).ops["step"].null_count() == 3
    untimed = _content("op_summary", ops=ops.select("name", "step"))
    assert _combined(untimed, steps).ops["step"].to_list() == [None, None, 7, None]


def test_ops_launched_before_the_recording_get_no_step_from_marks() -> None:
    marks = _content("step_trace", steps=_table({"step": 1, "start_ns": 0, "end_ns": 90}))
    place = {"name": "a", "duration_ns": 1, "device": 0, "stream": "7"}
    ops = _table(
        {**place, "start_ns": 5, "launch_ns": None, "step": None},
        {**place, "start_ns": 6, "launch_ns": None, "step": 4},
        {**place, "start_ns": 20, "launch_ns": 9, "step": None},
        {**place, "start_ns": 30, "launch_ns": None, "step": None},
    )
    assert _combined(_content("op_summary", ops=ops), marks).ops["step"].to_list() == [
        None,
        4,
        1,
        1,
    ]
    bare = _combined(_content("op_summary", ops=ops.drop("stream")), marks)
    assert bare.ops["step"].to_list() == [1, 4, 1, 1]


def test_steps_get_bounds_from_sibling_marks() -> None:
    table = _content("step_trace_time", steps=_table({"step": 2, "free_ns": 1}, {"step": 9}))
    marks = [
        _content("trace", steps=_table({"step": 2, "start_ns": 5, "end_ns": 6, "free_ns": 8})),
        _content("sqlite", steps=_table({"step": 2, "start_ns": 7, "end_ns": 8})),
        _content("x", steps=_table({"step": 2, "start_ns": 7})),
    ]
    found = _combined(table, *marks).steps.select("step", "start_ns", "end_ns", "free_ns")
    assert found.rows() == [(2, 5, 6, 1), (9, None, None, None)]
    own = _content("step_trace_time", steps=_table({"step": 2, "start_ns": 3, "end_ns": 4}))
    assert _combined(own, *marks).steps["start_ns"].to_list() == [3]


@pytest.mark.parametrize(("apart", "found"), [(-3, False), (-2, True), (0, True), (2, True)])
def test_table_ops_match_trace_launches_within_two_nanoseconds(apart: int, found: bool) -> None:
    table = _table(
        {"name": "a", "start_ns": 100, "duration_ns": 1, "correlation": 8},
        {"name": "b", "start_ns": None, "duration_ns": 1, "correlation": 9},
        {"name": "c", "start_ns": 50, "duration_ns": 1, "correlation": 10},
    )
    traced = _table(
        {"start_ns": 100 + apart, "correlation": 70, "launch_ns": 60},
        {"start_ns": 100 + apart, "correlation": 71, "launch_ns": 61},
        {"start_ns": 50, "correlation": None, "launch_ns": None},
    )
    for kind in ("trace", "sqlite"):
        profile = _combined(_content("op_summary", ops=table), _content(kind, ops=traced))
        assert profile.ops.select("name", "correlation", "launch_ns").rows() == [
            ("c", None, None),
            ("a", 70 if found else None, 60 if found else None),
            ("b", None, None),
        ]
    other = _combined(_content("op_summary", ops=table), _content("task_time", ops=_ops("x")))
    assert other.ops["correlation"].to_list() == [8, 9, 10]
    known = table.with_columns(launch_ns=pl.lit(1))
    kept = _combined(_content("op_summary", ops=known), _content("trace", ops=traced))
    assert kept.ops["launch_ns"].to_list() == [1, 1, 1]


def test_mindspore_framework_facts_are_matched_by_op_name() -> None:
    facts = _table({"name": "a", "stream": "9", "task": 4}, {"name": "a", "stream": "8", "task": 5})
    ops = _ops("b", "a", stream="1")
    content = _content("mindspore_op_detail", ops=ops, statistics={"framework": facts})
    assert _combined(content).ops.select("name", "stream", "task").rows() == [
        *(("b", "1", None), ("a", "1", 4)),
    ]


def test_data_in_a_better_file_of_the_capture_is_not_missing() -> None:
    memory = Missing(file="t", what="events of unsupported categories: x 3")
    end = Missing(file="t", what="the end: it is cut")
    trace = _content("kineto", missing=(memory, end))
    assert _combined(trace).missing == (memory, end)
    assert _combined(trace, _content("op_summary", producer="jumar")).missing == (end,)
    other = _content("trace", missing=(memory, end))
    assert _combined(other, _content("op_summary", producer="jumar")).missing == (memory, end)
    detail = _content("mindspore_op_detail", missing=(end,))
    assert _combined(detail).missing == (end,)
    assert _combined(detail, _content("mindspore_timeline")).missing == ()
    assert _combined(trace, _content("mindspore_timeline")).missing == (memory, end)


def test_ops_have_the_layer_of_their_scope_and_counters_follow_the_contract() -> None:
    ops = _table(
        {"name": "net/conv1/Conv2D", "start_ns": 1, "duration_ns": 1.0, "mac": 0.5},
        {"name": "Add", "start_ns": 2, "duration_ns": 1.0, "mac": 0.25},
    )
    found = _combined(_content("op_summary", ops=ops)).ops
    assert found["module"].to_list() == ["net/conv1", None]
    assert found.columns == [*OPS_SCHEMA, "mac"]
    assert found["mac"].to_list() == [0.5, 0.25]
    named = ops.with_columns(module=pl.lit("m"))
    assert _combined(_content("op_summary", ops=named)).ops["module"].to_list() == ["m", "m"]
    odd = _content("trace", host=_table({"name": "f/g", "more": 1}))
    assert _combined(odd).host.columns == list(HOST_SCHEMA)


def test_values_outside_the_contract_are_null() -> None:
    odd = _table({"step": "x", "start_ns": 5}, {"step": "7", "start_ns": None})
    assert _combined(_content("step_trace", steps=odd)).steps["step"].to_list() == [None, 7]
    large = pl.DataFrame({"device": [1 << 40, 3]})
    found = _combined(_content("x", rank=2, statistics={"t": large})).statistics["t"]
    assert found["rank"].to_list() == [2, 3]
