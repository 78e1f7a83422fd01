"""Starts the written files: on this machine, through Slurm, or in a container."""

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

_TIMEOUT_S = 60
_MANUAL_START = {
    "modelarts": "Copy the code to OBS, and post job.json to the ModelArts API.",
    "kubernetes": "Run `kubectl apply -f job.yaml` on a machine that has access to the cluster.",
}


def check_startable(place: str) -> None:
    """Check that the launcher can be started from here, before anything is written.

    Raises:
        UserError: The launcher cannot be started from here, is not installed, or does not answer.
    """
    if place in _MANUAL_START:
        raise UserError(
            f"{place} jobs cannot be started from here",
            where="--run",
            todo=f"Omit it. {_MANUAL_START[place]}",
        )
    program = {"this": "bash", "slurm": "sbatch", "docker": "docker"}[place]
    if shutil.which(program) is None:
        raise UserError(
            f"{program} is not installed here",
            where="--run",
            todo="Omit --run, and start the files on a machine that has it installed.",
        )
    if place == "docker" and _output_of(["docker", "info"]).returncode != 0:
        raise UserError(
            "the docker daemon does not answer: `docker info` fails",
            where="--run",
            todo="Start the daemon, or omit --run and start the files on a machine with docker.",
        )


def start_here(to: Path) -> None:
    """Replace this process with training on this machine, which then gets its signals."""
    _replace_process(["bash", str(to / START_SCRIPT)])


def start_in_docker(to: Path, accelerator: Accelerator) -> int:
    """Build the image if there is a Dockerfile, then replace this process with the container.

    Returns:
        The exit status of a failed build; otherwise, the function does not return.
    """
    if (to / DOCKERFILE).is_file():
        build = ["docker", "build", "-t", own_image(accelerator), str(to)]
        status = subprocess.run(build, check=False).returncode
        if status:
            return status
    _replace_process(["bash", str(to / DOCKER_SCRIPT)])
    return 0


def submit(to: Path) -> str:
    """Submit the job to Slurm.

    Returns:
        The job number.

    Raises:
        UserError: Slurm rejects the job; the message quotes Slurm's.
    """
    answer = _output_of(["sbatch", "--parsable", BATCH_SCRIPT], folder=to)
    if answer.returncode != 0:
        raise UserError(
            f"sbatch rejects the job: {answer.stderr.strip() or answer.stdout.strip()}",
            where=str(to / BATCH_SCRIPT),
            todo="Correct this with an option or in the file, and submit the file with sbatch.",
        )
    return answer.stdout.strip().partition(";")[0]


def _output_of(
    command: list[str], folder: Path | None = None
) -> "subprocess.CompletedProcess[str]":
    try:
        return subprocess.run(
            command, cwd=folder, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False
        )
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess(command, 1, "", f"no answer within {_TIMEOUT_S} s")


def _replace_process(command: list[str]) -> None:
    sys.stdout.flush()
    sys.stderr.flush()
    os.execvp(command[0], command)  # noqa: S606
