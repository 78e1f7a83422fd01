"""Original projects, ported by `jumar port` and run beside their originals by `port check`.

Six on which the check was built:

    git clone https://github.com/taki0112/BigGAN-Tensorflow
    git clone https://github.com/Ding-Liu/NLRN
    git clone https://github.com/clausmichele/ViDeNN
    git clone https://github.com/ARM-software/ML-KWS-for-MCU
    git clone https://github.com/tensorflow/nmt
    git clone https://github.com/google-research/bert
    ~/tf115/bin/pip install pillow==9.5.0 scipy==1.1.0 keras==2.2.5 opencv-python-headless==4.5.5.64
    python benchmarks/port_check_originals.py --tensorflow-python ~/tf115/bin/python
        biggan=BigGAN-Tensorflow nlrn=NLRN videnn=ViDeNN kws=ML-KWS-for-MCU nmt=nmt bert=bert

Six that have a port made by hand in Ascend/ModelZoo-TensorFlow:

    git clone https://github.com/ElementAI/am3
    git clone https://github.com/google-research/albert
    git clone https://github.com/TropComplique/FaceBoxes-tensorflow
    git clone https://github.com/luckycallor/InsightFace-tensorflow
    git clone https://github.com/openai/pixel-cnn
    git clone --branch tensorflow https://github.com/THUNLP-MT/THUMT
    ~/tf115/bin/pip install pillow==9.5.0 scipy==1.1.0 scikit-learn==0.24.2 matplotlib==3.5.3
        imageio==2.9.0 tqdm pyyaml==5.4.1 sentencepiece==0.1.99 tensorflow_hub==0.7.0
        protobuf==3.20.3 numpy==1.18.5
    python benchmarks/port_check_originals.py --tensorflow-python ~/tf115/bin/python
        am3=am3 albert=albert faceboxes=FaceBoxes-tensorflow insightface=InsightFace-tensorflow
        pixelcnn=pixel-cnn thumt=THUMT

Each checkout is copied, tiny random data are put into the copy, the copy is ported, and both are
trained for a few steps with equal seeds on one core: small batches and pictures, the originals'
own scripts and arguments. The table says which stages passed and how far the losses are apart.

`--port-options "--precision allow_mix_precision --loss-scale exponential"` changes what is ported;
the exit code is 1 where a port does not follow its original.
"""

import argparse
import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from checked_originals import from_the_start, with_hand_ports

CASES = from_the_start.CASES | with_hand_ports.CASES


@dataclass(frozen=True, kw_only=True)
class Row:
    """The outcome for one original."""

    name: str
    edits: int
    stages: str
    num_equal: int
    num_losses: int
    largest_difference: float
    first: str
    last: str
    seconds: float
    passed: bool


def measure(
    name: str, checkout: Path, folder: Path, *, python: str, port_options: list[str]
) -> tuple[Row, dict[str, Any]]:
    """Copy, fill, port and check one original."""
    case = CASES[name]
    original, ported = folder / name / "original", folder / name / "ported"
    # Links stay links: ML-KWS-for-MCU has one that leads nowhere.
    shutil.copytree(
        checkout,
        original / case.package,
        symlinks=True,
        ignore=shutil.ignore_patterns(".git"),
    )
    case.make_data(original, np.random.default_rng(0))
    if case.prepare:
        subprocess.run(
            [python, "-W", "ignore", *shlex.split(case.prepare)],
            cwd=original,
            env=os.environ | {"PYTHONHASHSEED": "0"},
            check=True,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
    report = jumar("port", original, "--to", ported, "--json", *port_options)
    check = jumar(
        *("port", "check", ported, "--against", original, "--steps", case.steps, "--json"),
        *("--python", python, "--timeout", "10min"),
        *("--", *shlex.split(case.command)),
    )
    return row(name, report, check), check


def jumar(*arguments: object) -> dict[str, Any]:
    """The JSON that a command prints; exit code 1 is an answer, another one is not."""
    command = [sys.executable, "-m", "jumar", *map(str, arguments)]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=False)
    if done.returncode not in (0, 1):
        raise SystemExit(f"{shlex.join(command)} left with {done.returncode}")
    return json.loads(done.stdout)


def row(name: str, report: dict[str, Any], check: dict[str, Any]) -> Row:
    losses = check["losses"] or {"steps": [], "largest_relative_difference": None}
    steps = losses["steps"]
    largest = losses["largest_relative_difference"]
    return Row(
        name=name,
        edits=sum(len(file.get("edits", ())) for file in report.get("files", ())),
        stages=f"{sum(stage['status'] == 'passed' for stage in check['stages'])}"
        f" of {len(check['stages'])}",
        num_equal=sum(step["relative_difference"] == 0 for step in steps),
        num_losses=len(steps),
        largest_difference=float("inf") if largest is None else largest,
        first=f"{steps[0]['port']:.6g}" if steps else "",
        last=f"{steps[-1]['port']:.6g}" if steps else "",
        seconds=check["seconds"],
        passed=check["passed"],
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("checkouts", nargs="+", metavar="NAME=PATH", help=f"{', '.join(CASES)}")
    parser.add_argument("--tensorflow-python", required=True)
    parser.add_argument(
        "--port-options", default="--precision allow_mix_precision --loss-scale exponential"
    )
    parser.add_argument("--keep", type=Path, help="put data, ports and reports into this folder")
    options = parser.parse_args()
    wanted = [text.partition("=")[::2] for text in options.checkouts]
    unknown = [name for name, path in wanted if name not in CASES or not Path(path).is_dir()]
    if unknown:
        parser.error(f"{', '.join(unknown)}: give NAME=FOLDER, NAME one of {', '.join(CASES)}")
    rows: list[Row] = []
    print("| original | edits | stages passed | losses equal | largest difference | loss | s |")
    print("|---|---|---|---|---|---|---|", flush=True)
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.keep or Path(temporary)
        for name, path in wanted:
            made, check = measure(
                name,
                Path(path),
                folder,
                python=options.tensorflow_python,
                port_options=shlex.split(options.port_options),
            )
            rows.append(made)
            print(
                f"| {made.name} | {made.edits} | {made.stages} | {made.num_equal} of "
                f"{made.num_losses} "
                f"| {made.largest_difference:.1e} | {made.first} → {made.last} | "
                f"{made.seconds:.0f} |",
                flush=True,
            )
            if not made.passed:
                print(json.dumps(check["stages"], indent=2), file=sys.stderr)
            (folder / name / "check.json").write_text(json.dumps(check, indent=2))
    sys.exit(0 if all(made.passed for made in rows) else 1)


if __name__ == "__main__":
    main()
