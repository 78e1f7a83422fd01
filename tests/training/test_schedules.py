import dataclasses
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jumar.ground.errors import UserError
from jumar.settings import checked, from_json, override, to_json
from jumar.training.optimizers import Momentum
from jumar.training.schedules import (
    Constant,
    Cosine,
    CosineRestarts,
    Exponential,
    Piecewise,
    Polynomial,
    ScheduleSettings,
    learning_rate,
)
from jumar.training.settings import Optimization
from tests.components import of_kind


def rates(settings: ScheduleSettings, total: int = 40, epoch: int = 10) -> list[float]:
    return [
        learning_rate(settings, 2.0, step, steps_per_epoch=epoch, total_steps=total)
        for step in range(total + 5)
    ]


def test_constant_stays_at_the_base_rate() -> None:
    assert set(rates(Constant())) == {2.0}


def test_linear_warm_up_reaches_the_base_rate_at_its_last_step() -> None:
    found = rates(Constant(warmup="4it"))
    assert found[:5] == [0.5, 1.0, 1.5, 2.0, 2.0]


def test_warm_up_from_zero_reaches_the_base_rate_one_step_after_its_last() -> None:
    found = rates(Constant(warmup="4it", warmup_from_zero=True))
    assert found[:5] == [0.0, 0.5, 1.0, 1.5, 2.0]


def test_cosine_warm_up_rises_along_half_a_cosine() -> None:
    found = rates(Constant(warmup="4it", warmup_kind="cosine"))
    expected = [1.0 - math.cos(math.pi * k / 4) for k in (1, 2, 3, 4)]
    assert found[:4] == pytest.approx(expected, abs=1e-15)


def test_warm_up_none_ignores_its_length() -> None:
    found = rates(Constant(warmup="4it", warmup_kind="none"))
    assert set(found) == {2.0}


def test_decay_after_the_warm_up_starts_at_the_base_rate() -> None:
    found = rates(Polynomial(warmup="1ep", decay_from="warmup"))
    assert found[9] == found[10] == 2.0
    assert found[25] == 1.0
    assert found[40] == 0.0


def test_decay_from_the_start_runs_under_the_warm_up() -> None:
    found = rates(Polynomial(warmup="1ep", decay_from="start"))
    assert found[10] == 1.5
    assert found[20] == 1.0


def test_per_epoch_decay_is_constant_within_an_epoch() -> None:
    found = rates(Cosine(per_epoch=True))
    assert len(set(found[:40])) == 4
    assert found[10] == found[19] == 1.0 + math.cos(math.pi / 4)


def test_counting_the_current_step_ends_at_the_last_step() -> None:
    settings = Cosine(end=0.25, decay_counts_step=True)
    assert rates(settings)[39:] == [0.5] * 6
    assert rates(dataclasses.replace(settings, after_end=0.0))[41:] == [0.0] * 4


def test_boundaries_may_be_epochs_and_the_boundary_step_keeps_the_old_rate() -> None:
    settings = Piecewise(boundaries=("1ep", "50%"), values=(1.0, 0.5, 0.1))
    found = rates(settings)
    assert found[10] == 2.0
    assert found[11] == found[20] == 1.0
    assert found[21] == pytest.approx(0.2)


def test_boundaries_count_from_step_0_whatever_the_warm_up() -> None:
    settings = Piecewise(boundaries=("5it", "20it"), values=(1.0, 0.5, 0.1))
    warm = dataclasses.replace(settings, warmup="1ep")
    assert rates(warm)[10:] == rates(settings)[10:]


def test_staircase_falls_once_per_period() -> None:
    found = rates(Exponential(rate=0.5, every="1ep", staircase=True))
    assert found[9:11] == [2.0, 1.0]
    assert found[19:21] == [1.0, 0.5]


def test_restarts_of_equal_periods_return_to_the_base_rate() -> None:
    found = rates(CosineRestarts(every="1ep", period_factor=1.0))
    assert found[0] == found[10] == found[20] == 2.0
    assert found[5] == pytest.approx(1.0)


@given(
    kind=st.sampled_from([kind for kind in ScheduleSettings.kinds if kind != "step"]),
    warmup=st.integers(0, 60),
    warmup_kind=st.sampled_from(["none", "linear", "cosine"]),
    end=st.floats(0.0, 1.0),
    power=st.floats(0.1, 3.0),
    per_epoch=st.booleans(),
    decay_from=st.sampled_from(["start", "warmup"]),
    counts=st.booleans(),
    cycle=st.booleans(),
    total=st.integers(1, 50),
    epoch=st.integers(1, 20),
)
def test_every_rate_of_every_schedule_is_between_zero_and_the_base(
    kind: str,
    warmup: int,
    warmup_kind: str,
    end: float,
    power: float,
    per_epoch: bool,
    decay_from: str,
    counts: bool,
    cycle: bool,
    total: int,
    epoch: int,
) -> None:
    settings = of_kind(
        ScheduleSettings,
        kind,
        warmup=f"{warmup}it",
        warmup_kind=warmup_kind,
        end=end,
        power=power,
        per_epoch=per_epoch,
        decay_from=decay_from,
        decay_counts_step=counts,
        cycle=cycle,
    )
    for rate in rates(settings, total, epoch):
        assert 0.0 <= rate <= 2.0 * (1 + 1e-12)


@pytest.mark.parametrize(
    ("settings", "where"),
    [
        (Cosine(warmup="5"), "schedule.warmup"),
        (Cosine(warmup="30min"), "schedule.warmup"),
        (Cosine(decay_until="2h"), "schedule.decay_until"),
        (
            Piecewise(boundaries=("x",), values=(1.0, 0.1)),
            "schedule.boundaries[0]",
        ),
        (Piecewise(boundaries=("1ep",), values=(1.0,)), "schedule.values"),
        (Piecewise(), "schedule.values"),
    ],
)
def test_settings_that_do_not_fit_are_refused_before_a_run(
    settings: ScheduleSettings, where: str
) -> None:
    with pytest.raises(UserError) as caught:
        checked(settings)
    assert caught.value.where == where


def test_boundaries_that_do_not_ascend_are_refused() -> None:
    settings = Piecewise(boundaries=("3ep", "10%"), values=(1.0, 0.5, 0.1))
    with pytest.raises(UserError, match="are not ascending"):
        rates(settings)


def test_settings_come_from_the_command_line_and_go_through_json() -> None:
    plan = Optimization(optimizer=Momentum(), schedule=Cosine(warmup="3it"))
    changes = ["schedule=step", "schedule.boundaries=30ep,60ep", "schedule.values=1,0.1,0.01"]
    settings = override(plan, changes)
    assert settings.schedule == Piecewise(
        warmup="3it", boundaries=("30ep", "60ep"), values=(1.0, 0.1, 0.01)
    )
    assert from_json(plan, to_json(settings), where="recipe.json") == settings
