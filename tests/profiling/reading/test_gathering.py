"""Files of one capture and of several ranks become one profile in which nothing is lost."""

import json
import sqlite3
from collections.abc import Sequence
from pathlib import Path

from jumar.profiling import read
from jumar.profiling.advice.gate import gate
from jumar.profiling.views.step_split import contradictions, step_split


def _spent(elapse_ms: float) -> dict[str, object]:
    return {"Communication Time Info": {"Elapse Time(ms)": elapse_ms, "Transit Time(ms)": 1}}


def test_the_file_of_a_cluster_keeps_a_collective_of_every_rank(tmp_path: Path) -> None:
    ranks = {"0": _spent(3), "1": _spent(9)}
    tree = {"(0, 1)": {"step1": {"hcom_allReduce__1_0@7": ranks}}}
    (tmp_path / "communication.json").write_text(json.dumps(tree))
    found = read(tmp_path).collectives.select("rank", "step", "elapse_ns").sort("rank")
    assert found.rows() == [(0, 1, 3_000_000), (1, 1, 9_000_000)]


def test_collectives_of_a_database_that_cannot_be_read_are_named_missing(tmp_path: Path) -> None:
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


def test_transfers_count_where_the_transit_time_beside_them_is_zero(tmp_path: Path) -> None:
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


def test_steps_on_another_clock_are_named_and_do_not_make_the_device_idle(tmp_path: Path) -> None:
    same = read(_marked(tmp_path / "same", 999_990))
    assert same.ops["step"].to_list() == [1, 2]
    assert not [gap for gap in same.missing if "clock" in gap.what]
    other = read(_marked(tmp_path / "other", 1_700_000_000_000_000))
    (gap,) = (gap for gap in other.missing if "clock" in gap.what)
    assert Path(gap.file).name == "x.db"
    assert "all ops are taken as one step" in gap.what
    split = step_split(other).to_dicts()
    assert [(row["computing_ns"], row["free_ns"]) for row in split] == [(80_000, 60_000)]
    for measured in gate(other, {"free-share": 10, "step-ms": 1}):
        assert (measured.value, measured.needs) == (None, "needs steps on the clock of the ops")
    assert gate(same, {"free-share": 99})[0].value is not None


def test_figures_far_from_the_captures_own_are_a_contradiction(tmp_path: Path) -> None:
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
            assert "computing is 0.080 ms by the ops and 0.160 ms by the capture's own" in note.en
            assert "计算按算子为 0.080 ms" in note.zh
            assert "figures that agree" in measured.needs


def test_a_renamed_folder_of_torch_npu_has_the_rank_of_its_own_information(tmp_path: Path) -> None:
    header = "Step Id,Name,Type,Accelerator Core,Start Time(us),Duration(us)\n"
    for folder, rank in (("first", 5), ("second", 3)):
        output = tmp_path / folder / "ASCEND_PROFILER_OUTPUT"
        output.mkdir(parents=True)
        (output / "kernel_details.csv").write_text(f"{header}1,mul_{rank},Mul,AI_CORE,10,2\n")
        info = {"config": {"common_config": {}}, "rank_id": rank}
        (tmp_path / folder / f"profiler_info_{rank}.json").write_text(json.dumps(info))
    ops = read(tmp_path).ops
    assert ops.select("rank", "name").rows() == [(3, "mul_3"), (5, "mul_5")]


def test_four_devices_of_mindspore_in_one_folder_are_four_ranks(
    tmp_path: Path, shared: Path
) -> None:
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


def test_tables_of_several_ranks_in_one_folder_are_told_apart_by_their_number(
    tmp_path: Path,
) -> None:
    told = read(_flat(tmp_path / "a", ["kernel_details_0.csv", "kernel_details_1.csv"]))
    assert told.ops.select("rank", "name").rows() == [(0, "mul_0"), (1, "mul_1")]
    assert not told.missing or not [gap for gap in told.missing if "whose it is" in gap.what]


def test_a_table_beside_the_information_of_two_ranks_is_given_to_none_in_silence(
    tmp_path: Path,
) -> None:
    told = read(_flat(tmp_path / "a", ["kernel_details.csv"]))
    assert told.ops.height == 1
    (gap,) = (gap for gap in told.missing if "whose it is" in gap.what)
    assert "information of the ranks 0, 1 lies in one folder with it" in gap.what


def test_devices_of_mindspore_without_ops_are_ranks_of_their_own(
    tmp_path: Path, shared: Path
) -> None:
    sample = shared / "data" / "msprof" / "mindspore_r1_2021" / "hccl_raw_0.csv"
    for device in range(4):
        (tmp_path / f"hccl_raw_{device}.csv").write_bytes(sample.read_bytes())
    told = read(tmp_path)
    assert told.collectives["rank"].unique().sort().to_list() == [0, 1, 2, 3]
