"""What commands print and write besides their result."""

import pytest

from jumar.cli.output import print_table


def test_table_without_rows_prints_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    print_table([])
    print_table([], ["op", "loss"])
    assert capsys.readouterr().out == ""


def test_empty_columns_are_left_out_unless_they_are_named(
    capsys: pytest.CaptureFixture[str],
) -> None:
    rows = [{"op": "aten.mm", "note": ""}, {"op": "x", "note": ""}]
    print_table(rows)
    print_table(rows, ["op", "note"])
    assert capsys.readouterr().out.splitlines() == [
        "op",
        "aten.mm",
        "x",
        "op       note",
        "aten.mm",
        "x",
    ]
