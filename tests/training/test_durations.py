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
def test_what_is_no_duration_is_refused_with_examples(text: str) -> None:
    with pytest.raises(UserError) as caught:
        parse_duration(text, "training.duration")
    assert caught.value.where == "training.duration"
    assert repr(text) in caught.value.what
    assert "500it" in caught.value.todo
    assert "30min" in caught.value.todo


def test_a_fraction_of_a_step_is_refused() -> None:
    with pytest.raises(UserError, match="whole number of steps"):
        parse_duration("0.5it")


def test_steps_are_rounded_down_as_the_bert_scripts_do_but_never_to_none() -> None:
    assert parse_duration("10%").steps(7, 59) == 5
    assert parse_duration("1%").steps(7, 59) == 1
    assert parse_duration("0%").steps(7, 59) == 0


def test_a_share_of_an_unknown_whole_is_refused() -> None:
    with pytest.raises(UserError, match="not known"):
        parse_duration("10%").steps(100, None)
    assert parse_duration("2ep").steps(100, None) == 200


@given(
    amount=st.decimals(min_value=0, max_value=10**9, places=4, allow_nan=False),
    unit=st.sampled_from(["ep", "%", "s", "min", "h"]),
)
def test_text_of_a_duration_reads_back_as_the_same(amount: object, unit: str) -> None:
    duration = Duration(amount=Fraction(str(amount)), unit=unit)
    assert parse_duration(str(duration)) == duration


@given(
    every=st.one_of(st.none(), st.integers(0, 50)),
    total=st.integers(1, 200),
)
def test_due_after_every_n_steps_and_after_the_last_and_never_at_zero(
    every: int | None, total: int
) -> None:
    due = [finished for finished in range(total + 1) if is_due(finished, every, total)]
    expected = set(range(every, total + 1, every)) if every else set()
    assert due == sorted(expected | {total})


@pytest.mark.parametrize("text", [f"{10**20}ep", f"{2**53 + 1}it", f"{'9' * 5000}it", f"{10**12}h"])
def test_a_duration_that_cannot_be_counted_is_refused_with_one_that_can(text: str) -> None:
    with pytest.raises(UserError) as refused:
        parse_duration(text, "training.duration")
    assert len(str(refused.value)) < 300
    (longest,) = re.findall(r"At most (\S+)\.$", str(refused.value))
    assert parse_duration(longest).amount > 0


def test_epochs_that_together_have_too_many_steps_are_refused_with_those_that_fit() -> None:
    with pytest.raises(UserError) as refused:
        parse_duration(f"{10**9}ep").steps(10**9, None)
    longest = re.findall(r"At most (\S+) here", str(refused.value))[0]
    assert parse_duration(longest).steps(10**9, None) == 9007199 * 10**9
