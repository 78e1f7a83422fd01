from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jumar.ground.errors import UserError
from jumar.training.cadence import Cadence, Due, check_lengths
from jumar.training.parallel.ranks import Ranks
from jumar.training.schedules import Constant, ScheduleSettings
from jumar.training.settings import CheckpointSettings, Plan, TrainingSettings
from tests.components import of_kind
from tests.training.small_tasks import small_plan


def plan(*, log: str = "", evaluate: str = "", save: str = "", keep_best: bool = True) -> Plan:
    return small_plan(
        training=TrainingSettings(log_every=log, evaluate_every=evaluate),
        checkpoints=CheckpointSettings(every=save, keep_best=keep_best),
    )


def due(
    cadence: Cadence, step: int, elapsed: float, *, signal: int = 0, limit: float | None = None
) -> Due:
    wish = cadence.moments(step, elapsed, signal=signal, limit=limit)
    return wish.agreed(Ranks().agreement(wish.SIZE))


@given(
    total=st.integers(1, 60),
    every=st.tuples(st.integers(1, 20), st.integers(1, 20), st.integers(1, 20)),
)
def test_everything_happens_at_its_interval_and_the_last_step_only_logs(
    total: int, every: tuple[int, int, int]
) -> None:
    """After the last step the trainer scores and saves by itself."""
    log, evaluate, save = every
    cadence = Cadence(plan(log=f"{log}it", evaluate=f"{evaluate}it", save=f"{save}it"), 10, total)
    for step in range(1, total + 1):
        now, last = due(cadence, step, step), step == total
        assert now.log == (last or step % log == 0)
        assert now.closes_window == (step % log == 0)
        assert now.evaluate == (not last and step % evaluate == 0)
        assert now.checkpoint == (not last and step % save == 0)
        assert not now.ends
        assert cadence.is_evaluation_due(step) == (step % evaluate == 0)


@given(
    total=st.integers(1, 60),
    step=st.integers(0, 60),
    evaluate=st.integers(1, 20),
    save=st.integers(1, 20),
    keep_best=st.booleans(),
)
def test_run_writes_no_more_checkpoints_than_predicted(
    total: int, step: int, evaluate: int, save: int, keep_best: bool
) -> None:
    chosen = plan(evaluate=f"{evaluate}it", save=f"{save}it", keep_best=keep_best)
    cadence = Cadence(chosen, 10, total)
    written = 1
    for later in range(step + 1, total):
        now = due(cadence, later, later)
        written += now.checkpoint or (now.evaluate and keep_best)
    most = cadence.max_checkpoints(min(step, total))
    assert most is not None
    assert most >= written


def test_epochs_and_shares_are_counted_in_steps() -> None:
    cadence = Cadence(plan(log="25%", evaluate="2ep", save="0.5ep"), 10, 40)
    steps = range(1, 40)
    assert [step for step in steps if due(cadence, step, step).log] == [10, 20, 30]
    assert [step for step in steps if due(cadence, step, step).evaluate] == [20]
    assert [step for step in steps if due(cadence, step, step).checkpoint] == list(range(5, 40, 5))


def test_timed_interval_starts_with_the_first_step_and_after_each_event() -> None:
    cadence = Cadence(plan(log="10s", save="1min"), 10, None)
    logged = [second for second in range(3, 100, 3) if due(cadence, second, float(second)).log]
    assert logged == [15, 27, 39, 51, 63, 75, 87, 99]
    saved = Cadence(plan(save="1min"), 10, None)
    assert [s for s in range(1, 130) if due(saved, s, float(s)).checkpoint] == [61, 121]


def test_timed_run_ends_when_its_time_is_up_without_further_events() -> None:
    cadence = Cadence(plan(evaluate="1it", save="1it"), 10, None)
    assert not due(cadence, 1, 9.9, limit=10).ends
    now = due(cadence, 2, 10.0, limit=10)
    assert (now.ends, now.log, now.evaluate, now.checkpoint) == (True, True, False, False)


def test_stop_is_logged_and_nothing_else_started() -> None:
    cadence = Cadence(plan(evaluate="1it", save="1it"), 10, 100)
    now = due(cadence, 3, 3.0, signal=15)
    assert (now.signal, now.log, now.evaluate, now.checkpoint) == (15, True, False, False)


def test_number_of_checkpoints_is_unknown_for_timed_intervals() -> None:
    assert Cadence(plan(save="1min"), 10, 100).max_checkpoints(0) is None
    assert Cadence(plan(evaluate="1min"), 10, 100).max_checkpoints(0) is None
    assert Cadence(plan(evaluate="1min", keep_best=False), 10, 100).max_checkpoints(0) == 1
    assert Cadence(plan(save="1it"), 10, None).max_checkpoints(0) is None


@pytest.mark.parametrize("field", ["training.log_every", "training.evaluate_every"])
def test_share_of_an_unknown_length_is_refused_with_its_field(field: str) -> None:
    name = field.removeprefix("training.").removesuffix("_every")
    with pytest.raises(UserError, match="10%") as found:
        Cadence(plan(**{name: "10%"}), 10, None)
    assert found.value.where == field


@pytest.mark.parametrize("duration", ["0it", "0ep", "0s"])
def test_run_of_zero_length_is_refused(duration: str) -> None:
    with pytest.raises(UserError, match="trains nothing"):
        check_lengths(small_plan(duration=duration), None if "s" in duration else 0)


@pytest.mark.parametrize("kind", sorted(ScheduleSettings.kinds))
def test_schedule_that_needs_the_length_of_a_timed_run_is_refused(kind: str) -> None:
    schedule = of_kind(ScheduleSettings, kind, every="10%", boundaries=("50%",), values=(1.0, 0.1))
    first = small_plan(duration="1h")
    chosen = replace(first.optimization["points"], schedule=schedule)
    on_the_clock = replace(first, optimization={"points": chosen})
    check_lengths(on_the_clock, 100)
    if kind == "constant":
        check_lengths(on_the_clock, None)
        return
    with pytest.raises(UserError, match=r"schedule\.[\w\[\]]+=\d+%"):
        check_lengths(on_the_clock, None)


def test_only_lengths_used_by_the_schedule_count() -> None:
    schedule = Constant(warmup="5%", warmup_kind="none")
    assert schedule.lengths() == []


@pytest.mark.parametrize(
    ("step", "keep_best", "most"),
    # One at the end, 3 or none of the evaluations, 2 of the intervals; fewer of a resumed run.
    [(0, True, 6), (0, False, 3), (3, True, 5), (4, False, 2), (8, True, 2), (10, True, 1)],
)
def test_checkpoints_at_the_end_intervals_and_evaluations_are_predicted(
    step: int, keep_best: bool, most: int
) -> None:
    chosen = plan(evaluate="3it", save="4it", keep_best=keep_best)
    assert Cadence(chosen, 10, 10).max_checkpoints(step) == most
    assert Cadence(plan(), 10, 10).max_checkpoints(step) == 1


def test_zero_interval_is_never_due() -> None:
    for nothing in ("0s", "0it", ""):
        cadence = Cadence(plan(log=nothing, evaluate=nothing, save=nothing), 10, 9)
        for step in range(1, 9):
            assert due(cadence, step, 60.0 * step) == Due(
                log=False,
                closes_window=False,
                evaluate=False,
                checkpoint=False,
                signal=0,
                ends=False,
            )
        assert due(cadence, 9, 600.0).log
        assert not cadence.is_evaluation_due(0)


def test_timed_intervals_are_due_independently() -> None:
    cadence = Cadence(plan(log="10s", evaluate="20s", save="15s"), 10, None)
    result = [
        (second, now.log, now.evaluate, now.checkpoint)
        for second in range(0, 46, 5)
        if (now := due(cadence, second + 1, float(second))).log or now.evaluate or now.checkpoint
    ]
    assert result == [
        (10, True, False, False),
        (15, False, False, True),
        (20, True, True, False),
        (30, True, False, True),
        (40, True, True, False),
        (45, False, False, True),
    ]


def test_settings_needing_a_known_length_are_named() -> None:
    with pytest.raises(UserError) as refused:
        Cadence(plan(save="10%"), 10, None)
    assert str(refused.value) == (
        "checkpoints.every: '10%' is a share of the whole run, whose number of steps is not known\n"
        "  Write it in steps or epochs, for instance 500it or 3ep."
    )
    with pytest.raises(UserError) as refused:
        check_lengths(small_plan(duration="0.0ep"), 5)
    assert str(refused.value) == (
        "training.duration: a run of 0.0ep trains nothing\n"
        "  For instance: 500it (steps), 3ep (epochs), 10% (of all steps), 90s, 30min or 2h."
    )
    on_the_clock = small_plan(duration="1h")
    schedule = of_kind(ScheduleSettings, "cosine", warmup="5%")
    chosen = replace(on_the_clock.optimization["points"], schedule=schedule)
    with pytest.raises(UserError) as refused:
        check_lengths(replace(on_the_clock, optimization={"points": chosen}), None)
    assert str(refused.value) == (
        "training.duration: a run of 1h has no known number of steps, but the learning rate of "
        "'points' depends on it (schedule.warmup=5%, schedule.decay_until=100%)\n"
        "  Set the duration in steps or epochs, or use schedule=constant."
    )
