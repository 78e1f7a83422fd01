"""The command that resumes a stopped run on as many ranks as it had."""

import os
import uuid

from jumar.training.parallel.announced import is_elastic
from jumar.training.parallel.ranks import Ranks
from jumar.training.run_directory import RunDirectory


def resume_hint(run: RunDirectory, device: str, ranks: Ranks) -> str:
    """The line that says how to resume a stopped run: with all ranks, which share its batch.

    Args:
        run: The run.
        device: The value of --device.
        ranks: The ranks of the stopped process.
    """
    command = run.resume_command(device, _launcher(ranks))
    everywhere = (
        " on every machine" if ranks.world > ranks.local_world or _starts_over_elsewhere() else ""
    )
    return f"Resume{everywhere} with: {command}"


def _launcher(ranks: Ranks) -> list[str]:
    """The words that start `jumar` on as many ranks: everything before `train`.

    On several machines each one's number has to be filled in for `NODE_RANK`; whatever else
    torchrun's environment does not provide is a placeholder in capitals too.
    """
    if _starts_over_elsewhere():
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
        # torchrun was started with its own rendezvous, so the fixed port may be another job's.
        options = ["--standalone", *options]
    return ["torchrun", *options, "-m", "jumar"]


def _starts_over_elsewhere() -> bool:
    """Whether torchrun was started with a rendezvous that other machines may join.

    That of `--standalone` has a UUID for its name.
    """
    try:
        uuid.UUID(os.environ.get("TORCHELASTIC_RUN_ID", ""))
    except ValueError:
        return is_elastic()
    return False
