"""Collectives and links of torch_npu and of cluster analysis; facts about a capture."""

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import polars as pl

from jumar.ground.text import counted
from jumar.profiling.profile import COLLECTIVES_SCHEMA, LINKS_SCHEMA, Missing
from jumar.profiling.reading.events import load_object
from jumar.profiling.reading.part import Part
from jumar.profiling.reading.unreadable import Unreadable

_DEEPEST: Final = 6
_TIME: Final = "Communication Time Info"
_BANDWIDTH: Final = "Communication Bandwidth Info"
_LINK: Final = re.compile(r"^([0-9]{1,8})-([0-9]{1,8})$")
_DEVICE: Final[tuple[str, ...]] = ("device", "ai_core_num", "aiv_num", "aic_mhz")
_TOTAL: Final = "Total Op Info"

Path_ = tuple[str, ...]


def read_communication(path: Path, shown: str, kind: str) -> Part:
    """`communication.json`: each collective with how its time is spent."""
    unreadable = Unreadable(shown)
    times: list[dict[str, Any]] = []
    links: list[dict[str, Any]] = []
    without = 0
    for keys, entry in _entries(load_object(path), _TIME, ()):
        where = _place(keys)
        info, transports = entry.get(_TIME), entry.get(_BANDWIDTH)
        if _TOTAL in keys or where["name"] == _TOTAL or not isinstance(info, dict):
            continue
        start = _time(info, "Start Timestamp(us)", "us", where["name"], unreadable)
        spent = {
            f"{name}_ns": _time(info, f"{name.title()} Time(ms)", "ms", where["name"], unreadable)
            for name in ("elapse", "transit", "wait", "synchronization", "idle")
        }
        sent: list[dict[str, Any]] = []
        for transport, transfer in (transports if isinstance(transports, dict) else {}).items():
            row = _sent(transfer, where["name"], unreadable)
            if row["size_bytes"]:
                place = {name: where[name] for name in ("rank", "step", "name")}
                sent.append({**place, "transport": transport, **row})
        if spent["transit_ns"] == 0 and any(row["transit_ns"] for row in sent):
            spent = _reconciled(spent, sent)
            without += 1
        times.append({**where, "start_ns": start, **spent})
        links += sent
    missing = unreadable.missing()
    if without:
        what = (
            f"the transfer time of {counted(without, 'collective')}: Transit Time is 0 beside "
            "transfers; the times of Communication Bandwidth Info are used instead"
        )
        missing = (*missing, Missing(file=shown, what=what))
    return Part(
        file=shown,
        kind=kind,
        producer="torch_npu",
        collectives=pl.DataFrame(times, schema=_schema(COLLECTIVES_SCHEMA)),
        links=pl.DataFrame(links, schema=_schema(LINKS_SCHEMA)),
        missing=missing,
    )


def _reconciled(
    spent: dict[str, int | None], sent: Sequence[Mapping[str, Any]]
) -> dict[str, int | None]:
    """How a collective's time is spent if it transferred what its bandwidth table says.

    HCCS is a part of SDMA and transports work side by side, so the longest one counts, and at most
    the collective's own time. What was idle goes first, then what was waiting.
    """
    elapse = spent["elapse_ns"] or 0
    transit = min(max(row["transit_ns"] or 0 for row in sent), elapse)
    wait = min(spent["wait_ns"] or 0, elapse - transit)
    idle = min(spent["idle_ns"] or 0, elapse - transit - wait)
    return {**spent, "transit_ns": transit, "wait_ns": wait, "idle_ns": idle}


def read_matrix(path: Path, shown: str, kind: str) -> Part:
    """`communication_matrix.json`: the links between ranks.

    Its names are of groups of ops (`allreduce-top1`, `allreduce-middle`), one op of each.
    """
    unreadable = Unreadable(shown)
    links: list[dict[str, Any]] = []
    for keys, entry in _entries(load_object(path), "Transport Type", ()):
        ends = _LINK.match(keys[-1]) if keys else None
        where = _place(keys[:-1])
        if ends:
            links.append(
                {
                    "rank": where["rank"],
                    "step": where["step"],
                    "name": where["name"],
                    "transport": str(entry.get("Transport Type")),
                    "source": int(ends.group(1)),
                    "destination": int(ends.group(2)),
                    **_sent(entry, where["name"], unreadable),
                }
            )
    table = pl.DataFrame(links, schema=_schema(LINKS_SCHEMA))
    missing = unreadable.missing()
    return Part(file=shown, kind=kind, producer="torch_npu", links=table, missing=missing)


def read_profiler_info(path: Path, shown: str, kind: str) -> Part:
    """`profiler_info_<rank>.json`: the rank and the level."""
    tree = load_object(path)
    level = _dig(tree, "config", "experimental_config", "_profiler_level")
    rank = tree.get("rank_id")
    number = str(level).lower().removeprefix("level").strip("_") if level else ""
    return Part(
        file=shown,
        kind=kind,
        producer=f"torch_npu level {number}" if number else "torch_npu",
        rank=_rank(str(rank)) if str(rank).isdigit() else None,
    )


def read_msprof_info(path: Path, shown: str, kind: str) -> Part:
    """`info.json.<device>` of msprof: how many cores the device has, and their clock."""
    devices = load_object(path).get("DeviceInfo")
    rows = [
        {
            "device": _whole(device.get("id")),
            "ai_core_num": _whole(device.get("ai_core_num")),
            "aiv_num": _whole(device.get("aiv_num")),
            "aic_mhz": _whole(device.get("aic_frequency")),
        }
        for device in (devices if isinstance(devices, list) else [])
        if isinstance(device, dict)
    ]
    schema: dict[str, pl.DataType] = {name: pl.Int64() for name in _DEVICE}
    table = pl.DataFrame(rows, schema=schema)
    return Part(
        file=shown, kind=kind, producer="msprof", statistics={"device": table} if rows else {}
    )


def read_nothing(path: Path, shown: str, kind: str) -> Part:
    """A file that belongs to a profile but has no useful content."""
    del path
    return Part(file=shown, kind=kind)


def _entries(tree: Any, mark: str, keys: Path_) -> Iterator[tuple[Path_, dict[str, Any]]]:
    """Objects that contain `mark`, with the keys that lead to them."""
    if not isinstance(tree, dict) or len(keys) > _DEEPEST:
        return
    if mark in tree:
        yield keys, tree
        return
    for key, value in tree.items():
        yield from _entries(value, mark, (*keys, str(key)))


def _place(keys: Path_) -> dict[str, Any]:
    """Step, op, group and, in a cluster's file, rank, from the keys that lead there.

    `step50 > collective > op@group`, or `(0, 1) > step50 > op@group > 1` for a cluster.
    """
    step = next((_step(key) for key in keys if _step(key) is not None), None)
    named = next((key for key in reversed(keys) if "@" in key), keys[-1] if keys else "")
    rank = keys[-1] if keys and keys[-1].isascii() and keys[-1].isdigit() else ""
    name, _, group = named.partition("@")
    return {"rank": _rank(rank) if rank else None, "step": step, "name": name, "group": group}


def _step(key: str) -> int | None:
    digits = key.removeprefix("step")
    known = key.startswith("step") and digits.isascii() and digits.isdigit() and len(digits) < 19
    return int(digits) if known else None


def _rank(text: str) -> int | None:
    return int(text) if text.isascii() and len(text) < 9 else None


def _time(
    entry: Mapping[str, Any], field: str, unit: str, name: str, unreadable: Unreadable
) -> int | None:
    """A number of an op in nanoseconds, or a size in MB as bytes; None if there is none."""
    return unreadable.nanoseconds(entry.get(field), unit, lambda: f"op '{name[:60]}', {field}")


def _sent(transport: Any, name: str, unreadable: Unreadable) -> dict[str, Any]:
    """Size, time and bandwidth of a transfer; a MB here is 1,000,000 bytes."""
    if not isinstance(transport, dict):
        return {"size_bytes": None}
    return {
        "size_bytes": _time(transport, "Transit Size(MB)", "ms", name, unreadable),
        "transit_ns": _time(transport, "Transit Time(ms)", "ms", name, unreadable),
        "bandwidth_gb_s": _real(transport.get("Bandwidth(GB/s)")),
        "large_packet_ratio": _real(transport.get("Large Packet Ratio")),
    }


def _real(value: Any) -> float | None:
    try:
        return float(value) if isinstance(value, (str, int, float)) else None
    except (ValueError, OverflowError):
        return None


def _whole(value: Any) -> int | None:
    text = str(value)
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else None


def _dig(tree: Any, *keys: str) -> Any:
    for key in keys:
        tree = tree.get(key) if isinstance(tree, dict) else None
    return tree


def _schema(schema: Any) -> dict[str, pl.DataType]:
    return dict(schema)
