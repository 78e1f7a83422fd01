"""Figures of captures, recomputed from their raw events, beside those of jumar.

    python benchmarks/recompute_capture.py CAPTURE... [--kind kineto|ascend|mindspore] [--brief]
        [--other PATH]

CAPTURE is a trace of torch.profiler (CUDA, ROCm, a CPU; plain or gzipped; a folder has one trace
per rank), a folder or a database of torch_npu or msprof, or a folder of MindSpore of 2020 to 2022.
The recomputation uses the standard library alone and no code of jumar, which is asked in processes
of its own (`jumar profile show --json`, and its op table as CSV). A line per figure says what was
recomputed, what jumar says, and whether they are equal; times are in nanoseconds. `--brief` prints
differences and one line per capture. `--other` is what jumar reads instead of the capture: another
export of it, or a copy in which something was changed.

The exit status is 0 if all figures of all captures are equal, 1 if any differ, 2 if a capture
cannot be read.
"""

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from recomputed import ascend, kineto, mindspore
from recomputed.figures import COMMUNICATION, COPIES, Raw, largest, of_ops, of_steps
from recomputed.reported import Reported, Unusable

READERS = {"kineto": kineto.read, "ascend": ascend.read, "mindspore": mindspore.read}
STEPS = 5
"""Steps that are printed of a capture with more, beside those that differ."""


class Compared(NamedTuple):
    """A figure as it was recomputed and as jumar gives it."""

    name: str
    recomputed: Any
    jumar: Any
    step: int

    @property
    def equal(self) -> bool:
        """Whether both are the same."""
        return self.recomputed == self.jumar


def kind_of(path: Path) -> str:
    """Which reader a capture needs, by the names of its files."""
    if mindspore.is_capture(path):
        return "mindspore"
    return "ascend" if ascend.is_capture(path) else "kineto"


def compared(raw: Raw, reported: Reported) -> Iterator[Compared]:
    """All figures of a capture."""
    if raw.ops:
        ours = of_ops(reported.ops)
        theirs = of_ops(raw.ops)
        by_name = largest("name", reported.ops, lambda op: op.name, most=0)
        by_name |= largest("layer", reported.ops, lambda op: op.layer, most=0)
        for name, value in theirs.items():
            if name in raw.unknown or (raw.marked and name.startswith("name ")):
                continue
            yield Compared(name, value, by_name.get(name, ours.get(name)), 0)
        yield from _of_types(raw, reported)
        steps = of_steps(raw)
        yield Compared("steps", len(steps), len(reported.steps), 0)
        for place, (key, parts) in enumerate(steps.items()):
            known = reported.steps.get(key, {})
            for part in [name for name in parts if name not in raw.unknown]:
                name = f"rank {key[0]} step {key[1]}: {part}"
                yield Compared(name, parts[part], known.get(part), place)
    for name, value in raw.recorded.items():
        known = reported.collectives if name in reported.collectives else reported.recorded
        yield Compared(name, value, known.get(name), 0)


def _of_types(raw: Raw, reported: Reported) -> Iterator[Compared]:
    """The types that take longest, of ops that compute and of copies."""
    cores = {COMMUNICATION: "COMMUNICATION", "memcpy": "CUDA_MEMCPY", "memset": "CUDA_MEMSET"}
    for work in ("compute", *COPIES):
        of_work = [op for op in raw.ops if op.work == work]
        for name, value in largest("", of_work, lambda op: op.kind, most=5).items():
            kind = name.removeprefix(" ").removesuffix(", count and time")
            found = [
                pair
                for (other, core), pair in reported.kinds.items()
                if other == kind
                and (core == cores.get(work) or work == "compute")
                and (work != "compute" or core not in cores.values())
            ]
            total = (sum(pair[0] for pair in found), sum(pair[1] for pair in found))
            yield Compared(f"{work} of type {kind}, count and time", value, total, 0)


def check(capture: Path, kind: str, other: Path | None, *, brief: bool) -> bool:
    """Print the figures of a capture; returns whether all are equal."""
    if not capture.exists():
        raise Unusable("nothing is there")
    raw = READERS[kind or kind_of(capture)](capture)
    if not raw.ops and not raw.recorded:
        raise Unusable("no op and no figure was found in it")
    figures = list(compared(raw, Reported(other or capture)))
    differ = [figure for figure in figures if not figure.equal]
    shown = differ if brief else [f for f in figures if f.step < STEPS or not f.equal]
    print(f"\n{capture}: {len(figures)} figures, {len(differ)} differ")
    width = max((len(figure.name) for figure in shown), default=0)
    for figure in shown:
        print(f"  {figure.name:{min(width, 60)}}  {_text(figure)}")
    if len(shown) < len(figures) and not brief:
        print(f"  and {len(figures) - len(shown)} of further steps, all equal")
    return not differ


def _text(figure: Compared) -> str:
    both = f"{_plain(figure.recomputed):>24}  {_plain(figure.jumar):>24}  "
    if figure.equal:
        return f"{both}equal"
    if isinstance(figure.recomputed, int) and isinstance(figure.jumar, int):
        return f"{both}{figure.jumar - figure.recomputed:+d}"
    return f"{both}differ"


def _plain(value: Any) -> str:
    if isinstance(value, tuple):
        return " ".join(map(str, value))
    return "-" if value is None else str(value)


def main(words: list[str] | None = None) -> int:
    """Compare each capture; returns the exit status."""
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("captures", nargs="+", type=Path)
    parser.add_argument("--kind", choices=sorted(READERS), default="")
    parser.add_argument("--brief", action="store_true")
    parser.add_argument("--other", type=Path)
    given = parser.parse_args(words)
    status = 0
    for capture in given.captures:
        try:
            equal = check(capture, given.kind, given.other, brief=given.brief)
        except (Unusable, OSError, ValueError, KeyError) as error:
            print(f"\n{capture}: unusable: {error}", file=sys.stderr)
            status = 2
            continue
        status = max(status, 0 if equal else 1)
    return status


if __name__ == "__main__":
    sys.exit(main())
