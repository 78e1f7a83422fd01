"""Whether `training.sums=exact` gives the same bits on 1, 2, 4 and 8 ranks, two nodes, and changes.

    python benchmarks/exact_hashes.py
    python benchmarks/exact_hashes.py bert --to runs/hashes

Trains each network on pictures or texts written on the spot, with eight parts a step: on 1, 2, 4
and 8 ranks, which are forks; on two nodes of two ranks, which are network namespaces of this
machine with a cable between them, under torchrun; and on 1, then 4, then 2 ranks, each resuming
within an epoch what the others left. Printed is a hash of each part of the last checkpoint
(weights, optimizer, counters); all of a network have to be equal. With `training.sums=fast` they
differ from two ranks on, which is shown as well.

Exit codes: 0 all hashes are equal; 1 some are not.
"""

import argparse
import importlib
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from pathlib import Path

from forked_ranks import command_line, run_ranks
from jumar.training.checkpoint_retention import list_checkpoints
from jumar.training.state_hashes import checkpoint_hashes, combined
from on_accelerator.cases import CLASSIFIERS, OTHERS, PRETRAINING, Case
from on_accelerator.measuring import Context

PARTS, SAMPLES = 8, 2
"""Parts of a step over all ranks, and samples of each."""
STEPS = 6
RANKS = ("1", "2", "4", "8", "2 nodes x 2", "1, 4, 2")
LIMIT_S = 900.0
SLIM_BERT = ("num_layers=4", "hidden_size=256", "num_heads=4", "intermediate_size=1024")
NODES = """
set -e
mount -t tmpfs none /run
ip netns add first
ip netns add second
ip link add name eth-first netns first type veth peer name eth-second netns second
ip -n first addr add 10.77.0.1/24 dev eth-first
ip -n second addr add 10.77.0.2/24 dev eth-second
for node in first second; do ip -n $node link set lo up; done
ip -n first link set eth-first up
ip -n second link set eth-second up
run="{torchrun} --nnodes 2 --nproc-per-node 2 --master-addr 10.77.0.1 --master-port 29611"
export GLOO_SOCKET_IFNAME=eth-second
ip netns exec second $run --node-rank 1 -m jumar {command} >{log}.1 2>&1 &
export GLOO_SOCKET_IFNAME=eth-first
ip netns exec first $run --node-rank 0 -m jumar {command} >{log} 2>&1
wait $!
"""


@dataclass(frozen=True, kw_only=True)
class Network:
    """What is trained: one of the cases of `accelerator.py`, made smaller."""

    case: Case
    settings: Sequence[str]


NETWORKS = {
    "alexnet": Network(case=CLASSIFIERS[1], settings=("data.image_size=64", "data.eval_path=none")),
    "resnext50": Network(
        case=CLASSIFIERS[0], settings=("data.image_size=64", "data.eval_path=none")
    ),
    "biggan": Network(case=OTHERS[0], settings=("model.width=8",)),
    "bert": Network(
        case=PRETRAINING[0],
        settings=(*(f"model.{size}" for size in SLIM_BERT), "optimizer=lamb"),
    ),
}


def arguments(
    network: Network, context: Context, run: Path, ranks: int, steps: int, sums: str
) -> list[str]:
    """The command line of a run, in which every rank has its share of the parts."""
    settings = [
        *network.case.settings(context),
        *network.settings,
        "precision.mode=must_keep_origin_dtype",
        "threads.intra_op=1",
        "data.workers=0",
        f"data.batch_size={PARTS * SAMPLES // ranks}",
        f"training.micro_batch_size={SAMPLES}",
        f"training.sums={sums}",
        f"training.duration={steps}it",
        "training.evaluate_every=",
        "training.log_every=1it",
    ]
    chosen = [word for each in settings for word in ("--set", each)]
    return ["train", network.case.recipe, "--device", "cpu", "--run-dir", str(run), *chosen]


def trained(network: Network, context: Context, ranks: str, sums: str = "exact") -> str:
    """Train on these ranks; returns the hashes of what was saved last.

    Raises:
        RuntimeError: A run failed; its log was printed.
    """
    run = context.work / "run"
    shutil.rmtree(run, ignore_errors=True)
    log = context.work / "log"
    log.unlink(missing_ok=True)
    try:
        if "nodes" in ranks:
            _train_on_nodes(arguments(network, context, run, 4, STEPS, sums), log)
        else:
            worlds = [int(world) for world in ranks.split(",")]
            for number, world in enumerate(worlds, start=1):
                steps = number * STEPS // len(worlds)
                command = arguments(network, context, run, world, steps, sums)
                if run.exists():
                    command = ["train", "--resume", "--run-dir", str(run), "--device", "cpu"]
                    command += ["--set", f"training.duration={steps}it"]
                run_ranks(world, command_line(command, world, log), limit_s=LIMIT_S)
    except (RuntimeError, subprocess.SubprocessError) as error:
        print(log.read_text(encoding="utf-8")[-4000:] if log.is_file() else error)
        raise
    *_, last = list_checkpoints(run / "checkpoints")
    parts = combined(checkpoint_hashes(last))
    return "  ".join(f"{name} {digest[:8]}" for name, digest in sorted(parts.items()))


def _train_on_nodes(command: Sequence[str], log: Path) -> None:
    script = NODES.format(
        torchrun=shlex.join([sys.executable, "-m", "torch.distributed.run"]),
        command=shlex.join(command),
        log=shlex.quote(str(log)),
    )
    subprocess.run(["unshare", "-Urnm", "bash", "-c", script], timeout=LIMIT_S, check=True)


def compared(name: str, context: Context) -> bool:
    """Print the hashes of a network; returns whether all are equal."""
    network, hashes = NETWORKS[name], list[str]()
    network.case.data(context)
    for ranks in RANKS:
        hashes.append(trained(network, context, ranks))
        print(f"{name:10} {ranks:12} {hashes[-1]}", flush=True)
    for ranks in ("1", "2"):
        print(f"{name:10} {ranks:6} fast  {trained(network, context, ranks, 'fast')}", flush=True)
    return len(set(hashes)) == 1


def main() -> int:
    """Compare the hashes of the networks."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("networks", nargs="*", choices=[*NETWORKS, []], default=[])
    parser.add_argument("--to", type=Path, help="where runs go; by default a temporary folder")
    chosen = parser.parse_args()
    os.environ.update(OMP_NUM_THREADS="1")
    for module in ("jumar.runs.train", "torch._dynamo"):
        importlib.import_module(module)
    if chosen.to is not None:
        chosen.to.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="hashes-", dir=chosen.to) as folder:
        place = Path(folder)
        context = Context(device="cpu", small=False, out=place, work=place, data=None, deadline=inf)
        equal = [compared(name, context) for name in chosen.networks or NETWORKS]
    print(f"{sum(equal)} of {len(equal)} networks have one hash on all ranks")
    return 0 if all(equal) else 1


if __name__ == "__main__":
    sys.exit(main())
