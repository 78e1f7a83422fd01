"""A variable that makes the host wait for each op is a finding of the rank that it slows."""

from typing import Any

import polars as pl
import pytest

from jumar.profiling.advice.finding import Case
from jumar.profiling.advice.from_environment import blocked_launches
from jumar.profiling.profile import Profile
from jumar.profiling.views.view import Options
from tests.profiling.generated import profile_of


def _op(step: int, start: int, length: int) -> dict[str, Any]:
    row = {"rank": 0, "step": step, "name": "a", "core": "AI_CORE"}
    return row | {"start_ns": 1_000 * start, "duration_ns": 1_000 * length}


def _profile(*values: tuple[int | None, str, str]) -> Profile:
    """Two steps of a millisecond, each idle for 600 us, of which the loader takes 100."""
    schema = {"rank": pl.Int32(), "variable": pl.String(), "value": pl.String()}
    table = pl.DataFrame(list(values), schema=schema, orient="row")
    calls = [
        {"rank": 0, "layer": "op", "name": "DataLoader", "start_ns": start, "duration_ns": 100_000}
        for start in (300_000, 1_300_000)
    ]
    ops = [_op(0, 0, 200), _op(0, 800, 200), _op(1, 1_000, 200), _op(1, 1_800, 200)]
    steps = [{"rank": 0, "step": 1, "data_ns": 250_000}]
    return profile_of(ops, host=calls, steps=steps, statistics={"environment": table})


@pytest.mark.parametrize("name", ["ASCEND_LAUNCH_BLOCKING", "CUDA_LAUNCH_BLOCKING"])
def test_blocking_launches_own_all_idle_time_except_waiting_for_data(name: str) -> None:
    others = (name, "0"), ("TASK_QUEUE_ENABLE", "0")
    told = [(0, *others[0]), (1, name, "1"), (0, *others[1]), (None, name, "1"), (0, name, "1")]
    (claim,) = blocked_launches(Case(_profile(*told), Options()))
    # Of the second step Data Aug Bound has what lies before 1250, and the loader 1300 to 1400.
    assert [row[1:] for row in claim.spans.rows()] == [
        (200_000, 300_000),
        (400_000, 800_000),
        (1_250_000, 1_300_000),
        (1_400_000, 1_800_000),
    ]
    assert claim.values == {"free": "0.475 ms", "variable": name}
    assert [(line.en, line.zh) for line in claim.evidence] == [
        (f"{name}=1 was set during the recording", f"采集时设置了 {name}=1")
    ]
    assert claim.host_ns == 0


def test_other_values_variables_and_ranks_give_no_finding() -> None:
    for told in (
        (),
        ((0, "CUDA_LAUNCH_BLOCKING", "0"),),
        ((0, "TASK_QUEUE_ENABLE", "0"),),
        ((1, "CUDA_LAUNCH_BLOCKING", "1"),),
    ):
        assert list(blocked_launches(Case(_profile(*told), Options()))) == []
