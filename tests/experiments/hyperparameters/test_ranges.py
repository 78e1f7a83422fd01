"""What a search may choose from."""

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jumar.experiments.hyperparameters.ranges import Choices, Interval, own_values, parse_ranges
from jumar.ground.errors import UserError, unknown_name
from tests.experiments.run_files import SETTINGS, resolved


def resolve(assignments: Sequence[str]) -> dict[str, Any]:
    try:
        return resolved(assignments)
    except KeyError as error:
        raise unknown_name("field", str(error), SETTINGS) from None
    except ValueError as error:
        raise UserError(str(error)) from None


def test_intervals_and_choices_are_parsed() -> None:
    ranges = parse_ranges(
        ["optimizer.learning_rate=1e-4:1e-1:log", "threads.intra_op=1:8", "precision.mode=a,b"],
        resolve,
    )
    assert ranges == [
        Interval(field="optimizer.learning_rate", low=1e-4, high=0.1, is_log=True, is_whole=False),
        Interval(field="threads.intra_op", low=1, high=8, is_log=False, is_whole=True),
        Choices(field="precision.mode", values=("a", "b")),
    ]


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        ([], "the fields to search are missing"),
        (["optimizer.learning_rat=1:2"], "unknown field"),
        (["optimizer.learning_rat=1,2"], "unknown field"),
        (["optimizer.learning_rate=0.1:0.1"], "is empty"),
        (["optimizer.learning_rate=0.2:0.1"], "is empty"),
        (["optimizer.learning_rate=nan:0.1"], "is empty"),
        (["optimizer.learning_rate=0:0.1:log"], "cannot be logarithmic from 0"),
        (["optimizer.learning_rate=0.1:0.2:lin"], "unknown scale 'lin'"),
        (["optimizer.learning_rate=0.1:0.2,0.3"], "mixes an interval and single values"),
        (["optimizer.learning_rate=0.1,big"], "could not convert"),
        (["threads.intra_op=1:2.5"], "not an interval of integers"),
        (["threads.intra_op=1,two"], "invalid literal"),
        (["precision.mode=a:b"], "cannot have an interval"),
        (["precision.mode=a"], "has a single value"),
        (["precision.mode"], "not of the form"),
        (["threads.intra_op=1,2", "threads.intra_op=1:4"], "has two ranges"),
    ],
)
def test_mistakes_are_found_before_anything_starts(texts: list[str], message: str) -> None:
    with pytest.raises(UserError, match=message):
        parse_ranges(texts, resolve)


@given(st.floats(1e-6, 1e3), st.floats(1e-6, 1e3), st.floats(0, 1))
def test_drawn_number_is_short_and_stays_within_its_interval(
    low: float, high: float, place: float
) -> None:
    low, high = sorted((low, high))
    interval = Interval(field="a", low=low, high=high, is_log=False, is_whole=False)
    drawn = low + (high - low) * place
    value = float(interval.text_of(drawn))
    assert low <= value <= high
    assert value == pytest.approx(drawn, rel=1e-3)


def test_recipe_values_are_offered_only_if_all_are_in_range() -> None:
    ranges = parse_ranges(["optimizer.momentum=0.5:0.95", "threads.intra_op=1,2"], resolve)
    assert own_values(ranges, SETTINGS) == {"optimizer.momentum": 0.9, "threads.intra_op": "2"}
    ranges = parse_ranges(["optimizer.momentum=0.5:0.8"], resolve)
    assert own_values(ranges, SETTINGS) is None
