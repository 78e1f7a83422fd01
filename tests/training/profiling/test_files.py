"""What is said of a capture, where it is, and which events belong to it."""

from pathlib import Path

import pytest

from jumar.training.parallel.ranks import Ranks
from jumar.training.profiling.files import Kept, _within_steps, profile_folder
from jumar.training.profiling.shapes import Lacking


def line(
    *,
    ops: int = 2,
    step_ms: float = 12.34,
    plain: float | None = None,
    with_shapes: bool = True,
    lacking: Lacking | None = None,
) -> str:
    return Kept(
        folder=Path("runs/x/profile"),
        ops=ops,
        in_layers=0.874,
        step_ms=step_ms,
        plain_step_ms=plain,
        with_shapes=with_shapes,
        lacking=lacking or Lacking(),
    ).line()


def test_the_line_says_what_was_recorded_and_what_that_cost() -> None:
    head = "profile: runs/x/profile: {} op{}, 87 % of their time in layers, {} ms per recorded step"
    assert line(ops=1) == head.format(1, "", "12.3")
    assert line() == head.format(2, "s", "12.3")
    plain = " (100.0 ms without recording)"
    assert line(step_ms=114.9, plain=100.0) == head.format(2, "s", "114.9") + plain
    assert line(step_ms=116.4, plain=100.0) == (
        head.format(2, "s", "116.4") + plain + "\nrecording made steps 16 % longer; --no-shapes "
        "gives more accurate times, but no shapes or dtypes"
    )
    assert line(step_ms=116.4, plain=100.0, with_shapes=False) == (
        head.format(2, "s", "116.4") + plain
    )
    assert line(step_ms=50.0, plain=100.0) == head.format(2, "s", "50.0") + plain
    assert line(lacking=Lacking(steps=(2, 4), data_ops=1)) == (
        head.format(2, "s", "12.3") + "\nno shapes or dtypes in step 2, 4: its ops or inputs were "
        "not those of the steps recorded with shapes; --steps 1 records them with its own"
        "\nno shapes or dtypes for 1 op that prepared data, which may differ from batch to batch"
    )
    assert line(lacking=Lacking(data_ops=3)).endswith("for 3 ops that prepared data, which may "
        "differ from batch to batch")  # fmt: skip


@pytest.mark.parametrize(
    ("ranks", "folder"),
    [
        (Ranks(), "runs/x/profile"),
        (Ranks(rank=0, world=2, local_world=2), "runs/x/profile/rank-0"),
        (Ranks(rank=1, world=2, local_world=2), "runs/x/profile/rank-1"),
    ],
)
def test_each_of_several_ranks_has_a_folder(ranks: Ranks, folder: str) -> None:
    assert str(profile_folder(Path("runs/x"), ranks)) == folder


def test_what_came_before_the_first_step_is_left_out_but_for_names_of_threads() -> None:
    names = {"ph": "M", "name": "thread_name", "ts": 0}
    late = {"ph": "X", "name": "ProfilerStep#4", "ts": 30.0}
    first = {"ph": "X", "name": "ProfilerStep#3", "ts": 20.0}
    within, timeless = {"ph": "X", "name": "aten::add", "ts": 20.0}, {"name": "Record"}
    before = {"ph": "X", "name": "aten::mul", "ts": 19.9}
    events = [names, before, late, first, within, timeless]
    assert _within_steps(events) == [names, late, first, within, timeless]
