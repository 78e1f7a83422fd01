"""The same input produces the same bytes, for any hash seed and thread scheduling."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

STEPS, OPS, RANKS = 3, 300, 4
_CORES = ("AI_CORE", "AI_VECTOR_CORE", "AI_CPU", "MIX_AIC")


def _event(category: str, name: str, start: int, length: int, **more: Any) -> dict[str, Any]:
    event = {"ph": "X", "cat": category, "name": name, "pid": 1, "tid": 1, "args": {}}
    return event | {"ts": start, "dur": length} | more


def _rank(rank: int) -> dict[str, Any]:
    """Ops that all take equally long, of many types, shapes and streams that begin together."""
    events: list[dict[str, Any]] = []
    for step in range(STEPS):
        begin = step * 1_000_000
        events.append(_event("user_annotation", f"ProfilerStep#{step}", begin, 1_000_000))
        for op in range(OPS):
            start = begin + 100 + 10 * (op // 3)
            dims = {"Input Dims": [[op % 7, 3]], "Input type": ["float"]}
            events.append(_event("cpu_op", f"aten::op{op % 50}", start - 90, 3, args=dims))
            launch = {"correlation": step * OPS + op}
            events.append(_event("cuda_runtime", f"launch{op % 9}", start - 90, 2, args=launch))
            where = {"device": rank, "stream": op % 3, "grid": [op % 3 + 1, 1, 1], **launch}
            events.append(_event("kernel", f"kernel{op % 60}", start, 8, pid=0, args=where))
        for which in range(6):
            where = {"device": rank, "stream": 20 + which}
            name = f"ncclKernel_{which}"
            events.append(_event("kernel", name, begin + 90_000, 500, pid=0, args=where))
    return {"distributedInfo": {"rank": rank}, "traceEvents": events}


def _traces(folder: Path) -> None:
    for rank in range(RANKS):
        (folder / f"{rank}.json").write_text(json.dumps(_rank(rank)))


def _table(folder: Path) -> None:
    """A table of an NPU in which equal totals differ in core, types or blocks alone."""
    lines = [
        "Step Id,Name,Type,Accelerator Core,Start Time(us),Duration(us),Wait Time(us),Block Num,"
        "Input Shapes,Input Data Types,Output Data Types,Output Formats,aic_mac_ratio"
    ]
    for op in range(6000):
        kind = ("Cast", "TransData", f"T{op % 40}")[op % 3]
        types = f"{('FLOAT', 'FLOAT16', 'DOUBLE')[op // 5 % 3]},{('FLOAT', 'BF16')[op // 7 % 2]}"
        lines.append(
            f"{op // 1500},op_{op % 1000},{kind},{_CORES[op % 4]},{op // 3 * 10},0.8,0,"
            f'{1 + op % 4},"""{op % 6},4""",{types},{("ND", "NZ")[op // 11 % 2]},0.{op % 7}'
        )
    (folder / "kernel_details.csv").write_text("\n".join(lines) + "\n")


@pytest.mark.parametrize("write", [_traces, _table])
def test_views_of_a_capture_are_byte_for_byte_reproducible(
    tmp_path: Path, write: Callable[[Path], None]
) -> None:
    capture = tmp_path / "capture"
    capture.mkdir()
    write(capture)
    results: list[tuple[bytes, bytes]] = []
    for run, threads in enumerate(("1", "2", "4", "8")):
        page = tmp_path / f"{run}.html"
        command = [sys.executable, "-m", "jumar", "profile", "show", str(capture)]
        shown = subprocess.run(
            [*command, "--view", "all", "--json", "--page", str(page)],
            env={**os.environ, "PYTHONHASHSEED": str(run), "POLARS_MAX_THREADS": threads},
            capture_output=True,
            check=True,
        )
        results.append((shown.stdout, page.read_bytes()))
    views = json.loads(results[0][0])["views"]
    assert len(views) > 12
    for other in results[1:]:
        again = json.loads(other[0])["views"]
        assert [name for name in views if views[name] != again[name]] == []
        assert other == results[0]
