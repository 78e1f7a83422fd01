"""What was measured, on the disk after each measurement: `rows.jsonl` of the output folder."""

import json
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from jumar.ground.errors import UserError
from jumar.ground.files import write_text
from jumar.ground.paths import is_file, read_text
from jumar.training.run_directory import finite, read_json, write_json
from on_accelerator.measuring import Row

State = Literal["measured", "goes on", "missing", "failed"]


@dataclass(frozen=True, kw_only=True)
class Record:
    """What became of a measurement.

    Attributes:
        state: `goes on` if the next call continues it; `missing` if this machine lacks a package or
            data for it.
        reason: Why there are no rows.
        seconds: How long it took.
        at: When it ended, UTC.
    """

    part: str
    measurement: str
    state: State
    rows: Sequence[Row] = field(default_factory=list[Row])
    reason: str = ""
    seconds: float
    at: str


class Records:
    """The records in a folder.

    Raises:
        UserError: The folder holds those of another machine, or cannot be written.
    """

    def __init__(self, out: Path, machine: dict[str, Any]) -> None:
        self._file = out / "rows.jsonl"
        self.machine = self._same(out / "machine.json", machine)
        self._latest: dict[tuple[str, str], Record] = {}
        if is_file(self._file):
            # A last line without an end is what a machine that was switched off left.
            whole, _, rest = read_text(self._file).rpartition("\n")
            if rest:
                write_text(self._file, f"{whole}\n" if whole else "")
            for line in whole.splitlines():
                self._keep(Record(**json.loads(line)))

    def _same(self, file: Path, machine: dict[str, Any]) -> dict[str, Any]:
        """The machine of the folder: what differs between calls (the time) is that of the first."""
        if not is_file(file):
            write_json(file, machine)
            return machine
        stored = read_json(file)
        for name in ("device", "torch", "jumar", "small"):
            if stored.get(name) != machine[name]:
                raise UserError(
                    f"holds measurements with {name} {stored.get(name)}, not {machine[name]}",
                    where=str(file.parent),
                    todo="Choose another folder with --out.",
                )
        return stored

    def add(self, record: Record) -> None:
        """Keep a record, so that it survives whatever happens next."""
        self._keep(record)
        with self._file.open("a", encoding="utf-8") as file:
            file.write(json.dumps(finite(asdict(record))) + "\n")
            file.flush()
            os.fsync(file.fileno())

    def of(self, part: str, measurement: str) -> Record | None:
        """The latest record of a measurement."""
        return self._latest.get((part, measurement))

    def of_part(self, part: str) -> list[Record]:
        """The latest records of a part, in the order of their first measurement."""
        return [record for record in self._latest.values() if record.part == part]

    def _keep(self, record: Record) -> None:
        self._latest[record.part, record.measurement] = record
