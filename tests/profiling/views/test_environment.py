"""Environment variables of a capture, and the time lost to those that slow it down."""

import json
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from jumar.profiling import read
from jumar.profiling.advice.todo import todo
from jumar.profiling.profile import Profile
from jumar.profiling.reading.environment import read_metadata, variables
from jumar.profiling.reading.events import BrokenJson
from jumar.profiling.views import VIEWS, Impossible, Options
from jumar.profiling.views.environment import COSTLY, environment, recorded
from tests.profiling.generated import profile_of, training


def _with(**values: str) -> Profile:
    table = variables(values).with_columns(pl.lit(0, pl.Int32).alias("rank"))
    profile = training(steps=3, item_ns=700_000, loader_ns=2_000_000)
    return replace(profile, statistics={"environment": table})


def _rows(profile: Profile) -> list[tuple[object, ...]]:
    return VIEWS["environment"].make(profile, Options()).rows()


def test_costly_settings_come_first_with_the_reason_and_unset_variables_last() -> None:
    rows = _rows(_with(ACLNN_CACHE_LIMIT="", TASK_QUEUE_ENABLE="0", HCCL_RDMA_TC="132"))
    assert [row[1:3] for row in rows] == [
        ("TASK_QUEUE_ENABLE", "0"),
        ("HCCL_RDMA_TC", "132"),
        ("ACLNN_CACHE_LIMIT", ""),
    ]
    assert "the Python thread" in str(rows[0][3])
    assert rows[1][3] is rows[2][3] is None


def test_harmless_values_have_no_remark() -> None:
    rows = _rows(_with(TASK_QUEUE_ENABLE="2", ASCEND_GLOBAL_LOG_LEVEL="3"))
    assert [row[3] for row in rows] == [None, None]


def test_recorded_variables_are_sorted_by_cost() -> None:
    values = [
        *((1, "B", "x"), (None, "B", "x"), (0, "B", "x"), (0, "C", ""), (0, "A", "x")),
        *((0, "ASCEND_GLOBAL_LOG_LEVEL", "1"), (1, "ASCEND_GLOBAL_LOG_LEVEL", "0")),
        *((0, "CUDA_LAUNCH_BLOCKING", "1"), (1, "CUDA_LAUNCH_BLOCKING", "0")),
    ]
    schema = {"rank": pl.Int32(), "variable": pl.String(), "value": pl.String()}
    table = pl.DataFrame(values, schema=schema, orient="row")
    profile = profile_of(statistics={"environment": table})
    logs = "CANN logs at debug or info level, which slows down the host; 3 logs only errors"
    kernels = "the host waits for each kernel before launching the next; for debugging only"
    assert _rows(profile) == [
        (0, "ASCEND_GLOBAL_LOG_LEVEL", "1", logs),
        (1, "ASCEND_GLOBAL_LOG_LEVEL", "0", logs),
        (0, "CUDA_LAUNCH_BLOCKING", "1", kernels),
        (0, "A", "x", None),
        (0, "B", "x", None),
        (1, "B", "x", None),
        (1, "CUDA_LAUNCH_BLOCKING", "0", None),
        (0, "C", "", None),
    ]
    chinese = environment(profile, Options(language="zh"))["remark"].to_list()
    assert chinese[2] == COSTLY["CUDA_LAUNCH_BLOCKING"].why.zh
    with pytest.raises(Impossible) as told:
        recorded(profile_of(statistics={"environment": table.clear()}))
    assert str(told.value) == (
        "needs environment variables (profiler_metadata.json, META_DATA); "
        "torch_npu's profiler records them since CANN 8"
    )


def test_blocking_launches_explain_idle_time_but_not_waiting_for_data() -> None:
    profile = _with(ASCEND_LAUNCH_BLOCKING="1")
    won = {line.finding.name: line.saving_ns for line in todo(profile)}
    # The last step ends with its last op, before the host waits.
    assert won["launch-blocking"] == pytest.approx(700_000 * 2 / 3)
    assert won["data-stall"] == pytest.approx(2_000_000)
    assert "launch-blocking" not in {
        line.finding.name for line in todo(_with(ASCEND_LAUNCH_BLOCKING="0"))
    }


def test_without_variables_the_view_says_what_it_needs() -> None:
    with pytest.raises(Impossible, match="profiler_metadata"):
        VIEWS["environment"].make(training(steps=2), Options())


@pytest.mark.parametrize("folder", ["torch_npu_level1_2rank", "torch_npu_level1_db"])
def test_torch_npu_variables_are_read_from_file_and_database(shared: Path, folder: str) -> None:
    rows = _rows(read(shared / "data/msprof" / folder))
    names = {row[1] for row in rows if row[0] == 0}
    assert len(names) == 8
    assert {"ASCEND_LAUNCH_BLOCKING", "PYTORCH_NPU_ALLOC_CONF", "ACLNN_CACHE_LIMIT"} <= names
    assert {row[2] for row in rows} == {""}


@pytest.mark.parametrize("recorded", [None, [], "x", {"A": {"b": 1}}, {"A": None}, {}])
def test_metadata_in_another_format_is_not_an_error(tmp_path: Path, recorded: object) -> None:
    path = tmp_path / "profiler_metadata.json"
    path.write_text(json.dumps({"ENV_VARIABLES": recorded, "mine": 3}))
    part = read_metadata(path, path.name, "profiler_metadata")
    assert set(part.statistics) == (
        {"environment"} if recorded in ({"A": {"b": 1}}, {"A": None}) else set()
    )


def test_truncated_metadata_is_named(tmp_path: Path) -> None:
    path = tmp_path / "profiler_metadata.json"
    path.write_text('["ENV_VARIABLES"]')
    with pytest.raises(BrokenJson):
        read_metadata(path, path.name, "profiler_metadata")
