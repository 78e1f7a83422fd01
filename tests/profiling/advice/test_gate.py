"""The gate measures what it limits, and what cannot be measured does not pass."""

import pytest

from jumar.ground.errors import UserError
from jumar.profiling.advice.gate import MEASURES, gate
from jumar.profiling.profile import OPS_SCHEMA, Profile, empty
from tests.profiling.generated import BUSY_NS, training


def test_each_measure_gives_the_known_number() -> None:
    told = training(
        steps=4,
        ranks=2,
        straggler=1,
        late_ns=1_000_000,
        casts=5,
        format_changes=5,
        ai_cpu_ns=500_000,
    )
    computing = BUSY_NS + 1_000_000 + 1_500_000 + 500_000
    both = 2 * computing + 1_000_000
    step = computing + 1_000_000 + 1_000_000
    expected = {
        "step-ms": step / 1e6,
        "aicpu-share": 100 * 1_000_000 / both,
        "cast-share": 100 * 2_000_000 / both,
        "format-share": 100 * 3_000_000 / both,
        "free-share": 0.0,
        "uncovered-share": 100 * 3_000_000 / (2 * step),
        "rank-spread": round(100 * 1_000_000 / computing, 2),
    }
    found = gate(told, dict.fromkeys(MEASURES, 50.0))
    assert {row.name: row.value for row in found} == pytest.approx(expected)
    assert all(row.kept for row in found)


def test_a_limit_that_is_met_exactly_is_kept_and_one_below_is_not() -> None:
    told = training(steps=3)
    assert gate(told, {"step-ms": BUSY_NS / 1e6})[0].kept
    assert not gate(told, {"step-ms": BUSY_NS / 1e6 - 0.001})[0].kept


@pytest.mark.parametrize("name", sorted(MEASURES))
def test_what_a_profile_cannot_tell_is_not_kept(name: str) -> None:
    nothing = Profile(source="x", producer="x", kind="cpu", ops=empty(OPS_SCHEMA))
    (row,) = gate(nothing, {name: 1e9})
    assert not row.kept
    assert row.needs.startswith("needs ")


@pytest.mark.parametrize("limit", [-1.0, float("nan"), float("inf")])
def test_a_limit_is_a_number(limit: float) -> None:
    with pytest.raises(UserError, match="not a valid limit"):
        gate(training(steps=1), {"step-ms": limit})
