"""Collectives and links of torch_npu and of cluster analysis; settings of a capture."""

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import polars as pl

from jumar.ground.text import counted
from jumar.profiling.profile import COLLECTIVES_SCHEMA, LINKS_SCHEMA, Missing
from jumar.profiling.reading.events import load_object
from jumar.profiling.reading.exact import whole_number
from jumar.profiling.reading.file_content import FileContent
from jumar.profiling.reading.unreadable import Unreadable

_MAX_LEVELS: Final = 6
_TIME_INFO: Final = "Communication Time Info"
_BANDWIDTH_INFO: Final = "Communication Bandwidth Info"
_LINK: Final = re.compile(r"^([0-9]{1,8})-([0-9]{1,8})$")
_MAX_RANK_DIGITS: Final = 8
_DEVICE_FIELDS: Final = {
    "device": "id",
    "ai_core_num": "ai_core_num",
    "aiv_num": "aiv_num",
    "aic_mhz": "aic_frequency",
}
_TOTAL: Final = "Total Op Info"

Keys = tuple[str, ...]


def read_communication(path: Path, display_name: str, kind: str) -> FileContent:
    """Read `communication.json`: how the time of each collective is spent."""
    unreadable = Unreadable(display_name)
    rows: list[dict[str, Any]] = []
    links: list[dict[str, Any]] = []
    without_transit = 0
    for keys, entry in _entries(load_object(path), _TIME_INFO, ()):
        identity = _identity(keys)
        info, transports = entry.get(_TIME_INFO), entry.get(_BANDWIDTH_INFO)
        if _TOTAL in keys or identity["name"] == _TOTAL or not isinstance(info, dict):
            continue
        start = _time(info, "Start Timestamp(us)", "us", identity["name"], unreadable)
        times = {
            f"{name}_ns": _time(
                info, f"{name.title()} Time(ms)", "ms", identity["name"], unreadable
            )
            for name in ("elapse", "transit", "wait", "synchronization", "idle")
        }
        transfers: list[dict[str, Any]] = []
        for transport, values in (transports if isinstance(transports, dict) else {}).items():
            row = _transfer(values, identity["name"], unreadable)
            if row["size_bytes"]:
                row_identity = {name: identity[name] for name in ("rank", "step", "name")}
                transfers.append({**row_identity, "transport": transport, **row})
        if times["transit_ns"] == 0 and any(row["transit_ns"] for row in transfers):
            times = _with_transfer_time(times, transfers)
            without_transit += 1
        rows.append({**identity, "start_ns": start, **times})
        links += transfers
    missing = unreadable.missing()
    if without_transit:
        what = (
            f"the transfer time of {counted(without_transit, 'collective')}: Transit Time is 0 "
            "despite transfers, so the times in Communication Bandwidth Info are used instead"
        )
        missing = (*missing, Missing(file=display_name, what=what))
    return FileContent(
        file=display_name,
        kind=kind,
        producer="torch_npu",
        collectives=pl.DataFrame(rows, schema=dict(COLLECTIVES_SCHEMA)),
        links=pl.DataFrame(links, schema=dict(LINKS_SCHEMA)),
        missing=missing,
    )


def _with_transfer_time(
    times: dict[str, int | None], transfers: Sequence[Mapping[str, Any]]
) -> dict[str, int | None]:
    """The times of a collective with the transfer time from its bandwidth table.

    HCCS is part of SDMA and transports run concurrently, so the longest one counts, up to the
    collective's own time. It is taken from the idle time first, then from the wait.
    """
    elapse = times["elapse_ns"] or 0
    transit = min(max(row["transit_ns"] or 0 for row in transfers), elapse)
    wait = min(times["wait_ns"] or 0, elapse - transit)
    idle = min(times["idle_ns"] or 0, elapse - transit - wait)
    return {**times, "transit_ns": transit, "wait_ns": wait, "idle_ns": idle}


def read_matrix(path: Path, display_name: str, kind: str) -> FileContent:
    """Read `communication_matrix.json`: the links between ranks.

    Each name represents one op of a group: `allreduce-top1`, `allreduce-middle`.
    """
    unreadable = Unreadable(display_name)
    links: list[dict[str, Any]] = []
    for keys, entry in _entries(load_object(path), "Transport Type", ()):
        link = _LINK.match(keys[-1]) if keys else None
        identity = _identity(keys[:-1])
        if link:
            links.append(
                {
                    **{name: identity[name] for name in ("rank", "step", "name")},
                    "transport": str(entry.get("Transport Type")),
                    "source": int(link.group(1)),
                    "destination": int(link.group(2)),
                    **_transfer(entry, identity["name"], unreadable),
                }
            )
    table = pl.DataFrame(links, schema=dict(LINKS_SCHEMA))
    missing = unreadable.missing()
    return FileContent(
        file=display_name, kind=kind, producer="torch_npu", links=table, missing=missing
    )


def read_profiler_info(path: Path, display_name: str, kind: str) -> FileContent:
    """Read `profiler_info_<rank>.json`: the rank and the profiler level."""
    tree = load_object(path)
    level = _nested(tree, "config", "experimental_config", "_profiler_level")
    rank = tree.get("rank_id")
    number = str(level).lower().removeprefix("level").strip("_") if level else ""
    return FileContent(
        file=display_name,
        kind=kind,
        producer=f"torch_npu level {number}" if number else "torch_npu",
        rank=whole_number(str(rank), _MAX_RANK_DIGITS),
    )


def read_msprof_info(path: Path, display_name: str, kind: str) -> FileContent:
    """Read msprof's `info.json.<device>`: number and clock of the device's cores."""
    devices = load_object(path).get("DeviceInfo")
    rows = [
        {
            column: whole_number(str(device.get(field)), 9)
            for column, field in _DEVICE_FIELDS.items()
        }
        for device in (devices if isinstance(devices, list) else [])
        if isinstance(device, dict)
    ]
    table = pl.DataFrame(rows, schema=dict.fromkeys(_DEVICE_FIELDS, pl.Int64()))
    return FileContent(
        file=display_name,
        kind=kind,
        producer="msprof",
        statistics={"device": table} if rows else {},
    )


def read_nothing(path: Path, display_name: str, kind: str) -> FileContent:
    """Accept a file that belongs to a profile but adds nothing to it."""
    del path
    return FileContent(file=display_name, kind=kind)


def _entries(tree: Any, marker: str, keys: Keys) -> Iterator[tuple[Keys, dict[str, Any]]]:
    """Objects that contain the key `marker`, with the path of keys to each."""
    if not isinstance(tree, dict) or len(keys) > _MAX_LEVELS:
        return
    if marker in tree:
        yield keys, tree
        return
    for key, value in tree.items():
        yield from _entries(value, marker, (*keys, str(key)))


def _identity(keys: Keys) -> dict[str, Any]:
    """Step, op, group and, in a cluster's file, rank, from the path of keys to an entry.

    `step50 > collective > op@group`, or `(0, 1) > step50 > op@group > 1` for a cluster.
    """
    step = next((number for key in keys if (number := _step(key)) is not None), None)
    op_key = next((key for key in reversed(keys) if "@" in key), keys[-1] if keys else "")
    rank = whole_number(keys[-1], _MAX_RANK_DIGITS) if keys else None
    name, _, group = op_key.partition("@")
    return {"rank": rank, "step": step, "name": name, "group": group}


def _step(key: str) -> int | None:
    return whole_number(key.removeprefix("step"), 18) if key.startswith("step") else None


def _time(
    entry: Mapping[str, Any], field: str, unit: str, name: str, unreadable: Unreadable
) -> int | None:
    """A time of an op in nanoseconds; as `ms`, a size in MB becomes bytes. None if missing."""
    return unreadable.nanoseconds(entry.get(field), unit, lambda: f"op '{name[:60]}', {field}")


def _transfer(transport: Any, name: str, unreadable: Unreadable) -> dict[str, Any]:
    """Size, time and bandwidth of a transfer; an MB here is 1,000,000 bytes."""
    if not isinstance(transport, dict):
        return {"size_bytes": None}
    return {
        "size_bytes": _time(transport, "Transit Size(MB)", "ms", name, unreadable),
        "transit_ns": _time(transport, "Transit Time(ms)", "ms", name, unreadable),
        "bandwidth_gb_s": _float(transport.get("Bandwidth(GB/s)")),
        "large_packet_ratio": _float(transport.get("Large Packet Ratio")),
    }


def _float(value: Any) -> float | None:
    try:
        return float(value) if isinstance(value, (str, int, float)) else None
    except (ValueError, OverflowError):
        return None


def _nested(tree: Any, *keys: str) -> Any:
    for key in keys:
        tree = tree.get(key) if isinstance(tree, dict) else None
    return tree
