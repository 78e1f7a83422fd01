"""CSV files as columns of text."""

import warnings
from pathlib import Path

import polars as pl

from jumar.profiling.reading.tables.csv_text import read_text, scanned


def written(folder: Path, text: str) -> Path:
    path = folder / "x.csv"
    path.write_text(text)
    return path


def test_columns_are_text_categories_or_numbers(tmp_path: Path) -> None:
    path = written(tmp_path, 'a, b ,c\n1,x,0.5\n2,"y,z",N/A\n01,x,1e3\n')
    kinds = {"b": pl.Categorical(), "c": pl.Float64()}
    with scanned(path, "shown.csv") as text:
        assert text.names == ["a", " b ", "c"]
        found = text.columns(text.names, lambda name: kinds.get(name.strip()))
    assert [column.to_list() for column in found] == [
        *(["1", "2", "01"], ["x", "y,z", "x"], [0.5, None, 1000.0]),
    ]
    assert [column.dtype for column in found] == [pl.String, pl.Categorical, pl.Float64]
    assert text.unreadable.missing() == ()


def test_numeric_column_with_text_keeps_its_numbers_and_names_the_text(
    tmp_path: Path,
) -> None:
    path = written(tmp_path, "a,b\n1,2\nsoon, 4 \n\nNA,n/a\n-,x\n")
    with scanned(path, "shown.csv") as text:
        found = text.columns(["b", "a"], lambda _: pl.Float64())
    assert [(column.name, column.to_list()) for column in found] == [
        *(("b", [2.0, 4.0, None, None]), ("a", [1.0, None, None, None])),
    ]
    (gap,) = text.unreadable.missing()
    assert (
        gap.what == "2 numbers cannot be read: line 6, column 'b': 'x'; line 3, column 'a': 'soon'"
    )


def test_columns_of_a_table_are_numbers_or_nulls(tmp_path: Path) -> None:
    table = read_text(written(tmp_path, "a, b\n1,7\nx,8\n"), "shown.csv")
    assert table.names == ["a", " b"]
    assert table.frame.rows() == [("1", "7"), ("x", "8")]
    number = table.number("a", lambda column: column.cast(pl.Int64, strict=False))
    assert (number.name, number.to_list()) == ("a", [1, None])
    none = table.number("c", lambda column: column.cast(pl.Int64, strict=False))
    assert (none.name, none.dtype, none.to_list()) == ("c", pl.Int64, [None, None])
    table.count_lost(0, " b", 7)
    (gap,) = table.missing()
    assert gap.file == "shown.csv"
    assert gap.what == "2 numbers cannot be read: line 3, column 'a': 'x'; line 2, column 'b': '7'"


def test_lost_values_are_counted_at_every_occurrence(tmp_path: Path) -> None:
    table = read_text(written(tmp_path, "a\nx\nx\n1\n'N/A'\ny\n"), "shown.csv")
    values = pl.Series("a", [None, None, 1, None, None])
    assert table.checked(table.frame["a"], values) is values
    assert [gap.what for gap in table.missing()] == [
        "3 numbers cannot be read: line 2, column 'a': 'x'; line 3, column 'a': 'x'; "
        "line 6, column 'a': 'y'"
    ]
    whole = pl.Series("a", [1, 2, 3, 4, 5])
    assert table.checked(table.frame["a"], whole) is whole


def test_empty_file_has_no_columns_and_a_header_no_rows(tmp_path: Path) -> None:
    assert read_text(written(tmp_path, ""), "x").names == []
    header = read_text(written(tmp_path, "a,b\n"), "x")
    assert (header.names, header.frame.height) == (["a", "b"], 0)


def test_reading_emits_no_warnings(tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        read_text(written(tmp_path, "a,b\n1,2\n"), "x")
