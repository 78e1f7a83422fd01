"""Each nanosecond of a step is assigned to one op or to waiting, as checked moment by moment."""

import random
from typing import Any

import pytest

from jumar.profiling.comparison.own_times import Op, PreparedProfile, Step, prepare
from jumar.profiling.profile import Profile
from jumar.profiling.views.view import Impossible
from jumar.profiling.views.windows import step_windows
from tests.profiling.generated import profile_of

_GROUPS = {"COMMUNICATION": 1, "CUDA_MEMCPY": 2}


def _op(kind: str, start: int, length: int, step: int = 0, **more: Any) -> dict[str, Any]:
    row = {"rank": 0, "step": step, "stream": "1", "name": "n", "type": kind, "core": "AI_CORE"}
    return row | {"start_ns": start, "duration_ns": length} | more


def _random(seed: int) -> list[dict[str, Any]]:
    drawn = random.Random(seed)
    rows = []
    for place in range(drawn.randint(1, 14)):
        start = drawn.randint(0, 70)
        core = drawn.choice(["AI_CORE", "AI_CORE", "COMMUNICATION", "CUDA_MEMCPY"])
        more = {"stream": drawn.choice("12"), "task": drawn.randint(0, 3), "core": core}
        kind = drawn.choice(["Add", "Cast", "TransData"]) if core == "AI_CORE" else "x"
        rows.append(_op(f"{kind}{place}", start, drawn.randint(0, 18), start // 40) | more)
    return rows


def _by_moments(
    profile: Profile,
) -> list[tuple[int, dict[str, int], dict[str, int]]]:
    """Length, own times and waits by type of each step, from a look at every nanosecond."""
    last = step_windows(profile)["end_ns"].max()
    rows = [
        row
        for row in profile.ops.sort("start_ns", "stream", "task", maintain_order=True).to_dicts()
        if row["start_ns"] < last
    ]
    found: list[tuple[int, dict[str, int], dict[str, int]]] = []
    for begin, stop in step_windows(profile).select("begin_ns", "end_ns").rows():
        own: dict[str, int] = {}
        waits: dict[str, int] = {}
        idle = 0
        for at in range(begin, stop):
            running = [
                (_GROUPS.get(row["core"], 0), place)
                for place, row in enumerate(rows)
                if row["start_ns"] <= at < row["start_ns"] + row["duration_ns"]
            ]
            if running:
                kind = rows[min(running)[1]]["type"]
                own[kind] = own.get(kind, 0) + 1
            else:
                idle += 1
            following = at + 1 == stop or any(
                row["start_ns"] <= at + 1 < row["start_ns"] + row["duration_ns"] for row in rows
            )
            if idle and following:
                ending = [row["type"] for row in rows if row["start_ns"] == at + 1]
                name = ending[0] if ending else ""
                waits[name] = waits.get(name, 0) + idle
                idle = 0
        found.append((stop - begin, own, waits))
    return found


@pytest.mark.parametrize("seed", range(60))
def test_own_times_and_waits_match_a_moment_by_moment_count(seed: int) -> None:
    profile = profile_of(_random(seed))
    windows = step_windows(profile)
    if windows.is_empty():
        return
    side = prepare(profile)
    expected = _by_moments(profile)
    assert len(side.steps) == len(expected)
    for step, (lasted, own, waits) in zip(side.steps, expected, strict=True):
        sums: dict[str, int] = {}
        for which, length in zip(step.op_numbers.tolist(), step.own_ns.tolist(), strict=True):
            if length:
                kind = side.ops[which].type
                sums[kind] = sums.get(kind, 0) + length
        assert (step.duration_ns, sums, dict(step.waits)) == (lasted, own, waits)


def _rows(side: PreparedProfile, step: Step) -> list[tuple[str, int]]:
    return [
        (side.ops[which].type, length)
        for which, length in zip(step.op_numbers.tolist(), step.own_ns.tolist(), strict=True)
    ]


def test_ops_are_rows_of_the_steps_they_run_in() -> None:
    side = prepare(
        profile_of(
            [
                _op("Late", 95, 10, 1),
                _op("First", 0, 40),
                _op("Hidden", 10, 20),
                _op("Beside", 30, 20, stream="2"),
                _op("Sent", 45, 20, core="COMMUNICATION"),
                _op("Copied", 60, 10, core="CUDA_MEMCPY"),
                _op("Nothing", 75, 0),
                _op("Long", 80, 40),
                _op("Other", 0, 500, rank=1) | {"duration_ns": 5},
                _op("No start", 0, 5) | {"start_ns": None},
                _op("No end", 5, 5) | {"duration_ns": None},
            ],
            chip="C",
            kind="cuda",
        )
    )
    first, second = side.steps
    assert _rows(side, first) == [
        *(("First", 40), ("Hidden", 0), ("Beside", 10), ("Sent", 15), ("Copied", 5)),
        *(("Nothing", 0), ("Long", 15)),
    ]
    # What others hide wholly is a row of the step in which it began.
    assert _rows(side, second) == [("Long", 10), ("Late", 0)]
    assert (first.duration_ns, dict(first.waits)) == (95, {"Long": 10})
    assert dict(second.waits) == {}
    assert (side.source, side.kind, side.chip, side.rank) == ("made", "cuda", "C", 0)
    assert (side.has_types, side.has_dtypes) == (True, False)


def test_only_the_requested_number_of_steps_is_used() -> None:
    rows = [_op("A", 10 * step, 10, step) for step in range(4)]
    whole, two = prepare(profile_of(rows)), prepare(profile_of(rows), steps=2)
    assert [step.duration_ns for step in whole.steps] == [10] * 4
    assert [_rows(two, step) for step in two.steps] == [[("A", 10)]] * 2
    assert len(prepare(profile_of(rows), steps=1).steps) == 1
    with pytest.raises(AttributeError):
        whole.rank = 1  # pyright: ignore[reportAttributeAccessIssue]
    with pytest.raises(AttributeError):
        whole.steps[0].duration_ns = 1  # pyright: ignore[reportAttributeAccessIssue]
    assert "which" not in repr(whole.steps[0])
    assert "ops" not in repr(whole)
    assert "steps" not in repr(whole)


def test_ops_are_distinguished_by_everything_but_their_times() -> None:
    texts = {
        "module": "m",
        "input_shapes": "1",
        "input_types": "FLOAT",
        "output_shapes": "2",
        "output_types": "BF16",
        "input_formats": "ND",
        "output_formats": "NZ",
    }
    rows = [
        _op("Cast", 0, 1, **texts),
        _op("Cast", 1, 1, **texts, name="another"),
        _op("Cast", 2, 1),
        _op("", 3, 1, name="Add_12"),
        _op("", 4, 1, name="Add_13") | {"type": None},
        _op("", 5, 1, name="12"),
        _op("", 6, 1, name="Sub_1\n"),
        _op("", 7, 1, name="hcom_all_1", core=None),
        _op("x", 8, 1, name="nccl", core=None),
        _op("x", 9, 1, name="other", core=None),
    ]
    side = prepare(profile_of(rows))
    empty = ("",) * 7
    assert side.ops == (
        Op("cast", "Cast", *texts.values()),
        Op("cast", "Cast", *empty),
        Op("compute", "Add", *empty),
        Op("compute", "Add", *empty),
        Op("compute", "12", *empty),
        Op("compute", "Sub\n", *empty),
        Op("communication", "hcom_all", *empty),
        Op("communication", "x", *empty),
        Op("compute", "x", *empty),
    )
    assert side.steps[0].op_numbers.tolist() == [0, 0, 1, 2, 3, 4, 5, 6, 7, 8]
    assert (side.ops[0].dtypes, side.ops[0]._replace(output_types="").dtypes) == (
        "FLOAT|BF16",
        "FLOAT",
    )


def test_level_0_profile_has_neither_types_nor_dtypes() -> None:
    side = prepare(profile_of([_op("", 0, 5, name="Add_1") | {"type": None}]))
    assert (side.has_types, side.has_dtypes) == (False, False)
    known = prepare(profile_of([_op("Add", 0, 5, input_types="FLOAT")]))
    assert (known.has_types, known.has_dtypes) == (True, True)


def test_profile_without_times_cannot_be_compared() -> None:
    for ops, said in (
        ([], "needs ops with start times and durations"),
        ([_op("A", 0, 5) | {"start_ns": None}], "needs ops with start times and durations"),
        ([_op("A", 0, 5) | {"duration_ns": None}], "needs ops with start times and durations"),
        ([_op("A", 0, 0)], "needs a step with a duration"),
    ):
        with pytest.raises(Impossible) as told:
            prepare(profile_of(ops))
        assert str(told.value) == said
