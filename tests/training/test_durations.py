import re
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jumar.ground.errors import UserError
from jumar.training.durations import Duration, is_due, parse_duration


@pytest.mark.parametrize(
    ("text", "steps"),
    [
        ("500it", 500),
        ("10_000it", 10000),
        ("0it", 0),
        ("3ep", 300),
        ("2.5 ep", 250),
        ("10%", 100),
        ("0.7%", 7),
        ("100%", 1000),
        (" 1ep ", 100),
    ],
)
def test_steps_epochs_and_percents_become_steps(text: str, steps: int) -> None:
    duration = parse_duration(text)
    assert duration.steps(100, 1000) == steps
    assert duration.seconds is None


@pytest.mark.parametrize(
    ("text", "seconds"), [("90s", 90.0), ("30min", 1800.0), ("2h", 7200.0), ("1.5h", 5400.0)]
)
def test_clock_times_become_seconds_and_have_no_steps(text: str, seconds: float) -> None:
    duration = parse_duration(text)
    assert duration.seconds == seconds
    assert duration.steps(100, 1000) is None


@pytest.mark.parametrize(
    "text",
    [
        "",
        "500",
        "ep",
        "3 epochs",
        "-1ep",
        "1e3it",
        "1,5ep",
        "3ep 2it",
        "nanit",
        "infh",
        "٣ep",
        "_5it",
    ],
)
def test_non_durations_are_refused_with_examples(text: str) -> None:
    with pytest.raises(UserError) as caught:
        parse_duration(text, "training.duration")
    assert caught.value.where == "training.duration"
    assert repr(text) in caught.value.what
    assert "500it" in caught.value.todo
    assert "30min" in caught.value.todo


def test_fraction_of_a_step_is_refused() -> None:
    with pytest.raises(UserError, match="whole number of steps"):
        parse_duration("0.5it")


def test_steps_are_rounded_down_as_in_the_bert_scripts_but_never_to_zero() -> None:
    assert parse_duration("10%").steps(7, 59) == 5
    assert parse_duration("1%").steps(7, 59) == 1
    assert parse_duration("0%").steps(7, 59) == 0


def test_share_of_an_unknown_length_is_refused() -> None:
    with pytest.raises(UserError, match="not known"):
        parse_duration("10%").steps(100, None)
    assert parse_duration("2ep").steps(100, None) == 200


@given(
    amount=st.decimals(min_value=0, max_value=10**9, places=4, allow_nan=False),
    unit=st.sampled_from(["ep", "%", "s", "min", "h"]),
)
def test_duration_round_trips_through_text(amount: object, unit: str) -> None:
    duration = Duration(amount=Fraction(str(amount)), unit=unit)
    assert parse_duration(str(duration)) == duration


@given(
    every=st.one_of(st.none(), st.integers(0, 50)),
    total=st.integers(1, 200),
)
def test_interval_is_due_every_n_steps_and_never_at_zero(every: int | None, total: int) -> None:
    due = [finished for finished in range(total + 1) if is_due(finished, every)]
    assert due == (list(range(every, total + 1, every)) if every else [])


@pytest.mark.parametrize(
    ("unit", "most"),
    [("it", 2**53), ("ep", 10**9), ("%", 10**9), ("s", 10**11), ("min", 10**9), ("h", 10**9)],
)
def test_each_unit_has_a_maximum_duration(unit: str, most: int) -> None:
    assert parse_duration(f"{most}{unit}") == Duration(amount=Fraction(most), unit=unit)
    with pytest.raises(UserError) as refused:
        parse_duration(f"{most + 1}{unit}", "training.duration")
    assert str(refused.value) == (
        f"training.duration: '{most + 1}{unit}' is too long\n  At most {most}{unit}."
    )


def test_numbers_are_limited_to_40_digits_also_in_messages() -> None:
    assert parse_duration("0" * 39 + "5it").steps(1, None) == 5
    with pytest.raises(UserError, match="is too long"):
        parse_duration("0" * 40 + "5it")
    for digits, shown in ((38, "9" * 38 + "it"), (39, "9" * 39 + "i..."), (41, "9" * 40 + "...")):
        with pytest.raises(UserError) as refused:
            parse_duration("9" * digits + "it")
        assert refused.value.what == f"'{shown}' is too long"


def test_steps_are_limited_to_exactly_representable_floats() -> None:
    assert parse_duration(f"{2**53}it").steps(1, None) == 2**53
    assert parse_duration("1000000000ep").steps(9_007_199, None) == 9_007_199 * 10**9
    with pytest.raises(UserError) as refused:
        parse_duration("1000000000ep").steps(9_007_200, None)
    assert str(refused.value) == (
        "'1000000000ep' is 9007200000000000 steps, more than can be counted\n"
        "  At most 999999917ep here."
    )
    with pytest.raises(UserError) as refused:
        parse_duration("2.5%").steps(10, None)
    assert str(refused.value) == (
        "'2.5%' is a share of the whole run, whose number of steps is not known\n"
        "  Write it in steps or epochs, for instance 500it or 3ep."
    )


def test_non_duration_text_is_refused_with_examples_of_each_unit() -> None:
    examples = "For instance: 500it (steps), 3ep (epochs), 10% (of all steps), 90s, 30min or 2h."
    with pytest.raises(UserError) as refused:
        parse_duration("5 weeks", "training.log_every")
    assert str(refused.value) == f"training.log_every: '5 weeks' is not a duration\n  {examples}"
    with pytest.raises(UserError) as refused:
        parse_duration("1.5it", "training.log_every")
    assert str(refused.value) == (
        f"training.log_every: '1.5it' is not a whole number of steps\n  {examples}"
    )
    assert parse_duration("1.0it") == Duration(amount=Fraction(1), unit="it")


@pytest.mark.parametrize("text", [f"{10**20}ep", f"{2**53 + 1}it", f"{'9' * 5000}it", f"{10**12}h"])
def test_uncountable_duration_is_refused_with_a_valid_one(text: str) -> None:
    with pytest.raises(UserError) as refused:
        parse_duration(text, "training.duration")
    assert len(str(refused.value)) < 300
    (longest,) = re.findall(r"At most (\S+)\.$", str(refused.value))
    assert parse_duration(longest).amount > 0


def test_too_many_epochs_are_refused_with_the_largest_valid_number() -> None:
    with pytest.raises(UserError) as refused:
        parse_duration(f"{10**9}ep").steps(10**9, None)
    longest = re.findall(r"At most (\S+) here", str(refused.value))[0]
    assert parse_duration(longest).steps(10**9, None) == 9007199 * 10**9
