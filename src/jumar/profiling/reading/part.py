"""The content of one file: pieces of a profile, combined by `gathering.py`."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import polars as pl

from jumar.profiling.profile import Kind, Missing


@dataclass(frozen=True, kw_only=True)
class Part:
    """The tables of one file.

    Args:
        file: The file, for messages.
        kind: Its recognised kind.
        producer: Who made it, empty if the file does not say.
        device: Where the ops ran; None in a table that does not say.
        ops: Rows of the op table; missing columns are filled with nulls.
        steps: Rows of the step table.
        host: Calls on the host.
        collectives: Communication ops.
        links: Transfers.
        statistics: Tables that are only shown.
        missing: What could not be read.
        rank: The rank that the file names.
        chip: The accelerator that the file names.
    """

    file: str
    kind: str
    producer: str = ""
    device: Kind | None = None
    ops: pl.DataFrame | None = None
    steps: pl.DataFrame | None = None
    host: pl.DataFrame | None = None
    collectives: pl.DataFrame | None = None
    links: pl.DataFrame | None = None
    statistics: Mapping[str, pl.DataFrame] = field(default_factory=lambda: {})
    missing: tuple[Missing, ...] = ()
    rank: int | None = None
    chip: str = ""


@dataclass(frozen=True, kw_only=True)
class Source:
    """A file to read.

    Args:
        path: Its path.
        shown: Its name in messages: the user's own path, or `archive.zip!member`.
        capture: The capture it belongs to: files of one capture describe the same steps.
        kind: Its kind, by its header.
    """

    path: Path
    shown: str
    capture: str
    kind: str
