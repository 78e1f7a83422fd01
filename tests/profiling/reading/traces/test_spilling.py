"""Columns of rows that come one at a time."""

import tempfile
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from jumar.ground.errors import UserError
from jumar.profiling.reading.traces import spilling
from jumar.profiling.reading.traces.spilling import SpillingTable, TextNumbers

LARGEST = (1 << 63) - 1


def test_texts_are_numbered_in_order_of_first_use() -> None:
    texts = TextNumbers()
    assert [texts.number(text) for text in ("", "a", "b", "a")] == [0, 1, 2, 1]
    found = texts.numbers("x", ["b", None, "c", 7, "c", True])
    assert (found.name, found.dtype, found.to_list()) == ("x", pl.UInt32, [2, None, 3, 4, 3, 5])
    assert texts.numbers("x", ["a", {}, []]).to_list() == [1, 6, 7]
    assert texts.column.to_list() == ["", "a", "b", "c", "7", "True", "{}", "[]"]
    assert texts.matching("^[ab7]") == [1, 2, 4]
    decoded = texts.texts_of(pl.Series("y", [3, None, 0], dtype=pl.UInt32))
    assert (decoded.name, decoded.to_list()) == ("y", ["c", None, ""])


def test_integers_are_limited_to_64_bits() -> None:
    table = SpillingTable({"a": "integer", "b": "digits"}, TextNumbers())
    cases: list[tuple[Any, int | None, int | None]] = [
        (LARGEST, LARGEST, LARGEST),
        (-LARGEST, -LARGEST, -LARGEST),
        (LARGEST + 1, None, None),
        (-LARGEST - 1, None, -LARGEST - 1),
        ("9" * 18, int("9" * 18), int("9" * 18)),
        (str(LARGEST), None, LARGEST),
        ("-5", None, -5),
        ("x", None, None),
        ("\ud800", None, None),
        (2.5, None, None),
        (True, None, None),
        (None, None, None),
    ]
    for value, _, _ in cases:
        table.add((value, value))
    frame = table.joined(table.frames())
    assert frame["a"].to_list() == [whole for _, whole, _ in cases]
    assert frame["b"].to_list() == [digits for _, _, digits in cases]
    regular = SpillingTable({"a": "integer"}, TextNumbers())
    regular.add((5,))
    regular.add((None,))
    assert regular.joined(regular.frames())["a"].to_list() == [5, None]


def test_table_without_rows_has_its_columns() -> None:
    table = SpillingTable({"a": "text", "b": "integer", "c": "digits"}, TextNumbers())
    assert len(table) == 0
    empty = table.joined(table.frames())
    assert dict(empty.schema) == {"a": pl.UInt32, "b": pl.Int64, "c": pl.Int64}
    assert list(table.spans(5)) == []


def open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def test_batch_is_packed_when_it_is_full_and_the_first_ones_stay_in_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(spilling, "ROWS_PER_BATCH", 2)
    monkeypatch.setattr(spilling, "BATCHES_IN_MEMORY", 2)
    before = open_files()
    table = SpillingTable({"name": "text", "start_ns": "integer"}, TextNumbers())
    for row in range(5):
        table.add((f"n{row % 2}", row))
    # Two full batches stay, the fifth row waits.
    assert (len(table), open_files()) == (5, before)
    for row in range(5, 9):
        table.add((f"n{row % 2}", row))
    assert (len(table), open_files()) == (9, before + 1)
    assert [frame.rows() for frame in table.frames("start_ns")] == [
        [(0,), (1,)],
        [(2,), (3,)],
        [(4,), (5,)],
        [(6,), (7,)],
        [(8,)],
    ]
    found = table.decoded(table.joined(table.frames()))
    assert found.rows() == [(f"n{row % 2}", row) for row in range(9)]
    table.close()
    assert open_files() == before


def test_spans_have_about_the_requested_rows_in_order_of_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(spilling, "ROWS_PER_BATCH", 16)
    table = SpillingTable({"start_ns": "integer"}, TextNumbers())
    for row in range(160):
        table.add((1000 - row,))
    spans = list(table.spans(40))
    # Samples are the first of each batch, 1000 to 856; of the ten, spans begin at the third, the
    # sixth and the eighth.
    assert [(span["start_ns"].max(), span["start_ns"].min()) for span in spans] == [
        *((887, 841), (935, 888), (967, 936), (1000, 968)),
    ]
    assert [span["start_ns"].is_sorted(descending=True) for span in spans] == [True] * 4
    assert sum(span.height for span in spans) == 160
    assert [span["row"].to_list() for span in spans] == [
        [1000 - start for start in span["start_ns"].to_list()] for span in spans
    ]


def test_full_disk_error_says_where_and_what_to_do(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(spilling, "BATCHES_IN_MEMORY", 0)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "missing"))
    table = SpillingTable({"name": "text"}, TextNumbers())
    table.add(("a",))
    with pytest.raises(UserError) as caught:
        table.pack()
    assert caught.value.what == (
        "cannot store the columns of a long trace: No such file or directory"
    )
    assert caught.value.where == str(tmp_path / "missing")
    assert caught.value.todo == (
        "Free up a twentieth of the unpacked trace's size, or use another folder: "
        "TMPDIR=/path jumar profile ..."
    )
