"""The content of one file of a profile; `gathering.py` combines the files."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import polars as pl

from jumar.profiling.profile import DeviceKind, Missing


@dataclass(frozen=True, kw_only=True)
class FileContent:
    """The tables of one file.

    Args:
        file: The file, for messages.
        kind: Its recognised kind.
        producer: The tool that wrote it; empty if unknown.
        device: The kind of device the ops ran on; None if unknown.
        ops: Rows of the op table; missing columns are filled with nulls.
        steps: Rows of the step table.
        host: Host calls.
        collectives: Collectives, with how their time is spent.
        links: Transfers between ranks.
        statistics: Tables that are only displayed.
        missing: What could not be read.
        rank: The rank, if the file names it.
        chip: The accelerator, if the file names it.
    """

    file: str
    kind: str
    producer: str = ""
    device: DeviceKind | None = None
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
        display_name: Its name in messages: the path as the user wrote it.
        capture: The capture it belongs to; files of one capture describe the same steps.
        kind: Its kind, recognised by its content.
        problem: Why this file, or folder, cannot be read; empty if it can.
    """

    path: Path
    display_name: str
    capture: str
    kind: str
    problem: str = ""
