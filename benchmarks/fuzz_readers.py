"""Feeds damaged files to everything that reads what others wrote.

    python benchmarks/fuzz_readers.py ../shared/data --count 100000 --seed 1

Real files are damaged by a seed: bits, cut ends, blocks that are left out, doubled or taken from
another place, numbers at the edges of their types; leaves of JSON of another type, cells of tables
that are no numbers, words that other programs gave a meaning. A reader may read what is left or
refuse it as a user's error. Anything else is a defect: another exception, more than ten seconds,
more memory than the limit, a process that dies.

Exit codes: 0 nothing was found; 1 a defect was found, and its input is kept in --keep.
"""

import argparse
import multiprocessing
import os
import random
import resource
import shutil
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from damage import damage
from fuzz_targets import Target, targets
from jumar.data.samples import CorruptRecord
from jumar.ground.errors import UserError

SECONDS = 10
MEMORY_GIB = 8
BATCH = 250


class TooSlow(Exception):
    """A reader took longer than an input of this size should."""


def main() -> int:
    """Feed each reader, and list what should not have happened."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path, help="the folder of reference data")
    parser.add_argument("--count", type=int, default=100_000, help="inputs for each reader")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", action="append", help="one of the readers")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--keep", type=Path, default=Path("fuzz-defects"))
    parser.add_argument("--without", action="append", default=[], help="leave out a reader")
    options = parser.parse_args()
    known = targets(options.data)
    for name in (*(options.only or ()), *options.without):
        if name not in known:
            parser.error(f"unknown reader '{name}'; known: {', '.join(known)}")
    names = [name for name in options.only or known if name not in options.without]
    defects: Counter[str] = Counter()
    with ThreadPoolExecutor(options.jobs) as pool:
        for name in names:
            begun = time.monotonic()
            one = partial(fed_apart, name, known[name], keep=options.keep, count=options.count)
            seeds = range(0, options.count, BATCH)
            read = refused = 0
            mine: Counter[str] = Counter()
            for outcome in pool.map(one, (options.seed * 1_000_003 + first for first in seeds)):
                read, refused = read + outcome.read, refused + outcome.refused
                mine.update(outcome.defects)
            took = time.monotonic() - begun
            print(
                f"{name:24} {read:7} read {refused:7} refused {mine.total():5} defects "
                f"{took:6.0f} s"
            )
            for text, count in mine.most_common():
                print(f"    {count:5} {text}", flush=True)
            defects += mine
    return 1 if defects else 0


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What became of a batch of inputs."""

    read: int
    refused: int
    defects: Mapping[str, int]


def fed_apart(name: str, target: Target, seed: int, keep: Path, count: int = BATCH) -> Outcome:
    """A batch in a process of its own, so that one that dies is a defect and not the end.

    Args:
        name: The reader's name.
        target: The reader, and real files for it.
        seed: Decides the damages.
        keep: Where an input of each defect is kept.
        count: How many are fed, at most `BATCH`.
    """
    receiving, sending = multiprocessing.Pipe(duplex=False)
    child = os.fork()
    if not child:
        status = 1
        try:
            sending.send(_fed(name, target, seed, keep, min(count, BATCH)))
            status = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(status)
    sending.close()
    try:
        outcome: Outcome = receiving.recv()
    except EOFError:
        outcome = Outcome(read=0, refused=0, defects={f"the process died, seed {seed}": 1})
    os.waitpid(child, 0)
    return outcome


def _fed(name: str, target: Target, seed: int, keep: Path, count: int) -> Outcome:
    limit = MEMORY_GIB * 2**30
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    warnings.simplefilter("ignore")
    signal.signal(signal.SIGALRM, _too_slow)
    with Path(os.devnull).open("w", encoding="utf-8") as nothing:
        sys.stdout = nothing
        read = refused = 0
        defects: Counter[str] = Counter()
        with tempfile.TemporaryDirectory(prefix="fuzz-") as folder:
            for number in range(seed, seed + count):
                path = _written(target, random.Random(number), Path(folder) / str(number))
                signal.alarm(SECONDS)
                try:
                    target.read(path)
                    read += 1
                except (UserError, CorruptRecord):
                    refused += 1
                except BaseException as error:
                    signal.alarm(0)
                    text = _place(error)
                    if not defects[text]:
                        shutil.copytree(
                            Path(folder) / str(number),
                            keep / f"{name}-{number}",
                            dirs_exist_ok=True,
                        )
                    defects[text] += 1
                signal.alarm(0)
                shutil.rmtree(Path(folder) / str(number))
    return Outcome(read=read, refused=refused, defects=defects)


def _too_slow(_number: int, _frame: object) -> None:
    raise TooSlow(f"more than {SECONDS} s")


def _written(target: Target, numbers: random.Random, folder: Path) -> Path:
    """A set of files of which one is damaged; what the reader is called with."""
    files = numbers.choice(target.seeds)
    damaged = numbers.choice(sorted(files))
    for name, data in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(damage(data, numbers) if name == damaged else data)
    return folder if target.whole else folder / damaged


def _place(error: BaseException) -> str:
    """What was raised, and the innermost line of ours that it went through."""
    ours = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if f"{os.sep}jumar{os.sep}" in frame.filename
    ]
    where = f"{ours[-1].filename.rpartition('/jumar/')[2]}:{ours[-1].lineno}" if ours else "?"
    return f"{type(error).__name__} at {where}: {str(error)[:120]!r}"


if __name__ == "__main__":
    sys.exit(main())
