"""Reading trace events: jumar's reader against ijson, on the same file in one process.

    pip install ijson
    python benchmarks/json_events.py trace_view.json

Both read every event into a dictionary in bounded memory, jumar with decimal numbers as text, ijson
as `Decimal` and again as floats (which lose the last digits of Ascend's timestamps). They take
turns; printed are the medians of the CPU time and the ratio to jumar. The events are repeated until
the file has 60 MB, so that start-up does not count.
"""

import argparse
import json
import tempfile
import time
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import ijson

from jumar.profiling.reading.events import CHUNK, EventReader

_BYTES = 60_000_000


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("trace", type=Path)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.json"
        _write_repeated(options.trace, path)
        print(f"{path.stat().st_size / 1e6:.0f} MB, ijson {ijson.__version__} ({ijson.backend})")
        rivals: dict[str, Callable[[Any], Iterable[Any]]] = {
            "jumar": EventReader,
            "ijson, decimals": partial(ijson.items, prefix="traceEvents.item", buf_size=CHUNK),
            "ijson, floats": partial(
                ijson.items, prefix="traceEvents.item", buf_size=CHUNK, use_float=True
            ),
        }
        seconds: dict[str, list[float]] = {name: [] for name in rivals}
        counts: set[int] = set()
        for _ in range(options.rounds):
            for name, read in rivals.items():
                begin = time.process_time()
                with path.open("rb") as file:
                    counts.add(sum(1 for _ in read(file)))
                seconds[name].append(time.process_time() - begin)
    assert len(counts) == 1, counts
    ours = median(seconds["jumar"])
    for name, times in seconds.items():
        print(f"{name:16} {median(times):5.2f} s   {median(times) / ours:.2f}")


def _write_repeated(trace: Path, path: Path) -> None:
    content = json.loads(trace.read_text(encoding="utf-8"))
    events = content["traceEvents"] if isinstance(content, dict) else content
    text = ",".join(json.dumps(event) for event in events)
    times = max(1, round(_BYTES / len(text)))
    path.write_text(f'{{"traceEvents":[{",".join([text] * times)}]}}', encoding="utf-8")


if __name__ == "__main__":
    main()
