"""Rows of a table as a CSV file."""

import csv
import io
from collections.abc import Mapping, Sequence
from typing import Any


def as_csv(rows: Sequence[Mapping[str, Any]]) -> str:
    """A line per row below the names of the columns; without rows only `place`, which all have."""
    text = io.StringIO()
    writer = csv.DictWriter(text, fieldnames=list(rows[0]) if rows else ["place"])
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()
