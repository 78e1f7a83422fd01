"""What the host does while the device is idle, as advice: every number and every line of it."""

from typing import Any

import polars as pl
import pytest

from jumar.profiling.advice.finding import FINDINGS, Case
from jumar.profiling.advice.from_host import data_stalls, memory_copies, unexplained
from jumar.profiling.advice.todo import todo_table
from jumar.profiling.profile import Profile
from jumar.profiling.views.view import Options
from tests.profiling.generated import profile_of

_US = 1000


def _op(step: int, start: int, length: int, core: str = "CUDA", **more: Any) -> dict[str, Any]:
    row = {"rank": 0, "step": step, "name": "a", "type": "mm", "core": core}
    return row | {"start_ns": start * _US, "duration_ns": length * _US} | more


def _call(layer: str, name: str, start: int, length: int, **more: Any) -> dict[str, Any]:
    row = {"rank": 0, "layer": layer, "name": name}
    return row | {"start_ns": start * _US, "duration_ns": length * _US} | more


_KERNELS = [_op(0, 0, 100), _op(0, 900, 100), _op(1, 1_000, 100), _op(1, 1_900, 100)]
_BESIDE = [
    _op(0, 860, 60, "COMMUNICATION"),
    _op(0, 450, 50, "CUDA_MEMCPY"),
    _op(0, 0, 20, "CUDA_MEMCPY"),
]
_CALLS = [
    _call("op", "enumerate(DataLoader)#x.__next__", 100, 100),
    _call("op", "aten::item", 850, 100),
    _call("op", "aten::item", 1_300, 90),
    _call("mark", "gc", 1_450, 50),
    _call("runtime", "cudaMemcpy", 1_500, 50),
    _call("runtime", "cudaLaunchKernel", 200, 30),
    _call("runtime", "cudaLaunchKernel", 250, 10),
    _call("runtime", "cudaLaunchKernel", 1_600, 60),
    _call("python", "resize", 300, 100),
]


def _list(profile: Profile, **more: Any) -> list[tuple[Any, ...]]:
    table = todo_table(profile, Options(**more))
    return table.select("key", "win_ms", "share_%", "what", "evidence").rows()


def test_every_cause_has_a_line_with_its_cost_per_step() -> None:
    after = _call("op", "aten::item", 2_500, 400)
    profile = profile_of([*_KERNELS, *_BESIDE], kind="cuda", host=[*_CALLS, after])
    # Two steps of a millisecond, idle from 100 to 860 and from 1100 to 1900.
    by_key = {row[0]: row[1:] for row in _list(profile)}
    assert list(by_key) == [
        *("free", "data-stall", "blocking-call", "launching", "host-work"),
        *("pageable-copy", "collector", "memory-copies", "uncovered-communication"),
    ]
    assert by_key == {
        "free": (
            *(0.505, 50.5, "Device idle, cause unknown: 0.505 ms per step"),
            ["no host calls were recorded at these times"],
        ),
        "data-stall": (
            *(0.05, 5.0, "Waiting for data: the device is idle 0.050 ms per step"),
            ["0.5 calls per step, the longest 0.100 ms; the device is idle for 0.050 ms of it"],
        ),
        "blocking-call": (
            *(0.05, 5.0, "The host spends 0.095 ms per step in aten::item"),
            [
                "1 call per step, the longest 0.100 ms; the device is idle for 0.050 ms of it",
                "0.020 ms of it overlaps uncovered communication and is counted there",
            ],
        ),
        "launching": (
            *(0.05, 5.0),
            "Host-bound: ops are launched too slowly, and the device is idle 0.050 ms per step",
            ["1 gap per step: median 0.050 ms of it in each, at most 0.060 ms"],
        ),
        "host-work": (
            *(0.05, 5.0, "The device is idle 0.050 ms per step while the host is in resize"),
            ["0.5 calls per step, the longest 0.100 ms; the device is idle for 0.050 ms of it"],
        ),
        "pageable-copy": (
            *(0.025, 2.5),
            "The host is blocked 0.025 ms per step in synchronous copies",
            ["0.5 calls per step, the longest 0.050 ms; the device is idle for 0.025 ms of it"],
        ),
        "collector": (
            *(0.025, 2.5, "Garbage collection takes 0.025 ms of host time per step"),
            ["0.5 calls per step, the longest 0.050 ms; the device is idle for 0.025 ms of it"],
        ),
        "memory-copies": (
            *(0.025, 2.5, "Uncovered memory copies: 0.025 ms per step"),
            [
                "0.035 ms of memory copies per step, of which 0.025 ms with the device "
                "otherwise idle"
            ],
        ),
        "uncovered-communication": (
            *(0.02, 2.0, "Uncovered communication: 0.020 ms per step"),
            [
                "0.030 ms of communication per step, of which 0.020 ms uncovered (waiting is "
                "counted separately)"
            ],
        ),
    }


def test_same_lines_are_in_chinese() -> None:
    profile = profile_of([*_KERNELS, *_BESIDE], kind="cuda", host=_CALLS)
    lines = {row[0]: (row[3], *row[4]) for row in _list(profile, language="zh")}
    once = "每迭代 0.5 次调用，最长 0.100 ms；其间设备空闲 0.050 ms"
    assert lines == {
        "free": ("设备空闲，原因未知：每迭代 0.505 ms", "这些时段没有记录到 host 侧调用"),
        "data-stall": ("等待数据：每迭代设备空闲 0.050 ms", once),
        "blocking-call": (
            "host 每迭代在 aten::item 中阻塞 0.095 ms",
            "每迭代 1 次调用，最长 0.100 ms；其间设备空闲 0.050 ms",
            "其中 0.020 ms 与未掩盖的通信重叠，已计入通信",
        ),
        "launching": (
            "host 下发过慢：其间设备每迭代空闲 0.050 ms",
            "每迭代 1 个间隙：各占其中的中位数 0.050 ms，最多 0.060 ms",
        ),
        "host-work": ("host 执行 resize 期间，设备每迭代空闲 0.050 ms", once),
        "pageable-copy": (
            "host 每迭代在同步拷贝中阻塞 0.025 ms",
            "每迭代 0.5 次调用，最长 0.050 ms；其间设备空闲 0.025 ms",
        ),
        "collector": (
            "垃圾回收每迭代占用 host 0.025 ms",
            "每迭代 0.5 次调用，最长 0.050 ms；其间设备空闲 0.025 ms",
        ),
        "memory-copies": (
            "未被计算掩盖的内存拷贝：每迭代 0.025 ms",
            "每迭代内存拷贝 0.035 ms，其中 0.025 ms 期间设备没有其他工作",
        ),
        "uncovered-communication": (
            "未被计算掩盖的通信：每迭代 0.020 ms",
            "每迭代通信 0.030 ms，其中未掩盖 0.020 ms（等待另行统计）",
        ),
    }


def test_producer_waits_take_precedence_over_loader_calls() -> None:
    steps = [{"rank": 0, "step": 1, "data_ns": 300 * _US}]
    kernels = [_op(0, 0, 1_000), _op(1, 1_250, 750)]
    profile = profile_of(kernels, kind="npu", steps=steps)
    # The step is idle for 250 of the 300 us that it says it waits.
    assert _list(profile) == [
        (
            *("data-stall", 0.125, 12.5, "Waiting for data: the device is idle 0.125 ms per step"),
            ["Data Aug Bound is 0.150 ms per step"],
        )
    ]
    zh = _list(profile, language="zh")
    assert zh[0][4] == ["Data Aug Bound 为每迭代 0.150 ms"]
    on_cpu = profile_of(kernels, kind="cpu", steps=steps)
    assert list(data_stalls(Case(on_cpu, Options()))) == []


def test_free_time_is_reported_with_overlapping_calls() -> None:
    calls = [_call("python", "main", -5_000, 9_000), _call("mark", "ProfilerStep#1", 0, 1_000)]
    beside = [_call("python", "other", 200, 100, rank=1)]

    def evidence(*host: dict[str, Any], **more: Any) -> list[str]:
        (row,) = _list(profile_of(_KERNELS, kind="cuda", host=host), **more)
        return row[4]

    assert evidence(*calls) == [
        "host calls cover 0.800 ms of it, but each runs mostly at other times"
    ]
    assert evidence(*calls, language="zh") == [
        "其中 0.800 ms 有 host 侧调用，但各调用的大部分时间在别处"
    ]
    for host in ((), calls[1:], beside):
        assert evidence(*host) == ["the profile has no host calls"]
    assert evidence(_call("python", "first", 0, 50)) == [
        "no host calls were recorded at these times"
    ]


@pytest.mark.parametrize(
    ("layers", "kind", "first", "zh"),
    [
        ((), "npu", "Also record the host (activities CPU and NPU, ", "同时采集 host 侧数据"),
        (
            ("mark",),
            "cuda",
            "Also record the host (activities CPU and CUDA, ",
            "同时采集 host 侧数据",
        ),
        (
            ("op", "mark"),
            "cuda",
            "Also record Python calls (with_stack); ",
            "同时采集 Python 调用",
        ),
        (("op", "python"), "npu", "Launch fewer and larger ops: ", "减少下发次数"),
    ],
)
def test_only_what_was_not_recorded_is_to_be_recorded(
    layers: tuple[str, ...], kind: Any, first: str, zh: str
) -> None:
    calls = [_call(layer, "x", 0, 50) for layer in layers]
    profile = profile_of([_op(0, 0, 10), _op(0, 500, 10)], kind=kind, host=calls)
    for language, start in (("en", first), ("zh", zh)):
        rows = todo_table(profile, Options(language=language)).filter(pl.col("key") == "free")
        assert rows["change"][0].startswith(start)


def test_never_idle_device_has_neither_line() -> None:
    case = Case(profile_of([_op(0, 0, 10), _op(0, 2, 3, "CUDA_MEMCPY")], kind="cuda"), Options())
    assert list(memory_copies(case)) == list(unexplained(case)) == []
    (copies,) = memory_copies(
        Case(profile_of([_op(0, 0, 1), _op(0, 5, 1), _op(0, 2, 2, "CUDA_MEMCPY")]), Options())
    )
    assert copies.spans.rows() == [(0, 2_000, 4_000)]


def test_time_in_host_calls_counts_only_for_blocking_ones() -> None:
    case = Case(profile_of([*_KERNELS, *_BESIDE], kind="cuda", host=_CALLS), Options())
    stood = {
        kind: [claim.host_ns // _US for claim in FINDINGS[name].search(case)]
        for kind, name in (
            ("blocking", "blocking-call"),
            ("copy", "pageable-copy"),
            ("covering", "host-work"),
            ("collector", "collector"),
            ("launching", "launching"),
            ("data", "data-stall"),
        )
    }
    assert stood == {
        "blocking": [190],
        "copy": [50],
        "covering": [0],
        "collector": [0],
        "launching": [0],
        "data": [0],
    }
