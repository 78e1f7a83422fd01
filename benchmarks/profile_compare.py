"""Comparing two profiles of a million ops, against a bare polars read and join.

    python benchmarks/profile_compare.py SAMPLE [--rows 200000 1000000] [--rounds 3]

SAMPLE is a kernel_details.csv of torch_npu, whose rows are repeated as in profile_views.py. The
second profile lacks every tenth row of the sample, and its matrix products and convolutions are
of 16 bits, so that rows find their partners only in part. Each side runs in a process of its own,
in turns, and is measured from its start to its end: polars alone, which reads the columns and joins
the n-th op of a type, shape and step with its like; our reader alone; and our reader with
comparison, mixlist proposals and chains of casts. What the comparison itself takes of the last one
is measured in it, without the names of mixlists, which are read once and bring torch with them.
"""

import argparse
import csv
import statistics
import sys
import tempfile
from pathlib import Path

from profile_views import Cost, run, show, write

BARE = """
import sys
import polars as pl
key = ["Step Id", "Type", "Input Shapes"]
def table(path):
    return pl.scan_csv(path, infer_schema=False).select(
        *key, "Name", "Accelerator Core", "Input Data Types", "Output Data Types",
        "Input Formats", "Output Formats", "Output Shapes", "Start Time(us)",
        pl.col("Duration(us)").cast(pl.Float64),
    ).collect().with_columns(nth=pl.int_range(pl.len()).over(key))
both = table(sys.argv[1]).join(table(sys.argv[2]), on=[*key, "nth"], how="full")
found = both.group_by("Type", "Input Shapes", "Input Data Types", "Input Data Types_right").agg(
    pl.col("Duration(us)", "Duration(us)_right").sum())
print(both.height, "rows;", found.height, "groups")
"""

READ = """
import sys
import jumar.profiling
before, after = (jumar.profiling.read(path) for path in sys.argv[1:3])
"""
SAY_READ = "print(before.ops.height, 'and', after.ops.height, 'ops')\n"
COMPARE = """
import time
from jumar.cli.profile_lists import list_name
from jumar.profiling.comparison import cancelling_chains, compare, propose
list_name("Cast")
began = time.process_time()
pair = compare(before, after)
edits = propose(pair, list_name)
chains = cancelling_chains(pair.after)
assert sum(part.delta_ns for part in pair.parts) == pair.delta_ns
print(pair.changes.height, "groups,", len(edits), "edits,", chains.height, "chains;",
      f"comparing alone {time.process_time() - began:.2f}")
"""


def second(sample: Path, target: Path) -> None:
    """A variant of the sample: some ops removed, some in 16 bits."""
    with sample.open(newline="", encoding="utf-8") as file:
        header, *rows = list(csv.reader(file))
    kind, types = header.index("Type"), header.index("Input Data Types")
    with target.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(header)
        for place, row in enumerate(rows):
            if place % 10 == 9:
                continue
            if "MatMul" in row[kind] or "Conv" in row[kind]:
                row[types] = ";".join(
                    "FLOAT16" if dtype == "FLOAT" else dtype for dtype in row[types].split(";")
                )
            writer.writerow(row)


def main() -> None:
    """Write the files, run the sides in turns, print."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("sample", type=Path)
    parser.add_argument("--rows", type=int, nargs="+", default=[200_000, 1_000_000])
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    sides = {"polars": BARE, "reading": READ + SAY_READ, "reading, comparing": READ + COMPARE}
    for rows in arguments.rows:
        costs: dict[str, list[Cost]] = {name: [] for name in sides}
        with tempfile.TemporaryDirectory() as folder:
            files = [Path(folder) / name / "kernel_details.csv" for name in ("before", "after")]
            other = Path(folder) / "other.csv"
            second(arguments.sample, other)
            for file, sample in zip(files, (arguments.sample, other), strict=True):
                file.parent.mkdir()
                write(sample, file, rows)
            for _ in range(arguments.rounds):
                for name, program in sides.items():
                    costs[name].append(run([sys.executable, "-c", program, *map(str, files)]))
        print(f"{rows} ops each")
        for name, measured in costs.items():
            show(name, measured)
        own = [float(cost.said.split()[-1]) for cost in costs["reading, comparing"]]
        print(f"comparing alone: {statistics.median(own):.2f} s of processor time")


if __name__ == "__main__":
    main()
