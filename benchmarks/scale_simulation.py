"""How long a step takes on 8, 64 and 512 cards, simulated from what one card takes.

    python benchmarks/scale_simulation.py
    python benchmarks/scale_simulation.py --network bert-base --cards 8 16 32 --inter-gb-s 25

No cluster was at hand: this says what the two ways of adding gradients up would cost where the
links do what is published of them, and nothing else goes wrong. Three kinds are simulated:

- fast: buckets of 25 MiB are all-reduced while the backward pass goes on, as
  DistributedDataParallel does.
- exact: an all-to-all a bucket during the backward pass of the last part, and after it an
  all-gather a bucket, as `training.sums=exact` does.
- overlapped: both during the backward pass.

Every card has one stream that computes and one that communicates. A collective begins when the
slowest card has its gradients and the collective before it has ended. Within a machine there are
two groups of four cards, all joined by a link each, and the groups by PCIe; between machines each
card has a port of its own, and the network is not oversubscribed. An all-reduce scatters within
the machine, rings between machines and gathers within. Each message has a latency.

Left out: adding up the slices received (a read of the gradients), the input pipeline, the update,
and that communication takes memory bandwidth from the computation (20 to 40 % of some matrix
products, says the source of the link rates).

Where the defaults come from:

- BERT-base, 312 sequences/s with batch 128 on one Ascend 910: ModelZoo-TensorFlow,
  BertBase_Google_ID0631 (@a2c3332a); 8 cards there 1,781/s. The delivery of BERT-base for
  TensorFlow 1.15 logs 2.451 steps/s on each of 8 cards: 313.7 sequences/s a card.
- ResNeXt-50, 741.5 images/s with batch 32 on one Ascend 910: the log in the delivery of ResNeXt-50
  for TensorFlow 1.15.
- Links: HCCS 30 GB/s between two cards, PCIe 4.0 x16 32 GB/s, RoCE 100 Gbit/s a card: Zhou et al.,
  Accelerating Model Training on Ascend Chips, ATC 2025, appendix A (as a review of it quotes it;
  the paper itself was not at hand). Two groups of four: Huawei Cloud, CCE, "NPU affinity".
- A backward pass takes twice as long as a forward pass; latencies of 5 and 10 us a message and a
  spread of 1 % between cards are assumptions.
"""

import argparse
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from statistics import mean

GROUP = 4
MACHINE = 8
BUCKET = 25 * 2**20
FIRST_BUCKET = 2**20
KINDS = ("fast", "exact", "overlapped")


@dataclass(frozen=True, kw_only=True)
class Layer:
    """Consecutive parameters whose gradients become ready together.

    Attributes:
        parameters: How many.
        work: Multiply-adds of the forward pass a sample; only ratios matter.
    """

    parameters: int
    work: float


@dataclass(frozen=True, kw_only=True)
class Network:
    """What a step of one card consists of, layers in the order of the forward pass."""

    layers: Sequence[Layer]
    batch: int
    samples_per_s: float

    @property
    def step_s(self) -> float:
        """Seconds of a step on one card."""
        return self.batch / self.samples_per_s


@dataclass(frozen=True, kw_only=True)
class Links:
    """Rates in bytes a second, latencies in seconds a message."""

    card_to_card: float = 30e9
    group_to_group: float = 32e9
    machine_to_machine: float = 12.5e9
    within_s: float = 5e-6
    between_s: float = 10e-6


@dataclass(frozen=True, kw_only=True)
class Step:
    """A simulated step.

    Attributes:
        seconds: From its begin to the end of the last collective.
        communication_s: The time all collectives take.
        exposed_s: The part of the step in which the slowest card only communicates.
    """

    seconds: float
    communication_s: float
    exposed_s: float


def bert_base() -> Network:
    """BERT-base with 128 tokens, whose word embeddings are the output's weights, too."""
    hidden, inner, tokens, words = 768, 3072, 128, 30522
    blocks = 4 * (hidden * hidden + hidden) + 2 * hidden * inner + inner + hidden + 4 * hidden
    matmuls = (4 * hidden * hidden + 2 * hidden * inner) * tokens + 2 * hidden * tokens * tokens
    embeddings = (words + 512 + 2) * hidden + 2 * hidden
    pooled = hidden * hidden + hidden + 2 * hidden + 2
    predictions = hidden * hidden + hidden + 2 * hidden + words
    # 20 of the 128 tokens are predicted; the gradient of the shared words is ready at the very end.
    output_work = 20.0 * (hidden * hidden + hidden * words)
    return Network(
        layers=[
            Layer(parameters=embeddings, work=0.0),
            *[Layer(parameters=blocks, work=matmuls)] * 12,
            Layer(parameters=pooled + predictions, work=output_work),
        ],
        batch=128,
        samples_per_s=312.0,
    )


def resnext50() -> Network:
    """ResNeXt-50 32x4d for 1001 classes at 224 px, a layer for each of its blocks."""
    layers = [Layer(parameters=64 * 3 * 49 + 128, work=64 * 3 * 49 * 112.0**2)]
    inputs, side = 64, 56.0
    for stage, blocks in enumerate((3, 4, 6, 3)):
        width, outputs = 128 << stage, 256 << stage
        for block in range(blocks):
            down = 2 if block == 0 and stage else 1
            first, grouped, last = inputs * width, 9 * width * width // 32, width * outputs
            shortcut = inputs * outputs if block == 0 else 0
            norms = 2 * (2 * width + outputs) + (2 * outputs if block == 0 else 0)
            work = first * side**2
            side /= down
            work += (grouped + last + shortcut) * side**2
            parameters = first + grouped + last + shortcut + norms
            layers.append(Layer(parameters=parameters, work=work))
            inputs = outputs
    layers.append(Layer(parameters=2048 * 1001 + 1001, work=2048.0 * 1001))
    return Network(layers=layers, batch=32, samples_per_s=741.5)


NETWORKS = {"bert-base": bert_base, "resnext50": resnext50}


def all_reduce_s(size: float, cards: int, links: Links) -> float:
    """Seconds of an all-reduce: scattered in the machine, a ring between machines, gathered."""
    return _halves_s(size, cards, links) * 2


def all_gather_s(size: float, cards: int, links: Links) -> float:
    """Seconds until every card has the slices of all."""
    return _halves_s(size, cards, links)


def _halves_s(size: float, cards: int, links: Links) -> float:
    inside = min(cards, MACHINE)
    machines = cards // inside
    slowest = links.card_to_card
    if inside > GROUP:
        slowest = min(slowest, links.group_to_group)
    within = (inside - 1) * (size / inside / slowest + links.within_s) if inside > 1 else 0.0
    part = size / inside / machines
    between = (machines - 1) * (part / links.machine_to_machine + links.between_s)
    return within + between


def all_to_all_s(size: float, cards: int, links: Links) -> float:
    """Seconds until every card has its slice of every other's gradients.

    Links to the cards of its group carry one slice each, the way to the other group all of its
    own four, and the port one for each card of the other machines; all three at once.
    """
    part = size / cards
    neighbours = min(cards, GROUP) - 1
    across = min(cards, MACHINE) - neighbours - 1
    outside = cards - min(cards, MACHINE)
    return max(
        part / links.card_to_card + neighbours * links.within_s if neighbours else 0.0,
        across * (part / links.group_to_group + links.within_s),
        outside * (part / links.machine_to_machine + links.between_s),
    )


def exchange_s(kind: str, size: float, cards: int, links: Links) -> float:
    """Seconds of what adds a buffer up over all cards."""
    if kind == "fast":
        return all_reduce_s(size, cards, links)
    return all_to_all_s(size, cards, links) + all_gather_s(size, cards, links)


def buckets(network: Network) -> list[tuple[int, float]]:
    """Bytes of each bucket, and the part of the backward pass after which it is full."""
    whole = sum(layer.work for layer in network.layers)
    filled: list[tuple[int, float]] = []
    size, done, limit = 0, 0.0, FIRST_BUCKET
    for layer in reversed(network.layers):
        size += 4 * layer.parameters
        done += layer.work
        if size >= limit:
            filled.append((size, done / whole))
            size, limit = 0, BUCKET
    if size:
        filled.append((size, 1.0))
    return filled


def simulate(
    network: Network,
    kind: str,
    cards: int,
    links: Links,
    *,
    parts: int = 1,
    spread: float = 0.0,
    steps: int = 20,
    seed: int = 1,
) -> Step:
    """The mean step.

    Args:
        network: What a card computes.
        kind: One of `KINDS`.
        cards: A divisor or a multiple of a machine's 8.
        links: What the cards are joined by.
        parts: Parts of a card's batch; gradients are exchanged in the last one.
        spread: Standard deviation of a card's computation from step to step, as a share of it.
        steps: How many to take the mean of.
        seed: Of the spread.
    """
    draw = random.Random(seed)
    return _mean(
        [
            _one_step(
                network,
                kind,
                cards,
                links,
                parts=parts,
                slowest=max(max(draw.gauss(1.0, spread), 0.0) for _ in range(cards)),
            )
            for _ in range(steps)
        ]
    )


def _one_step(
    network: Network, kind: str, cards: int, links: Links, *, parts: int, slowest: float
) -> Step:
    computed = network.step_s * slowest
    backward = computed * 2 / 3 / parts
    begins = computed - backward
    ready = [(size, begins + backward * share) for size, share in buckets(network)]
    free = 0.0
    busy = 0.0
    sending = [(at, exchange_s(kind, size, cards, links)) for size, at in ready]
    if kind == "exact":
        sending = [(at, all_to_all_s(size, cards, links)) for size, at in ready]
        sending += [(computed, all_gather_s(size, cards, links)) for size, _ in ready]
    for at, taken in sending:
        free = max(free, at) + taken
        busy += taken
    end = max(free, computed)
    return Step(seconds=end, communication_s=busy, exposed_s=end - computed)


def _mean(steps: Sequence[Step]) -> Step:
    return Step(
        seconds=mean(step.seconds for step in steps),
        communication_s=mean(step.communication_s for step in steps),
        exposed_s=mean(step.exposed_s for step in steps),
    )


def rows(arguments: argparse.Namespace) -> Iterator[str]:
    """The lines of the table, in Markdown."""
    links = Links(
        card_to_card=arguments.intra_gb_s * 1e9,
        group_to_group=arguments.pcie_gb_s * 1e9,
        machine_to_machine=arguments.inter_gb_s * 1e9,
        within_s=arguments.intra_us * 1e-6,
        between_s=arguments.inter_us * 1e-6,
    )
    heads = ("network", "cards", "sums", "step, ms", "communication, ms", "not hidden, ms")
    heads += ("efficiency", "samples/s")
    yield f"| {' | '.join(heads)} |"
    yield "|---" * len(heads) + "|"
    for name in arguments.network:
        network = NETWORKS[name]()
        if arguments.samples_per_s:
            network = replace(network, samples_per_s=arguments.samples_per_s)
        for cards in arguments.cards:
            for kind in KINDS:
                step = simulate(
                    network,
                    kind,
                    cards,
                    links,
                    parts=1 if kind == "fast" else arguments.parts,
                    spread=arguments.spread,
                )
                yield (
                    f"| {name} | {cards} | {kind} | {1000 * step.seconds:.1f} "
                    f"| {1000 * step.communication_s:.1f} | {1000 * step.exposed_s:.1f} "
                    f"| {network.step_s / step.seconds:.1%} "
                    f"| {cards * network.batch / step.seconds:,.0f} |"
                )


def _cards(text: str) -> int:
    cards = int(text)
    if cards < 1 or (cards > MACHINE and cards % MACHINE) or (cards <= MACHINE and MACHINE % cards):
        raise argparse.ArgumentTypeError(f"{cards} is no divisor or multiple of {MACHINE}")
    return cards


def main(given: Sequence[str] | None = None) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description="Simulate steps on many cards.")
    parser.add_argument("--network", nargs="+", choices=NETWORKS, default=list(NETWORKS))
    parser.add_argument("--cards", nargs="+", type=_cards, default=[1, 8, 64, 512])
    parser.add_argument("--samples-per-s", type=float, help="of one card, with --network of one")
    parser.add_argument("--intra-gb-s", type=float, default=30.0, help="between two cards")
    parser.add_argument("--pcie-gb-s", type=float, default=32.0, help="between groups of four")
    parser.add_argument("--inter-gb-s", type=float, default=12.5, help="of a card's port")
    parser.add_argument("--intra-us", type=float, default=5.0, help="latency within a machine")
    parser.add_argument("--inter-us", type=float, default=10.0, help="latency between machines")
    parser.add_argument("--parts", type=int, default=1, help="of a card's batch, for exact sums")
    parser.add_argument("--spread", type=float, default=0.01, help="between cards, a share")
    for line in rows(parser.parse_args(given)):
        print(line)


if __name__ == "__main__":
    main()
