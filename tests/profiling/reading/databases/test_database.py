"""Every table of a database of torch_npu, as rows of the profile."""

import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from jumar.profiling.reading.databases.database import read_database
from jumar.profiling.reading.file_content import FileContent

Tables = Mapping[str, tuple[str, Sequence[Sequence[Any]]]]
"""Columns and rows by the name of the table."""


def content(folder: Path, tables: Tables) -> FileContent:
    path = folder / "x.db"
    with closing(sqlite3.connect(path)) as connection:
        for name, (columns, rows) in tables.items():
            connection.execute(f"CREATE TABLE {name} ({columns})")
            marks = ", ".join("?" * len(columns.split(", ")))
            connection.executemany(f"INSERT INTO {name} VALUES ({marks})", rows)
        connection.commit()
    return read_database(path, "shown.db", "sqlite")


TEXTS = (
    *("MatMul_1", "MatMul", "AI_CORE", "FORMAT_ND;FORMAT_FRACTAL_NZ", "DT_FLOAT;DT_BF16"),
    *('"2,3;3,4"', "N/A", "hcom_allReduce__1", "hcom_allReduce_", "aic_mac_ratio"),
    *("aiv_vec_ratio", "aclnnMatmul", "aten::mm", "Add_2"),
)
FACTS = (
    "globalTaskId, name, blockDim, taskType, opType, inputFormats, inputDataTypes, inputShapes, "
    "outputFormats, outputDataTypes, outputShapes"
)
CALL = "startNs, endNs, globalTid, connectionId, name, type"
THREAD = (7 << 32) + 42
STRINGS = ("id, value", list(enumerate(TEXTS, 1)))
WHOLE: Tables = {
    "STRING_IDS": STRINGS,
    "STEP_TIME": ("id, startNs, endNs", [(1, 1000, 2000), (2, 2000, 3000)]),
    "TASK": (
        "startNs, endNs, deviceId, connectionId, globalTaskId, streamId, taskId",
        [(1100, 1300, 0, 10, 0, 2, 5), (1350, 1400, 0, 11, 1, 2, 6), (2100, 2500, 0, 12, 2, 3, 7)],
    ),
    "COMPUTE_TASK_INFO": (
        FACTS,
        [
            (0, 1, 20, 3, 2, 4, 5, 6, 7, 7, 7),
            (1, 14, 8, 3, 7, 7, 7, 7, 4, 5, 6),
            # A task that is not in TASK is no op.
            (9, 1, 20, 3, 2, 4, 5, 6, 7, 7, 7),
        ],
    ),
    "COMMUNICATION_OP": (
        "opName, startNs, endNs, connectionId, opType",
        [(8, 2600, 2900, 13, 9)],
    ),
    "TASK_PMU_INFO": (
        "globalTaskId, name, value",
        [(0, 10, 0.5), (0, 11, 0.25), (1, 11, 0.75), (1, 11, 0.125)],
    ),
    "CONNECTION_IDS": ("id, connectionId", [(100, 10), (101, 12)]),
    "ENUM_API_TYPE": (
        "id, name",
        [(1, "op"), (2, "queue"), (3, "python_trace"), (4, "acl"), (5, "runtime")],
    ),
    "PYTORCH_API": (
        CALL,
        [
            (900, 960, THREAD, 100, 13, 1),
            ("950", 955, THREAD, 100, 13, 2),
            (800, 990, THREAD, None, 13, 3),
            (700, 710, THREAD, None, 13, 9),
        ],
    ),
    "CANN_API": (CALL, [(990, 995, THREAD, 10, 12, 4), (1340, 1345, THREAD + 1, 11, 12, 5)]),
    "NPU_INFO": ("id, name", [(0, "Ascend910B" + "x" * 80)]),
    "RANK_DEVICE_MAP": ("rankId", [(3,)]),
}


def test_ops_have_facts_counters_steps_waits_and_launching_calls(
    tmp_path: Path,
) -> None:
    found = content(tmp_path, WHOLE)
    assert found.ops is not None
    shapes = {"input_shapes": "2,3;3,4", "input_types": "FLOAT;BF16"}
    none = {"output_shapes": None, "output_types": None, "output_formats": None}
    assert found.ops.to_dicts() == [
        {
            **{"device": 0, "stream": "2", "task": 5, "name": "MatMul_1", "type": "MatMul"},
            **{"core": "AI_CORE", **shapes, "input_formats": "ND;FRACTAL_NZ", **none},
            **{"start_ns": 1100, "duration_ns": 200, "block_num": 20, "correlation": 10},
            **{"aic_mac_ratio": 0.5, "aiv_vec_ratio": 0.25, "launch_ns": 950, "step": 1},
            "wait_ns": None,
        },
        {
            **{"device": 0, "stream": "2", "task": 6, "name": "Add_2", "type": None},
            **{"core": "AI_CORE", "input_shapes": None, "input_types": None, "input_formats": None},
            **{"output_shapes": "2,3;3,4", "output_types": "FLOAT;BF16"},
            **{"output_formats": "ND;FRACTAL_NZ", "start_ns": 1350, "duration_ns": 50},
            **{"block_num": 8, "correlation": 11, "aic_mac_ratio": None, "aiv_vec_ratio": 0.75},
            **{"launch_ns": 1340, "step": 1, "wait_ns": 50},
        },
        {
            **dict.fromkeys(found.ops.columns),
            **{"name": "hcom_allReduce__1", "type": "hcom_allReduce_", "core": "COMMUNICATION"},
            **{"start_ns": 2600, "duration_ns": 300, "correlation": 13, "step": 2},
        },
    ]
    assert (found.rank, found.chip) == (3, "Ascend910B" + "x" * 70)
    assert (found.producer, found.device, found.kind) == ("torch_npu", "npu", "sqlite")
    assert (found.file, found.missing) == ("shown.db", ())
    assert found.steps is not None
    assert found.steps.rows() == [(1, 1000, 2000), (2, 2000, 3000)]
    assert found.steps.columns == ["step", "start_ns", "end_ns"]


def test_calls_have_the_layer_of_their_type_and_only_cann_connections(tmp_path: Path) -> None:
    found = content(tmp_path, WHOLE)
    assert found.host is not None
    assert found.host.columns == [
        *("thread", "layer", "name", "start_ns", "duration_ns", "correlation"),
    ]
    assert found.host.rows() == [
        ("42", "op", "aten::mm", 900, 60, None),
        ("42", "dequeue", "aten::mm", 950, 5, None),
        ("42", "python", "aten::mm", 800, 190, None),
        ("42", "op", "aten::mm", 700, 10, None),
        ("42", "cann", "aclnnMatmul", 990, 5, 10),
        ("43", "runtime", "aclnnMatmul", 1340, 5, 11),
    ]


def test_steps_collectives_links_and_clocks_use_nanoseconds_and_bytes(
    tmp_path: Path,
) -> None:
    times = "elapse_time, transit_time, wait_time, synchronization_time, idle_time"
    found = content(
        tmp_path,
        {
            "STEP_TIME": ("id, startNs, endNs", [(1, 1000, 2000), (2, 2000, 3000)]),
            "StepTraceTime": (
                "step, computing, communication_not_overlapped, overlapped, communication, free, "
                "preparing",
                [("2", 0.5, 1.25, 2.125, 3.0004, 4.0006, 5)],
            ),
            "CommAnalyzerTime": (
                f"hccl_op_name, group_name, step, start_timestamp, {times}",
                [("a", "g", "step2", 7.5, 0.5, 0.25, 0.125, 0.0625, 0.03125)],
            ),
            "CommAnalyzerMatrix": (
                "hccl_op_name, src_rank, dst_rank, transport_type, step, transit_size, "
                "transit_time, bandwidth",
                [("a", "3", "4", "HCCS", "step2", 1.5, 0.75, 2.5)],
            ),
            "AICORE_FREQ": ("timestampNs, freq", [(30, 800), (10, 1600), (20, 1200)]),
        },
    )
    assert found.steps is not None
    assert found.steps.to_dicts() == [
        {
            **{"step": 2, "computing_ns": 500, "communication_not_overlapped_ns": 1250},
            **{"overlapped_ns": 2125, "communication_ns": 3000, "free_ns": 4001},
            **{"preparing_ns": 5000, "start_ns": 2000, "end_ns": 3000},
        }
    ]
    assert found.collectives is not None
    assert found.collectives.to_dicts() == [
        {
            **{"step": 2, "name": "a", "group": "g", "start_ns": 7500, "elapse_ns": 500_000},
            **{"transit_ns": 250_000, "wait_ns": 125_000, "synchronization_ns": 62_500},
            "idle_ns": 31_250,
        }
    ]
    assert found.links is not None
    assert found.links.to_dicts() == [
        {
            **{"step": 2, "name": "a", "transport": "HCCS", "source": 3, "destination": 4},
            **{"size_bytes": 1_500_000, "transit_ns": 750_000, "bandwidth_gb_s": 2.5},
        }
    ]
    assert list(found.statistics) == ["frequency"]
    assert found.statistics["frequency"].rows() == [(10, 1600), (20, 1200), (30, 800)]
    assert (found.ops, found.device, found.producer, found.chip) == (None, None, "msprof", "")


def test_without_compute_facts_only_communication_ops_exist(tmp_path: Path) -> None:
    communication = {name: WHOLE[name] for name in ("STRING_IDS", "COMMUNICATION_OP")}
    found = content(tmp_path, communication)
    assert found.ops is not None
    assert found.ops["name"].to_list() == ["hcom_allReduce__1"]


@pytest.mark.parametrize(
    ("ranks", "rank"),
    [
        ([0], 0),
        ([(1 << 20) - 1], (1 << 20) - 1),
        ([1 << 20], None),
        ([-1], None),
        ([0, 1], None),
        ([], None),
    ],
)
def test_database_with_a_single_rank_names_it(
    tmp_path: Path, ranks: list[int], rank: int | None
) -> None:
    tables = {"STEP_TIME": WHOLE["STEP_TIME"], "RANK_DEVICE_MAP": ("rankId", [(r,) for r in ranks])}
    assert content(tmp_path, tables).rank == rank


def test_numbers_may_be_text_or_real_within_64_bits(tmp_path: Path) -> None:
    rows = [
        ("7", " 1736408883704643212 ", 2.5e18),
        (8, "17364088837046432120", 1.0),
        (9, -(2.0**63), 1.0),
        (10, 6.0e18, 7.9),
        (11, 9.3e18, 8.0),
        (12, "-5", 8.0),
        (13, None, 8.0),
        (14, " N/A", 8.0),
    ]
    found = content(tmp_path, {"STEP_TIME": ("id, startNs, endNs", rows)})
    assert found.steps is not None
    assert found.steps.rows() == [
        (7, 1736408883704643212, 2_500_000_000_000_000_000),
        (10, 6_000_000_000_000_000_000, 8),
    ]
    (gap,) = found.missing
    where = "table STEP_TIME, row {}, column startNs: {}"
    assert gap.what == "4 numbers cannot be read: " + "; ".join(
        [
            where.format(2, "'17364088837046432120'"),
            where.format(3, "'-9.223372036854776e+18'"),
            where.format(5, "'9.3e+18'"),
            "and 1 more",
        ]
    )


def test_lost_value_is_counted_once_even_if_its_table_is_read_again(tmp_path: Path) -> None:
    tables = {"STRING_IDS": STRINGS, "CANN_API": (CALL, [("soon", 995, THREAD, 10, 12, 4)])}
    assert [gap.what for gap in content(tmp_path, tables).missing] == [
        "1 number cannot be read: table CANN_API, row 1, column startNs: 'soon'"
    ]


def test_rows_are_numbered_across_batches(tmp_path: Path) -> None:
    rows = [(number, 1, 2) for number in range(100_001)]
    rows[100_000] = (100_000, b"?", 2)  # pyright: ignore[reportArgumentType, reportCallIssue]
    rows[99_999] = (99_999, "x", 2)  # pyright: ignore[reportArgumentType, reportCallIssue]
    found = content(tmp_path, {"STEP_TIME": ("id, startNs, endNs", rows)})
    assert found.steps is not None
    assert found.steps.height == 99_999
    assert [gap.what for gap in found.missing] == [
        "2 numbers cannot be read: table STEP_TIME, row 100000, column startNs: 'x'; "
        "table STEP_TIME, row 100001, column startNs: \"b'?'\""
    ]


@pytest.mark.parametrize(("names", "kept"), [(200, True), (201, False)])
def test_table_with_too_many_counters_has_none(tmp_path: Path, names: int, kept: bool) -> None:
    strings = [*STRINGS[1], *((1000 + number, f"c{number}") for number in range(names))]
    counters = [(0, 1000 + number, number / 2) for number in range(names)]
    tables = {
        **WHOLE,
        "STRING_IDS": ("id, value", strings),
        "TASK_PMU_INFO": ("globalTaskId, name, value", counters),
    }
    ops = content(tmp_path, tables).ops
    assert ops is not None
    assert [name for name in ops.columns if name.startswith("c1")][:1] == (["c1"] if kept else [])


def test_non_utf8_text_is_read_with_replacement_characters(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE NPU_INFO (id, name)")
        connection.execute("INSERT INTO NPU_INFO VALUES (0, CAST(X'41FF' AS TEXT))")
        connection.commit()
    assert read_database(path, "x.db", "sqlite").chip == "A�"


def test_non_numeric_communication_steps_and_ranks_are_null(tmp_path: Path) -> None:
    found = content(
        tmp_path,
        {
            "StepTraceTime": ("step, computing", [("x", 1)]),
            "CommAnalyzerTime": ("hccl_op_name, step, elapse_time", [("a", "stepx", 1)]),
            "CommAnalyzerMatrix": (
                "hccl_op_name, src_rank, dst_rank, step",
                [("a", "x", "2147483648", "y")],
            ),
        },
    )
    assert found.steps is not None
    assert found.collectives is not None
    assert found.links is not None
    assert found.steps["step"].to_list() == [None]
    assert found.collectives.select("step", "name").rows() == [(None, "a")]
    assert found.links.select("step", "source", "destination").rows() == [(None, None, None)]
    assert found.missing == ()
