"""The page of a million ops: its time, memory and size, beside reading alone.

    python benchmarks/profile_page.py SAMPLE [--rows 1000000] [--rounds 3] [--one-step] [--shapes N]

SAMPLE is a kernel_details.csv of torch_npu, whose rows are repeated as in profile_views.py: a step
for each time. `--one-step` makes a single step of all of them, the worst case, in which no step is
short enough to be looked at alone. `--shapes 50000` gives all inputs another axis in front, whose
size goes round, so that nearly every op has shapes of its own. Each side runs in a process of its
own, in turns, and is measured from its start to its end. The exit code is 1 where the page is
larger than 10 MB, took more than 30 s of processor time, or more than 1.5 GB.
"""

import argparse
import statistics
import sys
import tempfile
from pathlib import Path

from profile_views import Cost, run, show, write

READ = """
import sys
from dataclasses import replace
import polars as pl
import jumar.profiling
profile = jumar.profiling.read(sys.argv[1])
if sys.argv[2] == "one":
    step = pl.lit(0, pl.Int64).alias("step")
    profile = replace(profile, ops=profile.ops.with_columns(step), steps=profile.steps.clear())
size = 0
"""
PAGE = """
from jumar.profiling.page import page
size = len(page(profile).encode())
"""
SAY = "print(f'{profile.ops.height} ops; {size / 1e6:.2f} MB')\n"

MAX_BYTES, MAX_SECONDS, MAX_MEMORY = 10e6, 30.0, 1.5e9 / 2**20


def main() -> None:
    """Write the file, run both sides in turns, print."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("sample", type=Path)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--one-step", action="store_true")
    parser.add_argument("--shapes", type=int, default=0)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "kernel_details.csv"
        write(arguments.sample, file, arguments.rows, arguments.shapes)
        steps = "one" if arguments.one_step else "many"
        sides: tuple[list[Cost], list[Cost]] = ([], [])
        for _ in range(arguments.rounds):
            for side, program in zip(sides, (READ + SAY, READ + PAGE + SAY), strict=True):
                side.append(run([sys.executable, "-c", program, str(file), steps]))
    show("reading", sides[0])
    show("reading and page", sides[1])
    own = statistics.median(b.processor - a.processor for a, b in zip(*sides, strict=True))
    memory = max(cost.memory for cost in sides[1])
    size = 1e6 * float(sides[1][0].said.split()[-2])
    print(f"the page alone: {own:.2f} s of processor time")
    if size > MAX_BYTES or own > MAX_SECONDS or memory > MAX_MEMORY:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
