import itertools
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jumar.experiments.grid import parse_vary, run_name
from jumar.ground.errors import UserError

VALUES = st.lists(
    st.from_regex(r"[A-Za-z0-9._/:<> -]*[A-Za-z0-9]", fullmatch=True).map(str.strip),
    min_size=1,
    max_size=4,
    unique=True,
)


def test_every_combination_occurs_once_and_the_first_field_varies_slowest() -> None:
    assert parse_vary(["precision.mode=a,b", "threads.intra_op=1,2"]) == [
        ["precision.mode=a", "threads.intra_op=1"],
        ["precision.mode=a", "threads.intra_op=2"],
        ["precision.mode=b", "threads.intra_op=1"],
        ["precision.mode=b", "threads.intra_op=2"],
    ]


def test_no_varied_field_is_one_combination() -> None:
    assert parse_vary([]) == [[]]


def test_commas_in_brackets_do_not_separate_values() -> None:
    assert parse_vary(["schedule.steps=[1,2],[3,4],(5,6)"]) == [
        ["schedule.steps=[1,2]"],
        ["schedule.steps=[3,4]"],
        ["schedule.steps=(5,6)"],
    ]


@given(first=VALUES, second=VALUES)
def test_grid_is_the_product_of_the_values(first: list[str], second: list[str]) -> None:
    result = parse_vary([f"a.x={','.join(first)}", f"b={','.join(second)}"])
    assert result == [[f"a.x={x}", f"b={y}"] for x, y in itertools.product(first, second)]


@pytest.mark.parametrize(
    ("vary", "said"),
    [
        (["precision.mode"], "not of the form"),
        (["=a,b"], "not of the form"),
        (["precision.mode="], "empty value"),
        (["precision.mode=a,,b"], "empty value"),
        (["precision.mode=a,b,"], "empty value"),
        (["precision.mode=a,b,a"], "'a' twice"),
        (["seed=1", "seed=2"], "'seed' is varied twice"),
    ],
)
def test_mistake_is_named_with_the_option(vary: list[str], said: str) -> None:
    with pytest.raises(UserError, match=re.escape(said)) as caught:
        parse_vary(vary)
    assert caught.value.where == "--vary"
    assert caught.value.todo


def test_run_name_consists_of_its_assignments() -> None:
    name = run_name(["precision.mode=allow_mix_precision", "threads.intra_op=1"])
    assert name == "precision.mode=allow_mix_precision,threads.intra_op=1"
    assert run_name([]) == "run"


@given(st.lists(st.text(min_size=1, max_size=300), min_size=1, max_size=3))
def test_every_name_is_one_safe_path_component(assignments: list[str]) -> None:
    name = run_name(assignments)
    assert re.fullmatch(r"[A-Za-z0-9_=,+][A-Za-z0-9._=,+-]*", name)
    assert len(name) <= 120
    assert name == run_name(assignments)


def test_names_stay_distinct_after_replacing_or_truncating_characters() -> None:
    names = [
        run_name(["data.path=a/b"]),
        run_name(["data.path=a-b"]),
        run_name(["data.path=a b"]),
        run_name(["data.path=" + "x" * 200]),
        run_name(["data.path=" + "x" * 201]),
        run_name(["../up"]),
        run_name([".hidden"]),
        run_name(["hidden"]),
    ]
    assert len(set(names)) == len(names)
    assert not any("/" in name or name.startswith((".", "-")) for name in names)
