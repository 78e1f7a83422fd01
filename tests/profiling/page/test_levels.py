"""Levels of boxes, from coarse to fine, by hand."""

from typing import Any

import polars as pl
import pytest

from jumar.profiling.page.levels import pack_level, zoom_levels


def _boxes(*rows: tuple[int, int, int, int], launch: bool = False) -> pl.DataFrame:
    """Lane, start, end, label; each was launched 5 before."""
    table = pl.DataFrame(rows, schema=["lane", "start", "end", "label"], orient="row")
    table = table.with_columns((pl.col("end") - pl.col("start")).alias("busy"))
    return table.with_columns(pl.lit(5).alias("launch")) if launch else table


# On lane 0 three short boxes, of which two begin within one stretch of six, and a long one.
_ROWS = ((0, 0, 1, 7), (0, 2, 5, 8), (0, 6, 8, 9), (0, 10, 30, 7), (2, 11, 12, 4))
_WHOLE = [
    [[0, 2, 4, 4], [1, 3, 2, 20], [7, 8, 9, 7], [], [], []],
    [[], [], [], [], [], []],
    [[11], [1], [4], [], [], []],
]


def test_short_boxes_are_merged_up_to_a_width_and_the_last_level_is_complete() -> None:
    coarse, fine = zoom_levels(_boxes(*_ROWS), span=6 * 1024, lanes=3, max_boxes=100)
    assert coarse == {
        "width": 6,
        "lanes": [
            [[0, 6, 4], [5, 2, 20], [8, 9, 7], [2, 1, 1], [4, 2, 20], []],
            [[], [], [], [], [], []],
            [[11], [1], [4], [1], [1], []],
        ],
    }
    assert fine == {"width": 0, "lanes": _WHOLE}


@pytest.mark.parametrize(
    ("span", "most", "widths"),
    [
        (6 * 1024, 9, [6, 0]),
        (6 * 1024, 8, [6]),
        (6 * 1024, 0, [6]),
        (1024, 100, [0]),
        (1023, 100, [0]),
        (36 * 1024, 100, [36, 6, 0]),
        (36 * 1024 - 1, 100, [35, 5, 0]),
    ],
)
def test_levels_end_when_complete_or_too_large(span: int, most: int, widths: list[int]) -> None:
    found = zoom_levels(_boxes(*_ROWS), span=span, lanes=3, max_boxes=most)
    assert [level["width"] for level in found] == widths


def test_inseparable_boxes_end_at_nanosecond_width() -> None:
    # Two that begin at one moment and take no time.
    rows = ((0, 5, 5, 1), (0, 5, 5, 2))
    found = zoom_levels(_boxes(*rows), span=6 * 1024, lanes=1, max_boxes=100)
    assert [level["width"] for level in found] == [6, 1]
    assert found[-1]["lanes"] == [[[5], [0], [1], [2], [0], []]]


def test_launches_are_listed_where_each_box_is_one_op() -> None:
    coarse, fine = zoom_levels(_boxes(*_ROWS, launch=True), span=6 * 1024, lanes=3, max_boxes=100)
    assert [lane[5] for lane in coarse["lanes"]] == [[], [], []]
    assert [lane[5] for lane in fine["lanes"]] == [[5] * 4, [], [5]]


def test_levels_have_counts_and_busy_times_for_merged_boxes() -> None:
    table = _boxes((1, 3, 9, 4)).with_columns(pl.lit(2).alias("count"))
    empty: list[Any] = [[], [], [], [], [], []]
    assert pack_level(table, width=8, lanes=2) == {
        "width": 8,
        "lanes": [empty, [[3], [6], [4], [2], [6], []]],
    }
    one = table.with_columns(pl.lit(1).alias("count"))
    assert pack_level(one, width=8, lanes=2)["lanes"][1] == [[3], [6], [4], [], [], []]
