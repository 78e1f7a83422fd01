"""The command that resumes a stopped run on the same number of ranks."""

import os
import uuid

from jumar.training.parallel.announced import is_elastic
from jumar.training.parallel.ranks import Ranks
from jumar.training.run_directory import RunDirectory


def resume_hint(run: RunDirectory, device: str, ranks: Ranks) -> str:
    """The line with the command that resumes a stopped run on all ranks, which share its batch.

    Args:
        run: The run.
        device: The value of --device.
        ranks: The ranks of the stopped process.
    """
    command = run.resume_command(device, _launcher(ranks))
    everywhere = (
        " on every machine" if ranks.world > ranks.local_world or _other_machines_may_join() else ""
    )
    return f"Resume{everywhere} with: {command}"


def _launcher(ranks: Ranks) -> list[str]:
    """The part of the command before `train`, which starts `jumar` on the same number of ranks.

    On several machines, the user has to replace `NODE_RANK` by the machine's number; other values
    that torchrun's environment does not provide are placeholders in capitals too.
    """
    if _other_machines_may_join():
        options = ["--nnodes", "MIN:MAX", "--nproc-per-node", str(ranks.local_world)]
        options += ["--max-restarts", os.environ["TORCHELASTIC_MAX_RESTARTS"]]
        options += ["--rdzv-backend", "c10d", "--rdzv-endpoint", "ADDRESS:PORT"]
        return ["torchrun", *options, "-m", "jumar"]
    if ranks.world == 1:
        return ["jumar"]
    machines = ranks.world // ranks.local_world
    options = ["--nproc-per-node", str(ranks.local_world)]
    if machines > 1:
        options = ["--nnodes", str(machines), *options, "--node-rank", "NODE_RANK"]
        options += ["--master-addr", os.environ.get("MASTER_ADDR", "ADDRESS")]
        options += ["--master-port", os.environ.get("MASTER_PORT", "PORT")]
    elif os.environ.get("TORCHELASTIC_RUN_ID", "none") != "none":
        # torchrun had its own rendezvous, so another job may be using the fixed default port.
        options = ["--standalone", *options]
    return ["torchrun", *options, "-m", "jumar"]


def _other_machines_may_join() -> bool:
    """Whether torchrun was started with a rendezvous that other machines may join.

    The rendezvous of `--standalone`, which none may join, has a UUID as its name.
    """
    try:
        uuid.UUID(os.environ.get("TORCHELASTIC_RUN_ID", ""))
    except ValueError:
        return is_elastic()
    return False
