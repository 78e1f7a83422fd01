"""What to type to go on with a run that was stopped, on as many ranks as it had."""

import os

from jumar.training.parallel.ranks import Ranks
from jumar.training.run_directory import RunDirectory


def how_to_go_on(run: RunDirectory, asked_device: str, ranks: Ranks) -> str:
    """The line that says it; the batch of a run is that of all its ranks, so it needs them all.

    Args:
        run: The run.
        asked_device: As it was asked for.
        ranks: Of the process that was stopped.
    """
    command = run.resume_command(asked_device, _launcher(ranks))
    everywhere = " on every machine" if ranks.world > ranks.local_world else ""
    return f"Go on{everywhere} with: {command}"


def _launcher(ranks: Ranks) -> list[str]:
    """The words that start `jumar` on as many ranks: what comes before `train`.

    On several machines the number of each one has to be filled in, `NODE_RANK`; whatever else
    torchrun's environment does not tell is a placeholder in capitals too.
    """
    if ranks.world == 1:
        return ["jumar"]
    machines = ranks.world // ranks.local_world
    where = ["--nproc-per-node", str(ranks.local_world)]
    if machines > 1:
        where = ["--nnodes", str(machines), *where, "--node-rank", "NODE_RANK"]
        where += ["--master-addr", os.environ.get("MASTER_ADDR", "ADDRESS")]
        where += ["--master-port", os.environ.get("MASTER_PORT", "PORT")]
    elif os.environ.get("TORCHELASTIC_RUN_ID", "none") != "none":
        # Asked for a rendezvous of its own, so that the fixed port may be another job's.
        where = ["--standalone", *where]
    return ["torchrun", *where, "-m", "jumar"]
