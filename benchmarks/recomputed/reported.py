"""The same figures as jumar gives them: asked for in processes of their own."""

import csv
import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from recomputed.figures import COMMUNICATION, Op, nanoseconds

_TABLES = """
import json, sys
from jumar.profiling import read
from jumar.profiling.writing import write_csv
profile = read(sys.argv[2:])
write_csv(profile, sys.argv[1])
times = [name for name in profile.collectives.columns if name.endswith("_ns")]
print(json.dumps({
    "collectives": profile.collectives.height,
    **{name: int(profile.collectives[name].sum() or 0) for name in times},
}))
"""
_VIEWS = ("steps", "types", "by-core")
_WORKS = {
    "CUDA_MEMCPY": "memcpy",
    "CUDA_MEMSET": "memset",
    "COMMUNICATION": COMMUNICATION,
    "HCCL": COMMUNICATION,
}
_PARTS = {
    "step": "step_ms",
    "computing": "computing_ms",
    "communication, uncovered": "uncovered_ms",
    "communication, covered": "overlapped_ms",
    "copies, uncovered": "copying_ms",
    "free": "free_ms",
    "before the first op": "preparing_ms",
}
_RECORDED = {
    "Computing": "computing",
    "Communication(Not Overlapped)": "communication, uncovered",
    "Overlapped": "communication, covered",
    "Communication": "communication",
    "Free": "free",
    "Preparing": "preparing",
    "Data": "data",
    "Start Time(us)": "start",
    "End Time(us)": "end",
}


class Unusable(Exception):
    """jumar gives no figures for a capture."""


class Reported:
    """What jumar says about a capture.

    Attributes:
        ops: The rows of its op table.
        kinds: Count and time by type and core.
        cores: Count and time by core.
        steps: The parts of each step, by rank and step.
        recorded: The producer's own figures, by rank, step and part.
        collectives: Their number and the sums of their times.
    """

    def __init__(self, capture: Path) -> None:
        views = [word for name in _VIEWS for word in ("--view", name)]
        shown = _run("-m", "jumar", "profile", "show", str(capture), *views, "--top", "0", "--json")
        content = json.loads(shown)["views"]
        self.kinds = {
            (row["type"], row["core"]): (row["count"], _ns(row["total_ms"]))
            for row in content.get("types", ())
        }
        self.cores = {
            row["core"]: (row["count"], _ns(row["total_ms"])) for row in content.get("by-core", ())
        }
        self.steps = {
            (row["rank"], row["step"]): {
                part: _ns(row.get(name) or 0) for part, name in _PARTS.items()
            }
            for row in content.get("steps", ())
        }
        with tempfile.TemporaryDirectory() as folder:
            self.collectives = json.loads(_run("-c", _TABLES, folder, str(capture)))
            self.ops = [_op(row) for row in _rows(Path(folder) / "op_summary.csv")]
            self.recorded = _recorded(_rows(Path(folder) / "step_trace_time.csv"))


def _run(*words: str) -> str:
    done = subprocess.run([sys.executable, *words], capture_output=True, text=True, check=False)
    if not done.stdout.strip():
        raise Unusable(done.stderr.strip().rpartition("\n")[2] or "jumar printed nothing")
    return done.stdout


def _rows(path: Path) -> Sequence[Mapping[str, str]]:
    if not path.exists():
        return []
    csv.field_size_limit(1 << 30)
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def _ns(milliseconds: float) -> int:
    return round(milliseconds * 1e6)


def _known(text: str | None) -> str | None:
    return None if text in (None, "", "N/A") else text


def _op(row: Mapping[str, str]) -> Op:
    step, core = _known(row["Step Id"]), _known(row["Task Type"])
    name = _known(row["Kernel Name"]) or row["Op Name"]
    work = _WORKS.get(core or "", "compute")
    if core is None and name.lower().startswith("hcom_"):
        work = COMMUNICATION
    return Op(
        rank=int(_known(row["Rank"]) or 0),
        step=None if step is None else int(step),
        name=name,
        kind=_known(row["OP Type"]),
        work=work,
        start=nanoseconds(row["Task Start Time(us)"], "us") or 0,
        duration=nanoseconds(row["Task Duration(us)"], "us") or 0,
        stream=_known(row["Stream ID"]) or "",
        size=int(_known(row["Size(B)"]) or 0),
        launch=nanoseconds(row["Launch Time(us)"], "us"),
        layer=(_known(row["Module"]) or "").rpartition(".")[2] or None,
    )


def _recorded(rows: Sequence[Mapping[str, str]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for row in rows:
        for column, part in _RECORDED.items():
            value: Any = nanoseconds(row.get(column), "us")
            if value is not None:
                found[f"rank {int(row['Rank'])} step {row['Step']} file: {part}"] = value
    return found
