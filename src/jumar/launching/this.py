"""Launches training on this machine; several nodes become local processes."""

import shlex
from pathlib import Path

from jumar.launching.job import Job, Launch
from jumar.launching.node import LOCAL_RENDEZVOUS, NODE_SCRIPT, node_script
from jumar.launching.templates import filled

START_SCRIPT = "start.sh"
_VISIBILITY_VARIABLES = {
    "cpu": "",
    "cuda": "CUDA_VISIBLE_DEVICES",
    "npu": "ASCEND_RT_VISIBLE_DEVICES",
}


def launch_here(job: Job, *, folder: Path) -> Launch:
    """Return the files that start training on this machine, in a working folder."""
    node = node_script(
        job,
        rendezvous=LOCAL_RENDEZVOUS,
        about="NODE_RANK=0 MASTER_ADDR=ADDRESS MASTER_PORT=29500 bash node.sh",
        folder=shlex.quote(str(folder)),
    )
    start = filled(
        "this.sh",
        NAME=job.name,
        NODES=str(job.nodes),
        PYTHON=shlex.quote(job.python),
        VISIBLE=_visible(job),
    )
    return Launch(
        files={START_SCRIPT: start, NODE_SCRIPT: node},
        about={START_SCRIPT: "starts all nodes here", NODE_SCRIPT: "runs on each node"},
        start=(f"bash {{to}}/{START_SCRIPT}",),
    )


def _visible(job: Job) -> str:
    """Return lines that restrict each node to its own devices, which it counts from 0."""
    variable = _VISIBILITY_VARIABLES[job.accelerator]
    if not variable or job.nodes == 1:
        return ""
    return (
        "    # Each node sees only its own devices, counted from 0.\n"
        f"    first=$((node * {job.devices}))\n"
        f'    {variable}=$(seq -s , "$first" $((first + {job.devices - 1})))\n'
        f"    export {variable}\n"
    )
