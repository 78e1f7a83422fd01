"""Facts, bars of steps and of a comparison's parts, and advice as the page shows them."""

from typing import Any

import polars as pl
import pytest

from jumar.profiling.comparison import Edit, compare
from jumar.profiling.page import contents
from jumar.profiling.page.contents import (
    MAX_STEPS,
    PartBar,
    StepBar,
    advice_rows,
    comparison_tables,
    ms,
    part_bars,
    profile_facts,
    step_bars,
)
from jumar.profiling.profile import Profile
from jumar.profiling.texts import texts_in
from tests.profiling.generated import profile_of

_MS = 1_000_000


def _op(start: float, length: float, step: int = 0, **more: Any) -> dict[str, Any]:
    row = {"rank": 0, "step": step, "name": "a", "type": "Add", "core": "CUDA"}
    return row | {"start_ns": round(start * _MS), "duration_ns": round(length * _MS)} | more


_OPS = [
    _op(0, 4),
    _op(3, 2, core="COMMUNICATION"),
    _op(5, 1, core="CUDA_MEMCPY"),
    _op(7, 1),
    _op(10, 2, 1),
]


def test_times_have_three_decimals_and_zero_has_no_sign() -> None:
    assert [ms(value) for value in (1_234_567, -1, 0, 1_500)] == [
        "1.235",
        "0.000",
        "0.000",
        "0.002",
    ]
    assert ms(3 * _MS, 2) == "1.500"


def test_page_header_describes_what_was_read() -> None:
    calls = [{"rank": 0, "name": "x"}] * 1234
    told = profile_of(_OPS, kind="cuda", host=calls, chip="A100")
    values = [value for _, value in profile_facts(told, "en")]
    assert values == ["made", "test", "cuda", "A100", "5", "1,234", "0"]
    assert [value for _, value in profile_facts(profile_of(), "zh")] == [
        *("made", "test", "npu", texts_in("zh")["not_named"], "0", "0")
    ]
    ranks = profile_of([_op(0, 1, rank=rank) for rank in range(20)])
    assert profile_facts(ranks, "en")[-1][1] == ", ".join(map(str, range(16)))
    long = Profile(source="x" * 500, producer="p", kind="npu", ops=told.ops)
    assert len(profile_facts(long, "en")[0][1]) == 400


def test_steps_are_bars_whose_parts_are_percent_of_the_longest() -> None:
    first, second = step_bars(profile_of(_OPS, kind="cuda"), "en")
    # 8 ms with 5 of computing, 1 of communication and of copies, 1 idle; and 4 with 2 before.
    assert first == StepBar(
        name="step 0",
        total="8.000",
        segments=(
            ("computing", 0.0, 62.5, "5.000"),
            ("uncovered", 62.5, 12.5, "1.000"),
            ("copying", 75.0, 12.5, "1.000"),
            ("free", 87.5, 12.5, "1.000"),
        ),
    )
    assert second == StepBar(
        name="step 1",
        total="4.000",
        segments=(("computing", 0.0, 25.0, "2.000"), ("preparing", 25.0, 25.0, "2.000")),
    )
    with pytest.raises(AttributeError):
        first.name = "x"  # pyright: ignore[reportAttributeAccessIssue]
    third = profile_of([_op(0, 1), _op(1, 3, 1), _op(0, 1, rank=1)], kind="cuda")
    bars = step_bars(third, "en")
    assert [bar.name for bar in bars] == ["rank 0, step 0", "rank 0, step 1", "rank 1, step 0"]
    assert [bar.segments[0][1:3] for bar in bars] == [(0.0, 33.333), (0.0, 100.0), (0.0, 33.333)]
    assert step_bars(profile_of(), "en") == []


def test_at_most_sixty_steps_are_bars() -> None:
    assert MAX_STEPS == 60
    steps = [_op(step, 1, step) for step in range(61)]
    assert len(step_bars(profile_of(steps), "en")) == 60
    assert len(step_bars(profile_of(steps[:60]), "en")) == 60


def test_advice_is_truncated_to_displayable_lengths() -> None:
    table = pl.DataFrame({"a": ["x" * 501], "b": [["y" * 301, "z"]], "c": [1.5]})
    assert advice_rows(table) == [{"a": "x" * 499 + "…", "b": ["y" * 299 + "…", "z"], "c": 1.5}]


def _typed(*told: tuple[str, float], steps: int = 2) -> Profile:
    rows: list[dict[str, Any]] = []
    now = 0.0
    for step in range(steps):
        for kind, length in told:
            rows.append(_op(now, length, step, type=kind, input_types="FLOAT"))
            now += length
    return profile_of(rows, kind="cuda")


def test_comparison_parts_are_bars_from_the_centre() -> None:
    before, after = _typed(("Add", 9), ("Cast", 1)), _typed(("Add", 5), ("Cast", 2))
    bars = part_bars(compare(before, after), "en")
    kernel = "kernels, same dtypes and shapes"
    assert bars == [
        PartBar(
            title=kernel,
            before="9.000",
            after="5.000",
            delta="-4.000",
            start=0.0,
            width=50.0,
            faster=True,
        ),
        PartBar(
            title="casts",
            before="1.000",
            after="2.000",
            delta="+1.000",
            start=50,
            width=12.5,
            faster=False,
        ),
    ]
    same = part_bars(compare(before, before), "en")
    assert [(bar.delta, bar.start, bar.width, bar.faster) for bar in same] == [
        ("+0.000", 50, 0.0, False)
    ] * 2
    with pytest.raises(AttributeError):
        bars[0].width = 1  # pyright: ignore[reportAttributeAccessIssue]


def test_comparison_tables_start_with_edits_and_omit_parts_and_chains(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert contents.MAX_CHANGES == 300
    compared = compare(_typed(("Add", 9), ("Mul", 3)), _typed(("Add", 5), ("Mul", 2)))
    (alone,) = comparison_tables(compared, [], "en")
    assert (alone.title.en, alone.table.height) == ("Ops by change (ms per step)", 2)
    edits = [Edit(name="A", target_list="black-list", own_ns=1, casts_ns=1)]
    titles = [one.title.en for one in comparison_tables(compared, edits, "en")]
    assert titles == [
        "Edits of modify_mixlist (estimates, ms per step)",
        "Ops by change (ms per step)",
    ]
    monkeypatch.setattr(contents, "MAX_CHANGES", 1)
    (cut,) = comparison_tables(compared, [], "en")
    assert cut.table.height == 1
