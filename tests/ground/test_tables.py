"""Rows of text as tables."""

import csv
import io

from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from jumar.ground.tables import aligned_lines, csv_text, markdown_lines, markdown_text


def test_columns_are_as_wide_as_their_widest_cell_and_numbers_end_together() -> None:
    rows = [("class", "right %"), ("cat", "8"), ("butterfly", "97.5")]
    assert aligned_lines(rows, numeric=[1]) == [
        "class      right %",
        "cat              8",
        "butterfly     97.5",
    ]


def test_chinese_characters_take_two_columns_of_the_terminal() -> None:
    rows = [("类别", "数量", "end"), ("猫", "7", "x"), ("dog", "12345", "y")]
    assert aligned_lines(rows, numeric=[1]) == [
        "类别   数量  end",
        "猫        7  x",
        "dog   12345  y",
    ]


def test_lines_have_no_trailing_spaces_and_no_rows_give_no_lines() -> None:
    assert aligned_lines([("a", ""), ("bcd", "")]) == ["a", "bcd"]
    assert aligned_lines([]) == []


def test_given_widths_and_gap_replace_the_computed_ones() -> None:
    assert aligned_lines([("a", "b"), ("too long", "c")], gap="|", widths=[3, 2]) == [
        "a  |b",
        "too long|c",
    ]


@given(st.lists(st.tuples(*[st.text("ab猫é 1")] * 3), min_size=1))
def test_each_column_starts_at_the_same_place_in_all_lines(rows: list[tuple[str, ...]]) -> None:
    marked = [(first, second, f"|{third}") for first, second, third in rows]
    lines = aligned_lines(marked)
    starts = {cell_len(line[: line.index("|")]) for line in lines}
    widest = [max(cell_len(row[column]) for row in rows) for column in (0, 1)]
    assert starts == {sum(widest) + 4}


def test_markdown_cells_cannot_break_the_table_or_become_markup() -> None:
    assert markdown_lines([("op", "ms"), ("a|b\n<i>`x`*", "1")], numeric=[1]) == [
        "| op | ms |",
        "| --- | ---: |",
        "| a\\|b &lt;i>\\`x\\`\\* | 1 |",
    ]
    assert markdown_text("a \\ b & c~") == "a \\\\ b &amp; c\\~"


def test_csv_leaves_unknown_values_empty_and_defuses_formulas() -> None:
    text = csv_text([("name", "value"), ("=1+1", None), ("a,b", 0.5), ("-3", -3)])
    assert list(csv.reader(io.StringIO(text))) == [
        ["name", "value"],
        ["'=1+1", ""],
        ["a,b", "0.5"],
        ["-3", "-3"],
    ]
