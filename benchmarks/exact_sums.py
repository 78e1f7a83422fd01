"""What `training.sums=exact` costs: a step against DistributedDataParallel's of the same parts.

    python benchmarks/exact_sums.py resnext50
    python benchmarks/exact_sums.py bert --ranks 2 --rounds 20

Both kinds take turns on two (or more) ranks, which are forks with one thread each, with the same
batch cut into the same parts. Every step begins when all ranks are ready and ends when the slowest
is done. Printed are medians, and the median of the ratios of neighbours with the middle half.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from pathlib import Path
from statistics import median, quantiles

import torch.distributed as dist

from forked_ranks import run_ranks
from jumar.devices.registry import open_device
from jumar.training.parallel.announced import announced_ranks
from jumar.training.parallel.exact import adding_exactly
from on_accelerator.cases import CLASSIFIERS, PRETRAINING, Case
from on_accelerator.measuring import Context
from on_accelerator.trainings import open_training


@dataclass(frozen=True, kw_only=True)
class Sizes:
    """What is measured: a network, the batch of a rank and its parts."""

    case: Case
    settings: Sequence[str]
    batch: int
    part: int


NETWORKS = {
    "resnext50": Sizes(case=CLASSIFIERS[0], settings=("data.image_size=64",), batch=16, part=8),
    "bert": Sizes(
        case=PRETRAINING[0],
        settings=(
            "model.num_layers=4",
            "model.hidden_size=256",
            "model.num_heads=4",
            "model.intermediate_size=1024",
        ),
        batch=16,
        part=8,
    ),
}


def measure(sizes: Sizes, context: Context, rounds: int) -> tuple[list[float], list[float]]:
    """Seconds of the steps of both kinds, as the slowest rank took them."""
    device = open_device("cpu")
    ranks = announced_ranks()
    ranks.connect(device)
    steppers = []
    for kind, together in (("fast", ranks), ("exact", adding_exactly(ranks))):
        settings = [
            *sizes.case.settings(context),
            *sizes.settings,
            "precision.mode=must_keep_origin_dtype",
            "threads.intra_op=1",
            f"training.sums={kind}",
            f"training.micro_batch_size={sizes.part}",
            f"data.batch_size={sizes.batch}",
        ]
        training = open_training(sizes.case.recipe, settings, device, together)
        steppers.append((training, training.stepper()))
    times: tuple[list[float], list[float]] = ([], [])
    for number in range(rounds + 2):
        for which in (0, 1) if number % 2 else (1, 0):
            training, stepper = steppers[which]
            training.state.policy.install()
            dist.barrier()
            began = time.perf_counter()
            stepper.step(training.batch)
            dist.barrier()
            if number >= 2:
                times[which].append(time.perf_counter() - began)
    ranks.disconnect()
    return times


def report(name: str, sizes: Sizes, ranks: int, times: tuple[list[float], list[float]]) -> None:
    """Print what was measured."""
    fast, exact = times
    ratios = [after / before for before, after in zip(fast, exact, strict=True)]
    low, middle, high = quantiles(ratios, n=4)
    parts = ranks * sizes.batch // sizes.part
    print(f"{name}: {ranks} ranks, {parts} parts of {sizes.part} a step, {len(fast)} rounds")
    print(f"fast   {1000 * median(fast):8.1f} ms")
    print(f"exact  {1000 * median(exact):8.1f} ms, {middle:.2f}x ({low:.2f} to {high:.2f})")


def main() -> int:
    """Measure a network on forks."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("network", choices=sorted(NETWORKS))
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=20)
    chosen = parser.parse_args()
    sizes = NETWORKS[chosen.network]
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        context = Context(device="cpu", small=False, out=place, work=place, data=None, deadline=inf)
        sizes.case.data(context)

        def work(rank: int) -> None:
            times = measure(sizes, context, chosen.rounds)
            if rank == 0:
                report(chosen.network, sizes, chosen.ranks, times)

        run_ranks(chosen.ranks, work, limit_s=inf)
    return 0


if __name__ == "__main__":
    sys.exit(main())
