"""Training on this machine, also with several nodes that are local processes."""

import shlex
from pathlib import Path

from jumar.launching.job import Job, Launch
from jumar.launching.node import NODE_SCRIPT, node_script
from jumar.launching.templates import filled

START_SCRIPT = "start.sh"
_PLACE = """\
NODE_RANK=${NODE_RANK:-0}
MASTER_ADDR=${MASTER_ADDR:-127.0.0.1}
MASTER_PORT=${MASTER_PORT:-29500}
"""
_VISIBLE = {"cpu": "", "cuda": "CUDA_VISIBLE_DEVICES", "npu": "ASCEND_RT_VISIBLE_DEVICES"}


def launch_here(job: Job, *, folder: Path) -> Launch:
    """The files that start a training on this machine, from a folder."""
    node = node_script(
        job,
        place=_PLACE,
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
        about={START_SCRIPT: "starts all nodes here", NODE_SCRIPT: "what each node runs"},
        start=(f"bash {{to}}/{START_SCRIPT}",),
    )


def _visible(job: Job) -> str:
    """Each node sees its own devices, since all of them count from 0."""
    variable = _VISIBLE[job.accelerator]
    if not variable or job.nodes == 1:
        return ""
    return (
        "    # Each node sees devices of its own, and all count from 0.\n"
        f"    first=$((node * {job.devices}))\n"
        f'    {variable}=$(seq -s , "$first" $((first + {job.devices - 1})))\n'
        f"    export {variable}\n"
    )
