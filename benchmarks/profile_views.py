"""A million rows through the views, beside a bare polars read of the same file.

    python benchmarks/profile_views.py SAMPLE [--rows 1000000] [--rounds 3] [--advisor COMMAND]

SAMPLE is a kernel_details.csv of torch_npu; its rows are repeated with later start times and other
durations until there are enough. Each side runs in a process of its own, in turns, and is measured
from its start to its end, with the import of Python and polars: elapsed and processor time, and the
largest resident memory. The views are rankings, groups, step split, AI CPU, cores, shapes, clock,
casts, roofline, and the to-do list. `--advisor` also runs `msprof-analyze advisor computation` once
on the same file. Last comes the time until `jumar profile show SAMPLE` begins to print.
"""

import argparse
import csv
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

VIEWS = (
    *("types", "ops", "aicpu-time", "by-core", "by-shape", "by-dtype", "steps", "aicpu"),
    *("cores", "dynamic", "frequency", "casts", "roofline", "todo"),
)

_STARTS = 7

OURS = """
import sys
import jumar.profiling
from jumar.profiling.views import VIEWS, Impossible, Options
profile = jumar.profiling.read(sys.argv[1])
rows = 0
for name in sys.argv[2].split(","):
    rows += VIEWS[name].make(profile, Options()).height
print(profile.ops.height, rows)
"""

BARE = """
import sys
import polars as pl
wanted = ["Step Id", "Name", "Type", "Accelerator Core", "Start Time(us)", "Duration(us)",
          "Block Dim", "Input Shapes", "Input Data Types"]
table = pl.scan_csv(sys.argv[1], infer_schema=False).select(wanted).with_columns(
    pl.col("Duration(us)").cast(pl.Float64)).collect()
found = table.group_by("Type", "Accelerator Core", "Input Shapes", "Input Data Types").agg(
    pl.col("Duration(us)").sum())
print(table.height, found.height)
"""


class Cost(NamedTuple):
    """The cost of one process."""

    elapsed: float
    processor: float
    memory: float
    said: str


def write(sample: Path, target: Path, rows: int, shapes: int = 0) -> None:
    """Repeat the sample's rows, a step after a step, with durations up to 5 % longer.

    Args:
        sample: A kernel_details.csv.
        target: The file to write.
        rows: Its rows.
        shapes: Give each input another axis in front, whose size goes round from 1 to this.
    """
    with sample.open(newline="", encoding="utf-8") as file:
        header, *sample_rows = list(csv.reader(file))
    at = {name: index for index, name in enumerate(header)}
    start, lasted, step = at["Start Time(us)"], at["Duration(us)"], at["Step Id"]
    given = at["Input Shapes"]
    begins = [round(float(row[start].strip()[-14:]) * 1000) for row in sample_rows]
    drawn = random.Random(1)
    with target.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(header)
        for index in range(rows):
            turn, place = divmod(index, len(sample_rows))
            row = list(sample_rows[place])
            now = begins[place] - begins[0] + turn * 200_000_000
            row[start] = f"17364{now // 1000:011d}.{now % 1000:03d}\t"
            row[lasted] = f"{float(row[lasted]) * (1 + drawn.random() / 20):.3f}"
            row[step] = str(turn)
            if shapes:
                row[given] = _longer(row[given], index % shapes + 1)
            writer.writerow(row)


def _longer(shapes: str, size: int) -> str:
    """Shapes as in the file, `"8,16;16"` with its quotes, each with another axis in front."""
    each = shapes.strip('"').split(";")
    return '"' + ";".join(f"{size},{shape}" if shape else shape for shape in each) + '"'


def run(command: list[str], *, until_first: bool = False) -> Cost:
    """Run a process and measure it; the elapsed time may be that until it begins to print."""
    began = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    printed = process.stdout.read(1)
    first = time.perf_counter() - began
    printed = (printed + process.stdout.read()).strip()
    _, status, used = os.wait4(process.pid, 0)
    elapsed = first if until_first else time.perf_counter() - began
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{command[0]} left with {process.returncode}")
    return Cost(elapsed, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024, printed)


def show(name: str, costs: list[Cost]) -> None:
    """The median of some rounds."""
    elapsed = [cost.elapsed for cost in costs]
    print(
        f"{name:22} {statistics.median(elapsed):7.2f} s "
        f"({min(elapsed):.2f} to {max(elapsed):.2f}), "
        f"processor {statistics.median(cost.processor for cost in costs):.2f} s, "
        f"{max(cost.memory for cost in costs):.0f} MiB; {costs[0].said.splitlines()[-1]}"
    )


def main() -> None:
    """Write the file, run both sides in turns, print."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("sample", type=Path)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--advisor", default="", help="path of the msprof-analyze command")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        capture = Path(folder) / "rank0_ascend_pt" / "ASCEND_PROFILER_OUTPUT"
        capture.mkdir(parents=True)
        file = capture / "kernel_details.csv"
        write(arguments.sample, file, arguments.rows)
        print(
            f"{arguments.rows} rows, {file.stat().st_size / 1e6:.0f} MB, "
            f"{os.cpu_count()} processors"
        )
        command = [sys.executable, "-c", OURS, str(file), ",".join(VIEWS)]
        bare = [sys.executable, "-c", BARE, str(file)]
        rounds = [(run(bare), run(command)) for _ in range(arguments.rounds)]
        show("bare polars read", [pair[0] for pair in rounds])
        show(f"jumar, {len(VIEWS)} views", [pair[1] for pair in rounds])
        ratio = statistics.median(b.elapsed / a.elapsed for a, b in rounds)
        print(f"jumar / bare read: {ratio:.2f}")
        if arguments.advisor:
            for name in ("profiler_info_0.json", "profiler_metadata.json"):
                beside = arguments.sample.parents[1] / name
                if beside.is_file():
                    shutil.copy(beside, capture.parent / name)
            where = ["-d", str(capture.parent), "-o", folder, "-l", "en"]
            show("msprof-analyze", [run([arguments.advisor, "advisor", "computation", *where])])
    first = [sys.executable, "-m", "jumar", "profile", "show", str(arguments.sample)]
    show("first output", [run(first, until_first=True) for _ in range(_STARTS)])


if __name__ == "__main__":
    main()
