"""Databases whose writer was killed, and values that are no numbers."""

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from jumar.ground.errors import UserError
from jumar.profiling import read


def write(connection: sqlite3.Connection, rows: int) -> None:
    connection.execute("CREATE TABLE IF NOT EXISTS STEP_TIME (id, startNs, endNs)")
    connection.executemany(
        "INSERT INTO STEP_TIME VALUES (?, ?, ?)",
        [(row, row * 10, row * 10 + 5) for row in range(rows)],
    )
    connection.commit()


def test_rows_only_in_the_write_ahead_log_are_read_without_changing_files(
    tmp_path: Path,
) -> None:
    place = tmp_path / "capture"
    place.mkdir()
    with closing(sqlite3.connect(tmp_path / "analysis.db")) as connection:
        connection.execute("PRAGMA journal_mode=wal")
        connection.execute("PRAGMA wal_autocheckpoint=0")
        write(connection, 3000)
        # As a killed writer leaves it: closing would move the rows into the database.
        for file in tmp_path.glob("analysis.db*"):
            shutil.copyfile(file, place / file.name)
    before = {file.name: file.read_bytes() for file in place.iterdir()}
    assert read(place / "analysis.db").steps.height == 3000
    assert {file.name: file.read_bytes() for file in place.iterdir()} == before


@pytest.mark.parametrize("value", ["soon", b"\x01\x02"])
def test_non_numeric_value_is_named_with_table_row_and_column(
    tmp_path: Path, value: object
) -> None:
    with closing(sqlite3.connect(tmp_path / "analysis.db")) as connection:
        write(connection, 3)
        connection.execute("INSERT INTO STEP_TIME VALUES (9, ?, 7)", (value,))
        connection.commit()
    profile = read(tmp_path / "analysis.db")
    assert profile.steps["step"].to_list() == [0, 1, 2]
    assert profile.missing[-1].what.startswith(
        "1 number cannot be read: table STEP_TIME, row 4, column startNs: "
    )


def test_non_text_schema_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "msprof_1.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE CANN_API (startNs, endNs)")
        connection.commit()
    path.write_bytes(path.read_bytes().replace(b"CREATE TABLE", b"CRE\xffTE TABLE"))
    with pytest.raises(UserError, match="cannot be read as a database"):
        read(path)


def test_truncated_database_is_named(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "analysis.db")) as connection:
        write(connection, 5000)
    (tmp_path / "op_summary.csv").write_text(
        "Op Name,OP Type,Task Type,Task Start Time(us),Task Duration(us)\nA,B,CPU,1,2\n"
    )
    content = (tmp_path / "analysis.db").read_bytes()
    (tmp_path / "analysis.db").write_bytes(content[: len(content) // 2])
    said = [gap.what for gap in read(tmp_path).missing if gap.file.endswith("analysis.db")]
    assert ["malformed" in what for what in said] == [True]
