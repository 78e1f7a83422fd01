"""Measures everything on an accelerator, in calls of a few minutes that go on from each other.

    python benchmarks/accelerator.py --device cuda --out runs/accelerator
    python benchmarks/accelerator.py --device cuda --out runs/accelerator --part classifiers
    python benchmarks/accelerator.py --device cuda --only "BERT-base, 128, bf16"
    python benchmarks/accelerator.py --device cpu --small --out runs/small

Needs the checkout, a Python with torch 2.6 or newer and the wheels that docs/results.md lists; no
network and no installation. Each measurement is on the disk as soon as it is made; the same command
goes on where a call ended, and tries again what failed. To carry back: results.json and results.md,
and for whoever looks closer log.txt, rows.jsonl and profiles.zip, all in --out. `--out`/work holds
data and runs, which the next call goes on with.

Exit codes: 0 everything is measured, or cannot be on this machine; 1 something failed; 2 the
command was wrong; 3 the time is up, and the same command goes on.
"""

import argparse
import importlib
import os
import shlex
import sys
from pathlib import Path

_HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(_HERE), str(_HERE.parent / "src")]
# Otherwise asking whether there is a GPU would spoil it for the processes forked from this one.
os.environ.setdefault("PYTORCH_NVML_BASED_CUDA_CHECK", "1")

# Every run imports it, which takes seconds: done here once for all processes.
importlib.import_module("torch._dynamo")

from jumar.ground.errors import EXIT_CODE, UserError, unknown_name  # noqa: E402
from jumar.ground.text import print_plain  # noqa: E402
from on_accelerator.measuring import Part  # noqa: E402
from on_accelerator.parts import PARTS, RATES  # noqa: E402
from on_accelerator.session import Options, Session  # noqa: E402

_INTERRUPTED = 130


def main() -> int:
    """Run the command; returns its exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--device", default="auto", help="auto, cuda, npu or cpu")
    parser.add_argument("--minutes", type=float, default=8.0, help="when to stop")
    parser.add_argument("--part", action="append", default=[], help="one part only; repeatable")
    parser.add_argument(
        "--only", action="append", default=[], help="one measurement only; repeatable"
    )
    parser.add_argument("--out", type=Path, default=Path("runs/accelerator"), help="output folder")
    parser.add_argument("--small", action="store_true", help="as small as it can be, for a CPU")
    parser.add_argument("--data", type=Path, help="folder with real data sets, as `shared/data`")
    chosen = parser.parse_args()
    options = Options(
        device=chosen.device,
        minutes=chosen.minutes,
        out=chosen.out,
        small=chosen.small,
        data=chosen.data,
        only=chosen.only,
        command=shlex.join(["python", *sys.argv]),
    )
    try:
        return Session(chosen_parts(chosen.part), options, reported=PARTS).run()
    except UserError as error:
        print_plain(f"accelerator: {error}", sys.stderr)
        return EXIT_CODE
    except KeyboardInterrupt:
        return _INTERRUPTED


def chosen_parts(names: list[str]) -> list[Part]:
    """The named parts in their order, all if none is named.

    Raises:
        UserError: There is no such part.
    """
    known = [part.name for part in PARTS]
    for name in names:
        if name not in known:
            raise unknown_name("part", name, known, where="--part")
    return [part for part in PARTS if not names or part.name in names or part is RATES]


if __name__ == "__main__":
    sys.exit(main())
