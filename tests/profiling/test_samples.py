"""Real profiles are read whole, and their own sums come out of their rows."""

from pathlib import Path

import polars as pl
import pytest

from jumar.profiling import read
from jumar.profiling.profile import HOST_SCHEMA, OPS_SCHEMA, STEPS_SCHEMA


@pytest.fixture(scope="module")
def samples(shared: Path) -> Path:
    return shared / "data" / "msprof"


def test_two_ranks_of_torch_npu_are_two_ranks_with_all_kernels(samples: Path) -> None:
    profile = read(samples / "torch_npu_level1_2rank")
    assert profile.ranks == (0, 1)
    assert profile.ops.group_by("rank").len().sort("rank").rows() == [(0, 191), (1, 191)]
    assert profile.kind == "npu"
    assert dict(profile.ops.schema).items() >= dict(OPS_SCHEMA).items()
    assert profile.steps.schema == dict(STEPS_SCHEMA)
    assert profile.host.schema == dict(HOST_SCHEMA)


def test_times_keep_all_of_their_digits(samples: Path) -> None:
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
