"""Launches training on a Slurm cluster."""

import re
import shlex
from dataclasses import dataclass
from pathlib import Path

from jumar.ground.errors import UserError
from jumar.launching.job import Job, Launch
from jumar.launching.node import NODE_SCRIPT, node_script
from jumar.launching.templates import filled

BATCH_SCRIPT = "job.sbatch"
_SECONDS_BEFORE_END = 120
_TIME = re.compile(r"\d+(:\d\d){0,2}|\d+-\d{1,2}(:\d\d){0,2}")
"""Slurm's forms of a time limit: M, M:SS, H:MM:SS, D-H, D-H:MM and D-H:MM:SS."""
_UNLIMITED = frozenset({"infinite", "unlimited"})
_RENDEZVOUS = """\
NODE_RANK=${SLURM_NODEID:-0}
[ -n "${MASTER_ADDR:-}" ] || fail 'MASTER_ADDR is not set; job.sbatch sets it'
"""


@dataclass(frozen=True, kw_only=True)
class SlurmOptions:
    """Settings of `sbatch` other than nodes and devices.

    Attributes:
        time: Time limit, such as `8:00:00`.
        cpus: Cores per node; by default one per process on CPUs, else the cluster's default.
        directives: Additional directives, such as `qos=high`.
    """

    partition: str = ""
    account: str = ""
    time: str = ""
    cpus: int | None = None
    directives: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.time and not _TIME.fullmatch(self.time) and self.time.lower() not in _UNLIMITED:
            raise UserError(
                f"'{self.time}' is not a time limit of Slurm",
                where="--time",
                todo="Write H:MM:SS, such as 8:00:00, or D-HH:MM:SS, or a number of minutes.",
            )


def launch_on_slurm(job: Job, options: SlurmOptions, *, folder: Path, to: Path) -> Launch:
    """Return the files for Slurm.

    Args:
        job: The job to start.
        options: Settings of sbatch.
        folder: The working folder, visible to all nodes.
        to: The folder for the files; the script names it, since sbatch copies the script elsewhere.
    """
    batch = filled(
        BATCH_SCRIPT,
        NAME=job.name,
        NODES=str(job.nodes),
        DIRECTIVES=_directives(job, options),
        NODE_SCRIPT=shlex.quote(str(to / NODE_SCRIPT)),
    )
    node = node_script(
        job,
        rendezvous=_RENDEZVOUS,
        about="Started by srun in job.sbatch, once per node.",
        folder=shlex.quote(str(folder)),
    )
    return Launch(
        files={BATCH_SCRIPT: batch, NODE_SCRIPT: node},
        about={BATCH_SCRIPT: "for sbatch", NODE_SCRIPT: "runs on each node"},
        start=(f"sbatch {{to}}/{BATCH_SCRIPT}",),
        notes=("All nodes must see the working folder and this folder under the same paths.",),
    )


def _directives(job: Job, options: SlurmOptions) -> str:
    cpus = options.cpus or (job.devices if job.accelerator == "cpu" else None)
    directives = [
        f"job-name={job.name}",
        f"nodes={job.nodes}",
        "ntasks-per-node=1",
        f"cpus-per-task={cpus}" if cpus else "",
        {"cpu": "", "cuda": f"gpus-per-node={job.devices}", "npu": f"gres=npu:{job.devices}"}[
            job.accelerator
        ],
        f"partition={options.partition}" if options.partition else "",
        f"account={options.account}" if options.account else "",
        f"time={options.time}" if options.time else "",
        # Sent before the time limit: jumar writes a checkpoint on SIGTERM.
        f"signal=TERM@{_SECONDS_BEFORE_END}",
        "requeue",
        "open-mode=append",
        *options.directives,
    ]
    for text in filter(None, directives):
        if not re.fullmatch(r"[a-z][-a-z]*(=[\w.,:/%@+\[\]()*&|!~-]+)?", text):
            raise UserError(
                f"'{text}' is not a directive of sbatch",
                where="--sbatch",
                todo="Write NAME=VALUE as after `#SBATCH --`, without spaces: --sbatch qos=high",
            )
    return "\n".join(f"#SBATCH --{text}" for text in directives if text)
