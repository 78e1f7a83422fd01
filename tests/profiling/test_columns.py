"""Columns of views and the listings that are made of them."""

import polars as pl

from jumar.ground.text import Text
from jumar.profiling.columns import SHARE, SIZE, Column, column, milliseconds, ms, percent
from jumar.profiling.listing import Listing


def test_column_has_a_key_and_a_display_heading() -> None:
    wait = ms("host_wait", "等待")
    assert wait == Column(name="host_wait_ms", title=Text(en="host wait", zh="等待"), unit="ms")
    assert [wait.heading("en"), wait.heading("zh")] == ["host wait (ms)", "等待 (ms)"]
    assert percent("share", "占比", "part").heading("en") == "part (%)"
    assert column("op_type", "类型").heading("en") == "op type"
    assert column("size_mb", "量", unit="MB") == Column(
        name="size_mb", title=Text(en="size", zh="量"), unit="MB"
    )
    assert (SHARE.name, SIZE.heading("en")) == ("share_%", "size (MB)")


def test_milliseconds_are_derived_from_nanoseconds_if_present() -> None:
    table = pl.DataFrame({"a_ns": [1_234_567, 1], "b_ms": [5.5, 6.5], "b_ns": [1, 2]})

    def values(one: Column) -> list[float] | None:
        found = one.expression(table)
        return None if found is None else table.select(found).to_series().to_list()

    assert values(ms("a", "")) == [1.234567, 0.000001]
    assert values(ms("b", "")) == [5.5, 6.5]
    assert values(ms("c", "")) is None
    assert table.select(ms("a", "").expression(table)).columns == ["a_ms"]
    assert table.select(milliseconds(pl.col("a_ns") * 2)).to_series().to_list()[0] == 2.469134


def test_listing_shows_only_columns_with_values() -> None:
    columns = (column("n", "数"), ms("t", "时"), column("s", "字"), column("none", "无"))
    table = pl.DataFrame(
        {
            "s": ["abcdef", None],
            "n": [1, 2],
            "t_ms": [0.5, None],
            "none": pl.Series([None, None], dtype=pl.Int64),
            "hidden": [1, 2],
        }
    )
    listing = Listing(title=Text(en="T", zh="题"), columns=columns, table=table)
    assert [one.name for one in listing.visible_columns] == ["n", "t_ms", "s"]
    assert listing.numeric == [True, True, False]
    assert listing.headings("en") == ["n", "t (ms)", "s"]
    assert listing.headings("zh") == ["数", "时 (ms)", "字"]
    assert listing.cells(4) == [["1", "0.5", "abc…"], ["2", "", ""]]
    assert listing.cells(6, is_fixed=True) == [["1", "0.500", "abcdef"], ["2", "", ""]]
    assert listing.note is None
    assert "columns" not in repr(listing)
    assert "table" not in repr(listing)
    empty = Listing(title=listing.title, columns=columns, table=table.clear())
    assert [one.name for one in empty.visible_columns] == ["n", "t_ms", "s", "none"]
    one = Listing(title=listing.title, columns=columns, table=table[1:])
    assert [each.name for each in one.visible_columns] == ["n"]
