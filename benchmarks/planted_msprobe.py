"""What msprobe's comparison names of planted faults, beside ours.

    PYTHONPATH=src python benchmarks/planted_msprobe.py --seed 7 --faults 6

with the Python of an environment of its own: `pip install torch==2.13.0 mindstudio-probe
safetensors`. Faults are drawn as by `planted_faults.py`, in BERT, DS-CNN and NLRN, of ops that
msprobe's own measuring does not call. msprobe dumps both steps (level mix), each in a process of
its own, as statistics and as tensors, and compares them; the first row that is not `pass` is what
it names. Of pairs without a fault, bfloat16 against float32, its rows that are not `pass` are
counted.
"""

import argparse
import csv
import json
import random
import subprocess
import sys
import tempfile
from collections import Counter
from contextlib import nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from faulty_kernels import KINDS, FaultyKernel, Planted
from jumar.precision.comparing.comparison import call_name
from planted_faults import REFERENCE, Setting, draw_fault, first_names, other, prepared

_TASKS = ("tensor", "statistics")
_NETWORKS = ("bert", "dscnn", "nlrn")
_OPS = ("addmm", "mm", "bmm", "_softmax", "_softmax_backward_data", "gelu", "gelu_backward")
_OPS += ("convolution", "convolution_backward", "native_batch_norm", "native_batch_norm_backward")
_OPS += ("native_layer_norm", "native_layer_norm_backward")


def record(network: str, seed: int, folder: Path, task: str, how: str) -> None:
    """Dump a step with msprobe, in this process."""
    from msprobe.pytorch import PrecisionDebugger  # pyright: ignore[reportMissingImports]

    content = json.loads(how)
    planted = Planted(**content["planted"]) if content["planted"] else None
    model, step = prepared(network, seed)
    debugger: Any = PrecisionDebugger(task=task, level="mix", dump_path=str(folder))
    debugger.start(model)
    with FaultyKernel(planted) if planted else nullcontext():
        step(Setting(**content["setting"]))
    debugger.stop()
    debugger.step()


def rows_of(
    network: str, seed: int, folder: Path, task: str, setting: Setting, planted: Planted | None
) -> list[dict[str, str]]:
    """The rows of msprobe's comparison of a step with the reference's."""
    places: list[str] = []
    for name, how in (("golden", (REFERENCE, None)), ("target", (setting, planted))):
        text = json.dumps({"setting": asdict(how[0]), "planted": how[1] and asdict(how[1])})
        command = [sys.executable, __file__, "--record", network, str(seed)]
        place = folder / f"{name}-{task}"
        subprocess.run([*command, str(place), task, text], check=True, capture_output=True)
        places.append(str(place / "step0"))
    program = str(Path(sys.executable).with_name("msprobe"))
    command = [program, "compare", "-tp", places[1], "-gp", places[0]]
    command += ["-o", str(folder / task)]
    subprocess.run(command, check=True, capture_output=True)
    (result,) = (folder / task).glob("*.csv")
    with result.open(newline="") as file:
        return list(csv.DictReader(file))


def shown(rows: list[dict[str, str]]) -> str:
    """The first row that is not `pass`, and how many there are."""
    results = Counter(row["Result"] for row in rows)
    first = next(
        (f"{row['NPU Name']} ({row['Result']})" for row in rows if row["Result"] != "pass"), ""
    )
    return f"{first or 'none'}; {dict(results)}"


def main() -> None:
    """Draw, dump, compare, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--faults", type=int, default=6)
    parser.add_argument("--record", nargs=5)
    options = parser.parse_args()
    torch.set_num_threads(1)
    if options.record:
        network, seed, folder, task, how = options.record
        record(network, int(seed), Path(folder), task, how)
        return
    draw = random.Random(options.seed)
    for _ in range(options.faults):
        with tempfile.TemporaryDirectory() as name:
            drawn = draw_fault(draw, KINDS, Path(name), networks=_NETWORKS, ops=_OPS)
            print(f"{drawn.what}: {call_name(drawn.target)}")
            for level, first in first_names(drawn).items():
                print(f"  jumar, {level}: {first}", flush=True)
            for task in _TASKS:
                setting = other(drawn.network)
                rows = rows_of(drawn.network, drawn.seed, Path(name), task, setting, drawn.planted)
                print(f"  msprobe, {task}: {shown(rows)}", flush=True)
    for network in _NETWORKS:
        with tempfile.TemporaryDirectory() as name:
            for task in _TASKS:
                setting = other(network, bfloat16=True)
                rows = rows_of(network, options.seed, Path(name), task, setting, None)
                print(f"healthy {network}, bfloat16, msprobe, {task}: {shown(rows)}", flush=True)


if __name__ == "__main__":
    main()
