"""Starting the written files: on this machine, by Slurm, or in a container."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from jumar.ground.errors import UserError
from jumar.launching.docker import DOCKERFILE, own_image
from jumar.launching.docker import RUN_SCRIPT as DOCKER_SCRIPT
from jumar.launching.job import Accelerator
from jumar.launching.slurm import BATCH_SCRIPT
from jumar.launching.this import START_SCRIPT

_SECONDS = 60
_BY_HAND = {
    "modelarts": "Copy the code to OBS, and post job.json to ModelArts' API.",
    "kubernetes": "Run `kubectl apply -f job.yaml` where your cluster is known.",
}


def check_startable(place: str) -> None:
    """Check that the launcher can be started from here, before anything is written.

    Raises:
        UserError: It cannot, or its program is not installed or does not answer.
    """
    if place in _BY_HAND:
        raise UserError(
            f"{place} is not started from here", where="--run", todo=f"Omit it. {_BY_HAND[place]}"
        )
    program = {"this": "bash", "slurm": "sbatch", "docker": "docker"}[place]
    if shutil.which(program) is None:
        raise UserError(
            f"{program} is not installed here",
            where="--run",
            todo="Omit --run, and start the files on a machine that has it.",
        )
    if place == "docker" and _answer(["docker", "info"]).returncode != 0:
        raise UserError(
            "docker's daemon does not answer: `docker info` fails",
            where="--run",
            todo="Start it, or omit --run and start the files on a machine with docker.",
        )


def start_here(to: Path) -> None:
    """Replace this process by training on this machine, so that signals and status are its own."""
    _become(["bash", str(to / START_SCRIPT)])


def start_in_docker(to: Path, accelerator: Accelerator) -> int:
    """Build the image if there is a Dockerfile, then replace this process with the container.

    Returns:
        The status of a build that failed; it does not return otherwise.
    """
    if (to / DOCKERFILE).is_file():
        build = ["docker", "build", "-t", own_image(accelerator), str(to)]
        status = subprocess.run(build, check=False).returncode
        if status:
            return status
    _become(["bash", str(to / DOCKER_SCRIPT)])
    return 0


def submit(to: Path) -> str:
    """Submit the job to Slurm.

    Returns:
        Its number.

    Raises:
        UserError: Slurm rejects it, with Slurm's message.
    """
    answer = _answer(["sbatch", "--parsable", BATCH_SCRIPT], folder=to)
    if answer.returncode != 0:
        raise UserError(
            f"sbatch refuses the job: {answer.stderr.strip() or answer.stdout.strip()}",
            where=str(to / BATCH_SCRIPT),
            todo="Fix what it names, by an option or in the file, and submit it with sbatch.",
        )
    return answer.stdout.strip().partition(";")[0]


def _answer(command: list[str], folder: Path | None = None) -> "subprocess.CompletedProcess[str]":
    try:
        return subprocess.run(
            command, cwd=folder, capture_output=True, text=True, timeout=_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess(command, 1, "", f"no answer within {_SECONDS} s")


def _become(command: list[str]) -> None:
    sys.stdout.flush()
    sys.stderr.flush()
    os.execvp(command[0], command)  # noqa: S606
