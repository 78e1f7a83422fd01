"""The script that each node runs, with any launcher."""

import shlex

from jumar.launching.cann import environment_text
from jumar.launching.job import Job
from jumar.launching.templates import assigned, filled

NODE_SCRIPT = "node.sh"
RANK_TABLE = "rank_table.json"
LOCAL_RENDEZVOUS = """\
NODE_RANK=${NODE_RANK:-0}
MASTER_ADDR=${MASTER_ADDR:-127.0.0.1}
MASTER_PORT=${MASTER_PORT:-29500}
"""
"""Variables of the caller, or else those of a single node."""
_HERE = 'here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)\n'


def node_script(
    job: Job, *, rendezvous: str, about: str, folder: str, logs: str = '"$here/logs"'
) -> str:
    """Return the text of `node.sh`.

    Args:
        job: The job to start.
        rendezvous: Shell lines that set NODE_RANK, MASTER_ADDR and MASTER_PORT.
        about: One line about how the script is started.
        folder: The working folder on the node, in shell syntax: quoted, or with variables.
        logs: The folder for the logs of all ranks, in shell syntax.
    """
    environment = environment_text(job.cann) if job.accelerator == "npu" else ""
    if job.has_rank_table:
        environment += f'export RANK_TABLE_FILE="$here/{RANK_TABLE}"\n'
    if job.cards:
        cases = [f"    {rank}) cards={cards} ;;" for rank, cards in enumerate(job.cards)]
        environment += "\n".join(['case "$NODE_RANK" in', *cases, "esac"])
        environment += '\nexport ASCEND_RT_VISIBLE_DEVICES="$cards"\n'
    if job.environment:
        environment += f"{assigned(dict(job.environment))}\n"
    return filled(
        NODE_SCRIPT,
        NAME=job.name,
        NODES=str(job.nodes),
        DEVICES=str(job.devices),
        HERE=_HERE if "$here" in logs + environment else "",
        PYTHON=shlex.quote(job.python),
        ABOUT=f"# {about}",
        RENDEZVOUS=rendezvous,
        ENVIRONMENT=f"\n{environment}" if environment else "",
        FOLDER=folder,
        LOGS=logs,
        WORDS=words_text(job),
    )


def words_text(job: Job) -> str:
    """Return the arguments of torchrun, one quoted entry per line."""
    return " \\\n".join(f"    {shlex.join(line)}" for line in job.words)
