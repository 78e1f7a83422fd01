"""Real profiles are read whole, and their own sums come out of their rows."""

from pathlib import Path

import polars as pl
import pytest

from jumar.profiling import read
from jumar.profiling.profile import HOST_SCHEMA, OPS_SCHEMA, STEPS_SCHEMA
from jumar.profiling.views.op_statistic import op_statistic
from jumar.profiling.views.step_split import step_split


@pytest.fixture(scope="module")
def samples(shared: Path) -> Path:
    return shared / "data" / "msprof"


def test_two_torch_npu_ranks_are_read_with_all_kernels(samples: Path) -> None:
    profile = read(samples / "torch_npu_level1_2rank")
    assert profile.ranks == (0, 1)
    assert profile.ops.group_by("rank").len().sort("rank").rows() == [(0, 191), (1, 191)]
    assert profile.kind == "npu"
    assert dict(profile.ops.schema).items() >= dict(OPS_SCHEMA).items()
    assert profile.steps.schema == dict(STEPS_SCHEMA)
    assert profile.host.schema == dict(HOST_SCHEMA)


def test_times_keep_all_digits(samples: Path) -> None:
    profile = read(samples / "torch_npu_level1_2rank" / "rank0_ascend_pt")
    first = profile.ops.sort("start_ns").row(0, named=True)
    assert first["start_ns"] == 1736408883704643212
    assert first["duration_ns"] == 53741


def test_cuda_kernels_are_named_by_the_ops_that_launched_them(samples: Path) -> None:
    profile = read(samples / "torch_cuda_pair" / "control.json.gz")
    assert (profile.kind, profile.ranks, profile.chip) == ("cuda", (3,), "NVIDIA A100-PG509-200")
    assert profile.ops.height == 8568 + 654 + 228
    assert profile.ops["launch_ns"].null_count() == 0
    gemm = profile.ops.filter(pl.col("kernel").str.contains("s1688gemm"))
    assert gemm["type"].is_in(["mm", "addmm", "bmm", "baddbmm"]).all()


@pytest.mark.parametrize(
    "folder",
    [
        "torch_npu_level1_2rank/rank0_ascend_pt",
        "torch_npu_level1_2rank/rank1_ascend_pt",
        "torch_npu_level2_4rank/rank_0_ascend_pt",
    ],
)
def test_op_statistics_from_rows_equal_the_file(samples: Path, folder: str) -> None:
    profile = read(samples / folder)
    ours = op_statistic(profile).select(
        "type", "core", "count", "total_ns", "min_ns", "average_ns", "max_ns", "ratio_percent"
    )
    theirs = profile.statistics["op_statistic"].select(
        pl.col("op_type").alias("type"),
        pl.col("core_type").alias("core"),
        "count",
        *(f"{name}_time_ns" for name in ("total", "min", "avg", "max")),
        pl.col("ratio_percent").alias("file_ratio"),
    )
    both = ours.join(theirs, on=["type", "core"], how="full", coalesce=True)
    assert both.height == ours.height == theirs.height
    assert (both["count"] == both["count_right"]).all()
    # The file is rounded to a nanosecond a row, and so is each of its rows.
    for name, file in (
        ("total", "total"),
        ("min", "min"),
        ("average", "avg"),
        ("max", "max"),
    ):
        gap = (both[f"{name}_ns"] - both[f"{file}_time_ns"]).abs()
        assert (gap <= (both["count"] if name == "total" else 1)).all(), name
    assert ((both["ratio_percent"] - both["file_ratio"]).abs() < 0.001).all()


@pytest.mark.parametrize(
    "folder",
    [
        "torch_npu_level0",
        "torch_npu_level1_2rank",
        "torch_npu_level1_db",
        "torch_npu_level2_4rank/rank_0_ascend_pt",
    ],
)
def test_step_split_from_rows_equals_the_file(samples: Path, folder: str) -> None:
    profile = read(samples / folder)
    both = step_split(profile).join(profile.steps, on=["rank", "step"], suffix="_file")
    assert both.height == profile.steps.height > 0
    for name in ("computing", "communication", "communication_not_overlapped", "overlapped"):
        gap = (both[f"{name}_ns"] - both[f"{name}_ns_file"]).abs()
        # Each row is rounded to a nanosecond; measured are 20 at most.
        assert gap.max() <= 50, (name, gap.to_list())
    assert (both["free_ns"] - both["free_ns_file"]).abs().max() <= 50
