"""Read a run's JSON, any part of which may be missing, damaged or of another type."""

import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, cast

from jumar.ground.json_text import parse_json
from jumar.ground.text import counted


def read_object(path: Path, faults: list[str]) -> dict[str, Any]:
    """Read a JSON object; if a file is unreadable, add a fault and return an empty object."""
    try:
        data = parse_json(path.read_bytes())
    except FileNotFoundError:
        return {}
    except (OSError, ValueError):
        faults.append(f"{path.name} cannot be read")
        return {}
    if not isinstance(data, dict):
        faults.append(f"{path.name} is not a JSON object")
        return {}
    return cast("dict[str, Any]", data)


def cells(row: Any) -> tuple[str, ...]:
    """Return the items of a list as texts; nothing for any other value."""
    return tuple(str(cell) for cell in cast("list[Any]", row)) if isinstance(row, list) else ()


def read_records(
    path: Path, faults: list[str], *, has_ended: bool = False
) -> Iterator[dict[str, Any]]:
    """Yield the records of a JSON-lines file.

    Args:
        path: The file.
        faults: Collects a line about the records that cannot be read.
        has_ended: Whether the run has ended in order. Otherwise, an incomplete last line is not a
            fault: the run may be writing it, and a killed process can leave one.
    """
    damaged_lines: list[int] = []
    incomplete_line = last_step = 0
    try:
        with path.open("rb") as file:
            for number, line in enumerate(file, start=1):
                try:
                    record = parse_json(line)
                except ValueError:
                    if line.endswith(b"\n"):
                        damaged_lines.append(number)
                    else:
                        incomplete_line = number
                    continue
                if isinstance(record, dict):
                    fields = cast("dict[str, Any]", record)
                    last_step = whole_number(fields.get("step")) or last_step
                    yield fields
                else:
                    damaged_lines.append(number)
    except FileNotFoundError:
        return
    except OSError as error:
        faults.append(f"{path.name} cannot be read: {error.strerror}")
    if damaged_lines:
        position_text = "line" if len(damaged_lines) == 1 else "the first is line"
        lines = counted(len(damaged_lines), "damaged line")
        faults.append(f"{lines} in {path.name} ({position_text} {damaged_lines[0]})")
    if incomplete_line and has_ended:
        faults.append(
            f"an incomplete last line in {path.name} (line {incomplete_line}; the records end at "
            f"step {last_step})"
        )


def section(data: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return an object within an object; an empty one if it is missing."""
    value = data.get(name)
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def finite_number(value: Any) -> float | None:
    """Return a finite number; None for any other value, such as null, NaN and Infinity."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def whole_number(value: Any) -> int | None:
    """Return an integer; None for any other value."""
    number = finite_number(value)
    return None if number is None or number != int(number) else int(number)


def text_of(value: Any) -> str:
    """Return a text; an empty one for any other value."""
    return value if isinstance(value, str) else ""
