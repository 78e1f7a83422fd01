"""Files of one capture and of several ranks become one profile in which nothing is lost."""

import json
import sqlite3
from pathlib import Path

from jumar.profiling import read


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
