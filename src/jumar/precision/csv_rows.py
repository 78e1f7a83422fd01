"""Write rows of a table as CSV."""

import csv
import io
from collections.abc import Mapping, Sequence
from typing import Any


def as_csv(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return a header and a line per row; if there are no rows, the header is `place`."""
    text = io.StringIO()
    writer = csv.DictWriter(text, fieldnames=list(rows[0]) if rows else ["place"])
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()
