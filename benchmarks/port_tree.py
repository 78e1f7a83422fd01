"""A whole `jumar port --to` on a real tree, beside the official converter where there is one.

    python benchmarks/port_tree.py TREE
    python benchmarks/port_tree.py TREE --converter convert_tf2npu --converter-python PYTHON

TREE is a checkout of a project, such as tensor2tensor. The converter is the folder `convert_tf2npu`
of Ascend/tensorflow; it needs a Python with pandas below 2, openpyxl, google-pasta and astunparse.

Both run as commands, from starting Python until the ported tree is written, into a new folder each
time. They take turns in each round, so that a busy machine disturbs both alike. Printed are the
median, smallest and largest times by the clock, the CPU time of all processes, and the peak of the
resident memory of all processes together, looked at 50 times a second; pages that processes share
count once for each. Below stands how long Python's own parser takes for the same scripts in one
process, and the ratio to it.
"""

import argparse
import ast
import contextlib
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

PAGE = os.sysconf("SC_PAGE_SIZE")
SOURCE = Path(__file__).resolve().parents[1] / "src"


@dataclass(frozen=True)
class Took:
    """One run of a command."""

    seconds: float
    cpu_seconds: float
    peak_bytes: int
    status: int


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("tree", type=Path)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--jobs", type=int)
    parser.add_argument("--converter", type=Path, help="folder with the converter's main.py")
    parser.add_argument("--converter-python", default=sys.executable)
    parser.add_argument("--converter-rounds", type=int, default=1, help="it takes its time")
    arguments = parser.parse_args()
    tree = arguments.tree.resolve()
    scripts = [path for path in tree.rglob("*.py") if path.is_file() and not path.is_symlink()]
    lines = sum(path.read_bytes().count(b"\n") for path in scripts)
    print(
        f"{tree.name}: {len(scripts)} scripts, {lines} lines; {len(os.sched_getaffinity(0))} CPUs"
    )
    jobs = ["--jobs", str(arguments.jobs)] if arguments.jobs else []
    jumar_runs: list[Took] = []
    converter_runs: list[Took] = []
    parses: list[float] = []
    port_once(tree, jobs)
    for number in range(arguments.rounds):
        parses.append(parse_once(scripts))
        jumar_runs.append(port_once(tree, jobs))
        if arguments.converter and number < arguments.converter_rounds:
            converter_runs.append(
                convert_once(tree, arguments.converter, arguments.converter_python)
            )
    print_row("jumar port", jumar_runs, lines)
    parse = statistics.median(parses)
    ratio = statistics.median(run.seconds for run in jumar_runs) / parse
    print(f"Python's parser {parse:.2f} s; the port takes {ratio:.1f} times that by the clock")
    if converter_runs:
        print_row("convert_tf2npu", converter_runs, lines)
        first = [
            their.seconds / our.seconds
            for our, their in zip(jumar_runs, converter_runs, strict=False)
        ]
        print(f"ratio within a round: {statistics.median(first):.1f}")


def parse_once(scripts: Sequence[Path]) -> float:
    """Seconds in which Python parses all scripts that it can parse."""
    texts = [path.read_bytes() for path in scripts]
    start = time.perf_counter()
    for text in texts:
        with contextlib.suppress(SyntaxError, ValueError), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ast.parse(text)
    return time.perf_counter() - start


def port_once(tree: Path, jobs: Sequence[str]) -> Took:
    """Port the tree with this checkout."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out"
        command = [sys.executable, "-m", "jumar", "port", str(tree), "--to", str(out), *jobs]
        return timed(command, Path(folder))


def convert_once(tree: Path, converter: Path, python: str) -> Took:
    """Convert the tree with the official converter."""
    with tempfile.TemporaryDirectory() as folder:
        where = Path(folder)
        command = [python, str(converter.resolve() / "main.py"), "-i", str(tree)]
        command += ["-o", str(where / "out"), "-r", str(where / "report")]
        return timed(command, converter.resolve(), PYTHONDONTWRITEBYTECODE="1")


def timed(command: Sequence[str], cwd: Path, **variables: str) -> Took:
    """Run a command in a session of its own, and look at the memory of all of its processes."""
    environment = {**os.environ, "PYTHONPATH": str(SOURCE), "OMP_NUM_THREADS": "1"}
    environment |= variables
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.perf_counter()
    running = subprocess.Popen(
        command,
        cwd=cwd,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    peak = 0
    while True:
        try:
            running.wait(0.02)
            break
        except subprocess.TimeoutExpired:
            peak = max(peak, resident(running.pid))
    seconds = time.perf_counter() - start
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Took(seconds, cpu, peak, running.returncode)


def resident(session: int) -> int:
    """Bytes in memory of the processes of a session."""
    total = 0
    for place in Path("/proc").iterdir():
        if place.name.isdigit():
            # A process may end while it is being inspected.
            with contextlib.suppress(OSError, IndexError, ValueError):
                fields = (place / "stat").read_text().rpartition(")")[2].split()
                if int(fields[3]) == session:
                    total += int((place / "statm").read_text().split()[1]) * PAGE
    return total


def print_row(name: str, runs: Sequence[Took], lines: int) -> None:
    """One line of the table."""
    seconds = [run.seconds for run in runs]
    median = statistics.median(seconds)
    cpu = statistics.median(run.cpu_seconds for run in runs)
    peak = max(run.peak_bytes for run in runs) / 1e6
    failed = [run.status for run in runs if run.status]
    print(
        f"{name:<15} {median:7.2f} s ({min(seconds):.2f} to {max(seconds):.2f}, "
        f"{len(runs)} rounds)  CPU {cpu:.2f} s  {lines / median:,.0f} lines/s  "
        f"peak {peak:.0f} MB" + (f"  exit status {failed}" if failed else "")
    )


if __name__ == "__main__":
    main()
