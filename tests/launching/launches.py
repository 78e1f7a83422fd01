"""Launches written into a folder, and stand-ins for python, docker and sbatch."""

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

from jumar.launching.job import Job, Launch

HARD = ("a b", "$HOME", "'", '"', "`id`", "\\", "*", "#x", "~", "!", "é", "{}", "-", "")
"""Words that shells, YAML or JSON could take for something else."""


def job(**changes) -> Job:
    values = {"name": "small", "words": (("train it.py",), ("--lr", "0.1")), "accelerator": "cpu"}
    return Job(**{**values, **changes})


def written(launch: Launch, folder: Path) -> Path:
    for name, text in launch.files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    return folder


def stand_in(folder: Path, name: str = "python", then: str = "") -> Path:
    """A program that saves its arguments and variables in its own JSON file, and returns 0.

    Args:
        folder: Where it and the files go.
        name: What it is called.
        then: Python that it runs then, with `arguments` and `variables`.
    """
    folder.mkdir(exist_ok=True)
    (folder / f"{name}.py").write_text(
        "import json, os, sys, time\n"
        "arguments, variables = sys.argv[1:], dict(os.environ)\n"
        f"place = os.path.join({str(folder)!r}, 'call-%d.json' % os.getpid())\n"
        "with open(place, 'w') as file:\n"
        "    json.dump({'arguments': arguments, 'variables': variables, 'in': os.getcwd()}, file)\n"
        f"{then}\n"
    )
    # A first line that names the interpreter itself would not do where its path has a space.
    program = folder / name
    words = shlex.join([sys.executable, str(folder / f"{name}.py")])
    program.write_text(f'#!/bin/sh\nexec {words} "$@"\n')
    program.chmod(0o755)
    return program


def calls(folder: Path) -> list[dict]:
    return [json.loads(path.read_text()) for path in sorted(folder.glob("call-*.json"))]


def bash(
    script: Path, *arguments: str, cwd: Path | None = None, **variables: str
) -> subprocess.CompletedProcess[str]:
    """Run a script; variables of a job that this process belongs to are left out."""
    ours = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "NODE_RANK", "MASTER_ADDR", "MASTER_PORT")
    kept = {name: text for name, text in os.environ.items() if name not in ours}
    return subprocess.run(
        ["bash", str(script), *arguments],
        cwd=cwd,
        env={**kept, **variables},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
