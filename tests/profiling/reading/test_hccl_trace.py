"""Collectives of graph mode out of the tasks of their planes."""

import json
from pathlib import Path
from typing import Any

import pytest

from jumar.profiling.profile import Missing
from jumar.profiling.reading import hccl_trace
from jumar.profiling.reading.file_content import FileContent
from jumar.profiling.reading.hccl_trace import read_hccl_trace


def lane(tid: int, name: str) -> dict[str, Any]:
    return {"ph": "M", "name": "thread_name", "pid": 1, "tid": tid, "args": {"name": name}}


def slice_(tid: int, name: str, start: float, lasted: float, **args: Any) -> dict[str, Any]:
    times = {"ts": start, "dur": lasted}
    return {"ph": "X", "name": name, "pid": 1, "tid": tid, **times, "args": args}


def copy(start: float, lasted: float, size: object, target: object, **more: Any) -> dict[str, Any]:
    ranks = {"src rank": 0, "dst rank": target}
    return slice_(2, "Memcpy", start, lasted, **{"size(Byte)": size, **ranks, **more})


KERNELS = lane(1, "Communication Kernel")


def content(folder: Path, *events: dict[str, Any], cut: bool = False) -> FileContent:
    path = folder / "x.json"
    text = json.dumps([KERNELS, lane(2, "Plane 0"), *events])
    path.write_text(text[:-1] if cut else text)
    return read_hccl_trace(path, "shown.json", "hccl_trace")


def test_collective_time_is_transfer_waiting_or_idle(tmp_path: Path) -> None:
    hccs = {"link type": "HCCS", "transport type": "SDMA"}
    found = content(
        tmp_path,
        slice_(1, "Default/AllReduce-op5_2", 200, 10),
        slice_(1, "Broadcast_0", 100, 50),
        copy(90, 5, 7, 1, **hccs),
        # Two copies overlap: together 15 us. One reaches over the end of the collective.
        copy(100, 10, 1000, 1, **hccs),
        copy(105, 10, 3000, 1, **hccs),
        copy(145, 10, 500, 2, **{"link type": "ON_CHIP", "transport type": "LOCAL"}),
        # Of 20 us of waiting 5 are hidden behind a copy.
        slice_(3, "Notify_Wait", 110, 20),
        copy(150, 1, 9, 1, **hccs),
        copy(202, 0, 64, 3, **{"transport type": "PCIE-x"}),
    )
    assert (found.file, found.kind, found.producer, found.device) == (
        *("shown.json", "trace", "msprof", "npu"),
    )
    assert found.collectives is not None
    told = ("name", "start_ns", "elapse_ns", "transit_ns", "wait_ns", "synchronization_ns")
    assert found.collectives.select(*told, "idle_ns", "step", "group").rows() == [
        ("Broadcast_0", 100_000, 50_000, 20_000, 15_000, 0, 15_000, None, None),
        ("Default/AllReduce-op5_2", 200_000, 10_000, 0, 0, 0, 10_000, None, None),
    ]
    assert found.links is not None
    told = ("name", "transport", "source", "destination", "size_bytes", "transit_ns")
    assert found.links.select(*told, "bandwidth_gb_s").rows() == [
        ("Broadcast_0", "HCCS", 0, 1, 4000, 20_000, 0.2),
        ("Broadcast_0", "LOCAL", 0, 2, 500, 10_000, 0.05),
        ("Default/AllReduce-op5_2", "PCIE-x", 0, 3, 64, 0, None),
    ]
    assert found.ops is not None
    assert found.ops.to_dicts() == [
        {
            **dict.fromkeys(("device", "stream", "task", "wait_ns", "correlation", "launch_ns")),
            **{"name": name, "type": kind, "core": "COMMUNICATION"},
            **{"start_ns": start, "duration_ns": lasted},
        }
        for name, kind, start, lasted in (
            ("Broadcast_0", "Broadcast", 100_000, 50_000),
            ("Default/AllReduce-op5_2", "AllReduce", 200_000, 10_000),
        )
    ]
    assert found.missing == ()


@pytest.mark.parametrize(
    ("size", "target", "counts"),
    [
        ((1 << 50) - 1, (1 << 20) - 1, True),
        (1, 0, True),
        (1 << 50, 1, False),
        (0, 1, False),
        (-1, 1, False),
        (True, 1, False),
        ("7", 1, False),
        (5, 1 << 20, False),
        (5, (1 << 32) - 1, False),
        (5, -1, False),
        (5, None, False),
    ],
)
def test_copy_counts_if_bytes_and_ranks_are_plausible(
    tmp_path: Path, size: object, target: object, counts: bool
) -> None:
    found = content(tmp_path, slice_(1, "a", 0, 10), copy(1, 1, size, target))
    assert found.links is not None
    assert found.links.height == counts
    source = slice_(2, "Memcpy", 1, 1, **{"size(Byte)": 5, "src rank": "x", "dst rank": 1})
    links = content(tmp_path, slice_(1, "a", 0, 10), source).links
    assert links is not None
    assert links.is_empty()


@pytest.mark.parametrize("link", ["HCCS", "PCIE", "RDMA", "SIO"])
def test_known_links_keep_their_name(tmp_path: Path, link: str) -> None:
    kinds = {"link type": link, "transport type": "other"}
    links = content(tmp_path, slice_(1, "a", 0, 10), copy(1, 1, 5, 1, **kinds)).links
    assert links is not None
    assert links["transport"].to_list() == [link]


def test_unusable_parts_of_a_trace_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = slice_(1, "a", 0, 10)
    bad = slice_(1, "b", -1, -3)
    found = content(tmp_path, whole, bad, cut=True)
    assert found.collectives is not None
    assert found.collectives["name"].to_list() == ["a"]
    assert found.missing == (
        Missing(file="shown.json", what="1 number cannot be read: event 'b', dur: '-3'"),
        Missing(file="shown.json", what="the end: truncated"),
    )
    # Two events name the lanes.
    monkeypatch.setattr(hccl_trace, "_MAX_EVENTS", 4)
    assert content(tmp_path, whole).missing == ()
    more = content(tmp_path, whole, slice_(1, "c", 20, 1), slice_(1, "d", 30, 1))
    assert more.collectives is not None
    assert more.collectives["name"].to_list() == ["a", "c"]
    assert more.missing == (
        Missing(file="shown.json", what="the end: only the first 4 events were read"),
    )
