"""Tables as CSV."""

import csv
import io

from jumar.precision.csv_rows import as_csv


def test_rows_are_read_back_with_their_columns() -> None:
    rows = [{"place": "0", "op": "a, b"}, {"place": "1", "op": 'c"d\ne'}]
    assert list(csv.DictReader(io.StringIO(as_csv(rows), newline=""))) == rows


def test_a_table_without_rows_has_a_header() -> None:
    assert as_csv([]) == "place\r\n"
