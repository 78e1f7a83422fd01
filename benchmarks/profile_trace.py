"""Reading larger and larger traces: time, processor time, and memory, which must not grow.

    python benchmarks/profile_trace.py SAMPLE --folder FOLDER [--megabytes 250 500 1000 2000]
        [--gzip] [--keep] [--baseline SRC] [--ijson]

SAMPLE is a trace of torch.profiler (`.json`, `.json.gz`) or a trace_view.json of torch_npu. Its
events are repeated with later times, and with correlations and ids of their own, until the file in
FOLDER has the size; as in a real one, the ops of PyTorch come before what ran on the device. The
file is deleted afterwards, or with `--keep` left for another run. `jumar.profiling.read` reads it
in a process of its own, which is measured from its start to its end with the import of Python and
polars. Peers on the same file, also in processes of their own: `json.load`, which holds everything,
on files of up to 300 MB; with `--ijson`, ijson's fastest backend, which takes the events one at a
time and keeps nothing. `--baseline` names the `src` of another checkout of jumar.

Memory is the largest resident memory (`VmHWM`). A line ends with what the profile holds.
"""

import argparse
import gzip
import json
import os
import re
import subprocess
import sys
import time
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

OURS = """
import sys
import jumar.profiling
profile = jumar.profiling.read(sys.argv[1])
print(f"{profile.ops.height} ops, {profile.host.height} host calls")
"""
LOAD = """
import gzip, json, sys
with (gzip.open if sys.argv[1].endswith("gz") else open)(sys.argv[1], "rb") as file:
    found = json.load(file)
print(len(found["traceEvents"] if isinstance(found, dict) else found), "events")
"""
IJSON = """
import gzip, sys, ijson
with (gzip.open if sys.argv[1].endswith("gz") else open)(sys.argv[1], "rb") as file:
    start = file.read(1)
    file.seek(0)
    print(sum(1 for _ in ijson.items(file, "item" if start == b"[" else "traceEvents.item")),
          "events,", ijson.backend_name)
"""
# The system's figures for an ended child include this process's memory at the fork.
PEAK = """
print(next(line for line in open("/proc/self/status") if line.startswith("VmHWM")).split()[1])
"""
LOADED = 300
"""Megabytes up to which `json.load` runs: it takes five times as many."""
_IDS = ("correlation", "External id", "correlation_id", "connection_id")
_FIRST = ("cpu_op", "user_annotation", "python_function")
_STEP = re.compile(r"ProfilerStep#(\d+)$")


class Cost(NamedTuple):
    """The cost of one process."""

    elapsed: float
    processor: float
    memory: float
    said: str


def run(program: str, file: Path, source: str = "") -> Cost:
    """Run a process and measure it."""
    command = [sys.executable, "-c", program + PEAK, str(file)]
    environment = {**os.environ, "PYTHONPATH": source} if source else None
    began = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
    assert process.stdout is not None
    printed = process.stdout.read().splitlines()
    _, status, used = os.wait4(process.pid, 0)
    elapsed = time.perf_counter() - began
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"a process left with {process.returncode}")
    return Cost(elapsed, used.ru_utime + used.ru_stime, int(printed[-1]) / 1024, printed[0])


class Sample:
    """A real trace, and how its events are written once more with later times."""

    def __init__(self, path: Path) -> None:
        content = path.read_bytes()
        text = (gzip.decompress(content) if path.suffix == ".gz" else content).decode()
        document = json.loads(text, parse_float=Number)
        self.beside: dict[str, Any] = {}
        if isinstance(document, dict):
            self.beside = {key: value for key, value in document.items() if key != "traceEvents"}
            document = document["traceEvents"]
        self.names = [event for event in document if event["ph"] == "M"]
        events = [event for event in document if event["ph"] != "M"]
        begins = [_nanoseconds(event["ts"]) for event in events]
        ids = [event.get("args", {}).get(key) for event in events for key in _IDS]
        self.by = {
            "ts": max(begins) - min(begins) + 1_000_000,
            "id": max((id_ for id_ in ids if _is_id(id_)), default=0) + 1,
            "step": len({event["name"] for event in events if _STEP.match(event["name"])}) or 1,
        }
        # What PyTorch writes before what comes from the device, as both profilers do.
        self.groups = [
            _template([event for event in events if (event.get("cat") in _FIRST) is first])
            for first in (True, False)
        ]

    def write(self, target: Path, size: int) -> None:
        """Repeat the events until the file has the given size; they are never all in memory."""
        turn_size = sum(len(text) for text, _ in self.groups)
        turns = max(1, round(size / turn_size))
        with gzip.open(target, "wt", 1) if target.suffix == ".gz" else target.open("w") as file:
            file.write('{"traceEvents": [' if self.beside else "[")
            file.write(",\n".join(json.dumps(event, default=str) for event in self.names))
            for text, values in self.groups:
                for turn in range(turns):
                    by = {kind: turn * length for kind, length in self.by.items()}
                    file.write(text % tuple(_written(one, by) for one in values))
            beside = json.dumps(self.beside, default=float)
            file.write("]," + beside[1:] if self.beside else "]")


class Number(Decimal):
    """A number with a point, which keeps its digits."""


class Value(NamedTuple):
    """A number in an event that another turn counts on."""

    kind: str
    base: int
    digits: int


def _is_id(value: object) -> bool:
    return type(value) is int and 0 < value < 1 << 31


def _nanoseconds(time: int | str | Number) -> int:
    return int(Decimal(time) * 1000)


def _template(events: list[dict[str, Any]]) -> tuple[str, list[Value]]:
    """Events as one text with `%s` for what changes, and what that is."""
    values: list[Value] = []
    texts: list[str] = []
    for event in events:
        event = {**event, "args": dict(event.get("args", {}))} if "args" in event else dict(event)
        digits = 3 if "." in str(event["ts"]) else 0
        quotes = '"%s"' if isinstance(event["ts"], str) else "%s"
        marks = {"@ts@": (Value("ts", _nanoseconds(event["ts"]), digits), quotes)}
        event["ts"] = "@ts@"
        if event.get("cat") == "async_npu":
            marks["@id@"] = (Value("ns", event["id"], 0), "%s")
            event["id"] = "@id@"
        elif _is_id(event.get("id")):
            marks["@id@"] = (Value("id", event["id"], 0), "%s")
            event["id"] = "@id@"
        if step := _STEP.match(event["name"]):
            marks["@step@"] = (Value("step", int(step[1]), 0), '"ProfilerStep#%s"')
            event["name"] = "@step@"
        for number, key in enumerate(_IDS):
            if _is_id(event.get("args", {}).get(key)):
                marks[f"@{number}@"] = (Value("id", event["args"][key], 0), "%s")
                event["args"][key] = f"@{number}@"
        text = json.dumps(event, default=float).replace("%", "%%")
        for mark in re.findall(r'"(@\w+@)"', text):
            values.append(marks[mark][0])
            text = text.replace(f'"{mark}"', marks[mark][1])
        texts.append(",\n" + text)
    return "".join(texts), values


def _written(value: Value, by: dict[str, int]) -> str:
    if value.kind == "ts":
        whole, part = divmod(value.base + by["ts"], 1000)
        return f"{whole}.{part:03d}" if value.digits else str(whole)
    return str(value.base + by["ts" if value.kind == "ns" else value.kind])


def show(name: str, cost: Cost, megabytes: float) -> None:
    """One line."""
    print(
        f"  {name:10} {cost.elapsed:7.1f} s, processor {cost.processor:6.1f} s "
        f"({megabytes / cost.processor:5.1f} MB/s), {cost.memory:6.0f} MiB; {cost.said}",
        flush=True,
    )


def main() -> None:
    """Write each file, read it, print, delete it."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("sample", type=Path)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--megabytes", type=int, nargs="+", default=[250, 500, 1000, 2000])
    parser.add_argument("--gzip", action="store_true", help="write .json.gz")
    parser.add_argument("--keep", action="store_true", help="leave the files, and use them again")
    parser.add_argument("--baseline", default="", help="src of another checkout of jumar")
    parser.add_argument("--ijson", action="store_true", help="run ijson beside it")
    arguments = parser.parse_args()
    sample = Sample(arguments.sample)
    arguments.folder.mkdir(parents=True, exist_ok=True)
    first: tuple[float, Cost] | None = None
    for size in sorted(arguments.megabytes):
        file = arguments.folder / f"trace_{size}.json{'.gz' if arguments.gzip else ''}"
        try:
            if not (arguments.keep and file.exists()):
                sample.write(file, size * 1_000_000)
            megabytes = size if arguments.gzip else file.stat().st_size / 1e6
            print(f"{megabytes:.0f} MB, {os.cpu_count()} processors", flush=True)
            cost = run(OURS, file)
            show("jumar", cost, megabytes)
            first = first or (megabytes, cost)
            grown = (cost.memory - first[1].memory) * 1.048576 / max(1, megabytes - first[0])
            print(f"  grown by {grown:.3f} bytes a byte of the trace since the first")
            if arguments.baseline:
                show(
                    "baseline",
                    run(OURS, file, arguments.baseline),
                    megabytes,
                )
            if megabytes <= LOADED:
                show("json.load", run(LOAD, file), megabytes)
            if arguments.ijson:
                show("ijson", run(IJSON, file), megabytes)
        finally:
            if not arguments.keep:
                file.unlink(missing_ok=True)


if __name__ == "__main__":
    main()
