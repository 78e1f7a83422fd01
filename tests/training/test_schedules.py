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
    InverseTime,
    NaturalExponential,
    Piecewise,
    Polynomial,
    ScheduleSettings,
    learning_rate,
)
from jumar.training.settings import Optimization
from tests.components import accepted, of_kind


def rates(settings: ScheduleSettings, total: int = 40, epoch: int = 10) -> list[float]:
    return [
        learning_rate(settings, 2.0, step, steps_per_epoch=epoch, total_steps=total)
        for step in range(total + 5)
    ]


def test_constant_stays_at_the_base_rate() -> None:
    assert set(rates(Constant())) == {2.0}


def test_linear_warm_up_reaches_the_base_rate_at_its_last_step() -> None:
    result = rates(Constant(warmup="4it"))
    assert result[:5] == [0.5, 1.0, 1.5, 2.0, 2.0]


def test_warm_up_from_zero_reaches_the_base_rate_one_step_after_its_last() -> None:
    result = rates(Constant(warmup="4it", warmup_from_zero=True))
    assert result[:5] == [0.0, 0.5, 1.0, 1.5, 2.0]


def test_cosine_warm_up_rises_along_half_a_cosine() -> None:
    result = rates(Constant(warmup="4it", warmup_kind="cosine"))
    expected = [1.0 - math.cos(math.pi * k / 4) for k in (1, 2, 3, 4)]
    assert result[:4] == pytest.approx(expected, abs=1e-15)


def test_warm_up_none_ignores_its_length() -> None:
    result = rates(Constant(warmup="4it", warmup_kind="none"))
    assert set(result) == {2.0}


def test_decay_after_the_warm_up_starts_at_the_base_rate() -> None:
    result = rates(Polynomial(warmup="1ep", decay_from="warmup"))
    assert result[9] == result[10] == 2.0
    assert result[25] == 1.0
    assert result[40] == 0.0


def test_decay_from_the_start_runs_under_the_warm_up() -> None:
    result = rates(Polynomial(warmup="1ep", decay_from="start"))
    assert result[10] == 1.5
    assert result[20] == 1.0


def test_per_epoch_decay_is_constant_within_an_epoch() -> None:
    result = rates(Cosine(per_epoch=True))
    assert len(set(result[:40])) == 4
    assert result[10] == result[19] == 1.0 + math.cos(math.pi / 4)


def test_counting_the_current_step_ends_at_the_last_step() -> None:
    settings = Cosine(end=0.25, decay_counts_step=True)
    assert rates(settings)[39:] == [0.5] * 6
    assert rates(dataclasses.replace(settings, after_end=0.0))[41:] == [0.0] * 4


def test_boundaries_may_be_epochs_and_the_boundary_step_keeps_the_old_rate() -> None:
    settings = Piecewise(boundaries=("1ep", "50%"), values=(1.0, 0.5, 0.1))
    result = rates(settings)
    assert result[10] == 2.0
    assert result[11] == result[20] == 1.0
    assert result[21] == pytest.approx(0.2)


def test_boundaries_count_from_step_0_regardless_of_the_warm_up() -> None:
    settings = Piecewise(boundaries=("5it", "20it"), values=(1.0, 0.5, 0.1))
    warm = dataclasses.replace(settings, warmup="1ep")
    assert rates(warm)[10:] == rates(settings)[10:]


def test_staircase_falls_once_per_period() -> None:
    result = rates(Exponential(rate=0.5, every="1ep", staircase=True))
    assert result[9:11] == [2.0, 1.0]
    assert result[19:21] == [1.0, 0.5]


def test_restarts_of_equal_periods_return_to_the_base_rate() -> None:
    result = rates(CosineRestarts(every="1ep", period_factor=1.0))
    assert result[0] == result[10] == result[20] == 2.0
    assert result[5] == pytest.approx(1.0)


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
def test_conflicting_settings_are_refused_before_a_run(
    settings: ScheduleSettings, where: str
) -> None:
    with pytest.raises(UserError) as caught:
        checked(settings)
    assert caught.value.where == where


def test_boundaries_that_do_not_ascend_are_refused() -> None:
    settings = Piecewise(boundaries=("3ep", "10%"), values=(1.0, 0.5, 0.1))
    with pytest.raises(UserError, match="are not ascending"):
        rates(settings)


def test_settings_come_from_the_command_line_and_survive_json() -> None:
    plan = Optimization(optimizer=Momentum(), schedule=Cosine(warmup="3it"))
    changes = ["schedule=step", "schedule.boundaries=30ep,60ep", "schedule.values=1,0.1,0.01"]
    settings = override(plan, changes)
    assert settings.schedule == Piecewise(
        warmup="3it", boundaries=("30ep", "60ep"), values=(1.0, 0.1, 0.01)
    )
    assert from_json(plan, to_json(settings), where="recipe.json") == settings


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        (Exponential(rate=0.5, every="4it"), {0: 2.0, 3: 2 * 0.5**0.75, 4: 1.0, 10: 2 * 0.5**2.5}),
        (
            Exponential(rate=0.5, every="4it", staircase=True, per_epoch=True),
            {9: 2.0, 10: 0.5, 19: 0.5, 20: 0.0625},
        ),
        (Exponential(rate=0.5, every="4it", warmup="3it"), {2: 2.0, 3: 2.0, 7: 1.0}),
        (
            Exponential(rate=0.5, every="4it", warmup="3it", decay_from="start"),
            {2: 2.0, 3: 2 * 0.5**0.75, 8: 0.5},
        ),
        (Exponential(rate=0.5, every="0it"), {0: 2.0, 3: 0.25}),
        (
            NaturalExponential(rate=0.3, every="1ep"),
            {5: 2 * math.exp(-0.15), 10: 2 * math.exp(-0.3)},
        ),
        (InverseTime(rate=0.5, every="50%"), {10: 2 / 1.25, 20: 2 / 1.5, 40: 1.0}),
        (
            # Periods of 10, 20 and 40 steps, each half as high.
            CosineRestarts(every="1ep", end=0.2, period_factor=2.0, restart_factor=0.5),
            {0: 2.0, 5: 1.2, 10: 1.2, 20: 0.8, 30: 0.8, 40: 2 * (0.1 * (1 + 0.5**0.5) + 0.2)},
        ),
        (
            CosineRestarts(every="1ep", end=0.2, period_factor=1.0, restart_factor=0.5),
            {5: 1.2, 10: 1.2, 15: 0.8, 25: 0.6},
        ),
        (
            # Slopes of 10, 20 and 30 steps that end at 10, 20 and 30.
            Polynomial(cycle=True, decay_until="10it", end=0.1, power=2.0),
            {0: 2.0, 5: 0.65, 10: 0.2, 15: 0.3125, 20: 0.2, 25: 0.25},
        ),
        (
            Polynomial(decay_until="50%", end=0.1, power=2.0, after_end=0.05),
            {10: 0.65, 20: 0.2, 21: 0.1},
        ),
        (
            # As ResNeXt's table: its one entry past the end follows the cosine up again.
            Cosine(decay_until="20it", decay_counts_step=True, after_end=0.05),
            {19: 0.0, 20: 1 + math.cos(1.05 * math.pi), 21: 0.1},
        ),
        (Cosine(decay_until="20it", end=0.5, decay_counts_step=True), {9: 1.5, 19: 1.0, 20: 1.0}),
        (Cosine(decay_until="0it", end=0.3), {0: 0.6, 1: 0.6}),
        (Polynomial(cycle=True, decay_until="5it", warmup="8it", end=0.3), {7: 2.0, 8: 0.6}),
        (
            Piecewise(boundaries=("1ep", "15it", "75%"), values=(1.0, 0.5, 0.1, 0.2)),
            {10: 2.0, 11: 1.0, 15: 1.0, 16: 0.2, 30: 0.2, 31: 0.4},
        ),
        (
            Piecewise(boundaries=("5it",), values=(1.0, 0.5), warmup="3it", warmup_from_zero=True),
            {0: 0.0, 2: 4 / 3, 3: 2.0, 5: 2.0, 6: 1.0},
        ),
        (Cosine(), {0: 2.0, 1: 1 + math.cos(math.pi / 40), 39: 1 + math.cos(39 * math.pi / 40)}),
        (Polynomial(), {0: 2.0, 1: 1.95, 39: 0.05, 40: 0.0}),
        (Exponential(), {0: 2.0, 10: 1.88, 15: 2 * 0.94**1.5}),
        (CosineRestarts(), {0: 2.0, 5: 1.0, 10: 2.0, 20: 1.0, 30: 2.0}),
    ],
)
def test_rates_match_the_formulas(settings: ScheduleSettings, expected: dict[int, float]) -> None:
    result = rates(settings)
    assert {step: result[step] for step in expected} == pytest.approx(expected, abs=1e-12)


WARMUP = {
    "warmup": ("0it", None, None, False),
    "warmup_kind": ("linear", None, None, False),
    "warmup_from_zero": (False, None, None, False),
}
DECAYING = {
    **WARMUP,
    "decay_from": ("warmup", None, None, False),
    "per_epoch": (False, None, None, False),
}
ENDING = {
    **DECAYING,
    "decay_until": ("100%", None, None, False),
    "decay_counts_step": (False, None, None, False),
    "end": (0.0, 0.0, 1.0, False),
    "after_end": (None, 0.0, None, False),
}
PERIODIC = {**DECAYING, "every": ("1ep", None, None, False)}
RATED = {
    **PERIODIC,
    "rate": (0.94, 0, None, False),
    "staircase": (False, None, None, False),
}
FIELDS = {
    "constant": WARMUP,
    "cosine": ENDING,
    "polynomial": {
        **ENDING,
        "power": (1.0, 0.0, None, False),
        "cycle": (False, None, None, False),
    },
    "step": {
        **DECAYING,
        "boundaries": ((), None, None, False),
        "values": ((), None, None, False),
    },
    "exponential": RATED,
    "natural_exponential": RATED,
    "inverse_time": RATED,
    "cosine_restarts": {
        **PERIODIC,
        "end": (0.0, 0.0, 1.0, False),
        "period_factor": (2.0, 1.0, None, False),
        "restart_factor": (1.0, 0.0, None, False),
    },
}


def test_optimizer_kinds_have_the_expected_fields_defaults_and_limits() -> None:
    assert {kind: accepted(ScheduleSettings.kinds[kind]) for kind in FIELDS} == FIELDS


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            Cosine(warmup="30min"),
            "schedule.warmup: '30min' is a wall-clock time, but the learning rate follows the "
            "step\n  Write it in steps, epochs or percent, for instance 500it, 3ep or 10%.",
        ),
        (
            Piecewise(boundaries=("1ep", "2ep"), values=(1.0, 0.1)),
            "schedule.values: 2 boundaries need 3 values, not 2\n"
            "  For instance: schedule.boundaries=30ep,60ep schedule.values=1,0.1,0.01",
        ),
        (
            Piecewise(boundaries=("1ep", "2h"), values=(1.0, 0.1, 0.01)),
            "schedule.boundaries[1]: '2h' is a wall-clock time, but the learning rate follows the "
            "step\n  Write it in steps, epochs or percent, for instance 500it, 3ep or 10%.",
        ),
        (
            Piecewise(boundaries=("3ep", "10%"), values=(1.0, 0.5, 0.1)),
            "schedule.boundaries: the boundaries 3ep, 10% are steps 30, 4, which are not ascending"
            "\n  Sort them, or make the run longer if they are percentages.",
        ),
        (
            Piecewise(boundaries=("1ep", "10it"), values=(1.0, 0.5, 0.1)),
            "schedule.boundaries: the boundaries 1ep, 10it are steps 10, 10, which are not "
            "ascending\n  Sort them, or make the run longer if they are percentages.",
        ),
    ],
)
def test_infeasible_schedule_is_refused_with_a_remedy(
    settings: ScheduleSettings, message: str
) -> None:
    with pytest.raises(UserError) as refused:
        rates(settings)
    assert str(refused.value) == message
