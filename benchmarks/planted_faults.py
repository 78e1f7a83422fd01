"""Plant faults into kernels of real networks, and see whether `compare` names the right op first.

    python benchmarks/planted_faults.py --seed 7 --faults 24 --healthy 10

A fault is drawn by the seed: a network, a kind, a call of an op (forward or backward) and which of
its outputs is wrong. A step (forward, loss, backward, update) is dumped with and without it. The
candidate also runs with other kernels (two threads, and but in ResNeXt-50 without oneDNN), so that
all of its numbers differ by rounding, or with `--bfloat16` under autocast. Faults that change the
call's outputs by less than twice what that changes are drawn again.

Pairs without a fault (another number of threads, bfloat16, another processor setting, other
kernels) must name no op and have under 5 % of their values flagged. Both levels of dumps are
scored: tensors, and statistics alone.
"""

import argparse
import contextlib
import io
import math
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Collection, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional

import jumar.precision
from faulty_kernels import KINDS, SEEN, UNSEEN, Fault, FaultyKernel, Planted, spoilable, suits
from jumar.models.alexnet import AlexNet
from jumar.models.bert.heads import BertForPretraining
from jumar.models.bert.network import BertSize
from jumar.models.dscnn import DSCNN
from jumar.models.keyed_random import set_random_position
from jumar.models.nlrn import NLRN
from jumar.models.resnext import ResNeXt50
from jumar.precision.comparing.compare import compare_dumps
from jumar.precision.comparing.comparison import Comparison, call_name
from jumar.precision.dumps.dump import Call, Dump
from jumar.precision.dumps.ours import read_dump

OTHER_PROCESSOR = {"ONEDNN_MAX_CPU_ISA": "AVX2", "ATEN_CPU_CAPABILITY": "default"}
_MOVES = ("clone", "_to_copy", "copy_", "cat", "index", "slice_backward", "select_backward")
"""Ops that move numbers and compute none."""
_MOVES += ("zeros", "ones", "full", "fill", "arange", "scalar_tensor", "new_", "embedding", "split")
_LEVELS = ("tensors", "statistics")
_MIN_EFFECT = 2.0

Loss = Callable[[], Tensor]


def _classified(model: nn.Module, data: Tensor) -> tuple[nn.Module, Loss]:
    labels = torch.randint(10, data.shape[:1])
    return model, lambda: functional.cross_entropy(model(data).float(), labels)


def _alexnet() -> tuple[nn.Module, Loss]:
    return _classified(AlexNet(num_classes=10, image_size=64), torch.randn(4, 3, 64, 64))


def _resnext() -> tuple[nn.Module, Loss]:
    return _classified(ResNeXt50(num_classes=10), torch.randn(2, 3, 64, 64))


def _dscnn() -> tuple[nn.Module, Loss]:
    return _classified(DSCNN(num_labels=10), torch.randn(4, 49, 10))


def _nlrn() -> tuple[nn.Module, Loss]:
    model, clean = NLRN(steps=2, filters=32, embedded=16), torch.rand(2, 1, 16, 16)
    # At zero, where it begins, nothing in front of it has a gradient.
    nn.init.normal_(model.recurrence.non_local.g.weight, std=0.1)
    noisy = clean + 0.1 * torch.randn_like(clean)
    return model, lambda: functional.mse_loss(model(noisy).float(), clean)


def _bert() -> tuple[nn.Module, Loss]:
    size = BertSize(
        vocab_size=500, hidden_size=128, num_layers=2, num_heads=4, intermediate_size=512
    )
    model = BertForPretraining(size)
    words, segments = torch.randint(500, (4, 24)), torch.arange(24).ge(12).long().expand(4, 24)
    lengths = torch.tensor([[24], [24], [20], [17]])
    mask = (torch.arange(24) < lengths).long()
    places, order = torch.tensor([1, 9, 30, 41, 50, 70]), torch.tensor([0, 1, 1, 0])

    def loss() -> Tensor:
        encoded = model.bert(words, segments, mask)
        masked = model.word_losses(encoded, places, words.flatten()[places])
        return masked.mean() + functional.cross_entropy(model.sentence_logits(encoded), order)

    return model, loss


NETWORKS: Mapping[str, Callable[[], tuple[nn.Module, Loss]]] = {
    "alexnet": _alexnet,
    "resnext50": _resnext,
    "nlrn": _nlrn,
    "dscnn": _dscnn,
    "bert": _bert,
}


@dataclass(frozen=True, kw_only=True)
class Setting:
    """How a step runs.

    Attributes:
        onednn: Whether kernels of oneDNN are used.
        threads: Number of threads.
        bfloat16: Whether forward runs under autocast.
    """

    onednn: bool = True
    threads: int = 1
    bfloat16: bool = False


def prepared(network: str, seed: int) -> tuple[nn.Module, Callable[[Setting], None]]:
    """A network, and a function that makes one training step of it."""
    torch.manual_seed(seed)
    model, loss_of = NETWORKS[network]()
    set_random_position(model, seed, 0)
    optimizer = (
        torch.optim.AdamW(model.parameters(), 0.001)
        if network == "bert"
        else torch.optim.SGD(model.parameters(), 0.001, momentum=0.9)
    )

    def step(setting: Setting) -> None:
        torch.set_num_threads(setting.threads)
        with torch.backends.mkldnn.flags(enabled=setting.onednn):
            with torch.autocast("cpu", torch.bfloat16, enabled=setting.bfloat16):
                loss = loss_of()
            loss.backward()
            optimizer.step()
        torch.set_num_threads(1)

    return model, step


def record(
    network: str, seed: int, folder: Path, setting: Setting, planted: Planted | None = None
) -> Dump:
    """Dump a step of a network into a new folder."""
    model, step = prepared(network, seed)
    place = Path(tempfile.mkdtemp(dir=folder))
    with (
        FaultyKernel(planted) if planted else nullcontext(),
        contextlib.redirect_stderr(io.StringIO()),
        jumar.precision.dump(place, level="tensors", model=model),
    ):
        step(setting)
    return read_dump(place)


def record_elsewhere(network: str, seed: int, folder: Path) -> Dump:
    """Dump a step in a process with another processor setting."""
    place = Path(tempfile.mkdtemp(dir=folder))
    command = [sys.executable, __file__, "--record", network, str(seed), str(place)]
    subprocess.run(command, env=os.environ | OTHER_PROCESSOR, check=True)
    return read_dump(next(place.iterdir()))


REFERENCE = Setting()


def other(network: str, *, bfloat16: bool = False) -> Setting:
    """A candidate with other kernels."""
    # Without oneDNN grouped convolutions and bfloat16 take a minute.
    is_slow = bfloat16 or network == "resnext50"
    return Setting(onednn=is_slow, threads=2, bfloat16=bfloat16)


def planted_at(kind: str, plan: Dump, target: Call, output: int) -> Planted:
    """The fault at a call of a dump."""
    same = [call.key for call in plan.calls if call.kind == "op" and call.op == target.op]
    return Planted(kind=kind, op=target.op, number=same.index(target.key), output=output)


@dataclass(frozen=True, kw_only=True)
class Drawn:
    """A fault that was drawn, with the healthy and the faulty dump."""

    what: str
    network: str
    seed: int
    planted: Planted
    target: Call
    before: Dump
    after: Dump


def draw_fault(
    draw: random.Random,
    kinds: Mapping[str, Fault],
    folder: Path,
    *,
    bfloat16: bool = False,
    networks: Collection[str] = NETWORKS,
    ops: Collection[str] = (),
) -> Drawn:
    """Draw a fault, in certain networks, and of certain ops alone if any are named."""
    while True:
        kind, network = draw.choice(sorted(kinds)), draw.choice(sorted(networks))
        seed = draw.randrange(1000)
        before = record(network, seed, folder, REFERENCE)
        # The candidate's own calls: under autocast some are of other dtypes.
        plan = record(network, seed, folder, other(network, bfloat16=bfloat16))
        known = {call.key for call in before.calls}
        choices = [
            call
            for call in plan.calls
            if call.kind == "op" and call.key in known and _computes(call) and suits(kind, call)
            if not ops or call.op.split(".")[1] in ops
        ]
        if not choices:
            continue
        target = draw.choice(choices)
        output = int(draw.choice(spoilable(target)).name)
        planted = planted_at(kind, plan, target, output)
        after = record(network, seed, folder, other(network, bfloat16=bfloat16), planted)
        effect = _effect(before, plan, after, target)
        if effect > _MIN_EFFECT:
            what = f"{kind} in {network} (seed {seed}, output {output}, effect {effect:.2g})"
            return Drawn(
                what=what,
                network=network,
                seed=seed,
                planted=planted,
                target=target,
                before=before,
                after=after,
            )


def _computes(call: Call) -> bool:
    return bool(spoilable(call)) and not call.op.removeprefix("aten.").startswith(_MOVES)


def _effect(before: Dump, plan: Dump, after: Dump, target: Call) -> float:
    """How much more a fault changes of an output of the call than other kernels or rounding do.

    A gradient that is zero in theory may be lost without any effect.
    """
    reference, healthy, faulty = (_outputs(dump, target) for dump in (before, plan, after))
    effect = 0.0
    for name, wrong in faulty.items():
        usual = (reference[name] - healthy[name]).norm().item()
        usual = max(usual, 2**-24 * healthy[name].norm().item())
        change = (wrong - healthy[name]).norm().item()
        if change != 0:  # or not a number
            effect = max(effect, change / usual if usual and math.isfinite(change) else math.inf)
    return effect


def _outputs(dump: Dump, target: Call) -> dict[str, Tensor]:
    """The float outputs of a call."""
    call = next(call for call in dump.calls if call.key == target.key)
    assert dump.tensors is not None
    return {
        value.name: dump.tensors.read(value.tensor).double()
        for value in call.values
        if value.role == "output" and value.tensor and "float" in value.dtype
    }


def compared(before: Dump, after: Dump, level: str) -> Comparison:
    """Two dumps compared, with their tensors or as if they had none."""
    if level == "statistics":
        before, after = (replace(dump, tensors=None) for dump in (before, after))
    return compare_dumps(before, after)


def first_named(comparison: Comparison) -> str:
    """The name of the first offender."""
    return comparison.offenders[0].name if comparison.offenders else "none"


def first_names(drawn: Drawn) -> dict[str, str]:
    """What is named first, by level."""
    return {level: first_named(compared(drawn.before, drawn.after, level)) for level in _LEVELS}


def score_faults(options: argparse.Namespace) -> None:
    """Draw faults, compare, and print how many are named first."""
    kinds = {"seen": SEEN, "unseen": UNSEEN, "all": KINDS}[options.kinds]
    draw = random.Random(options.seed)
    right = dict.fromkeys(_LEVELS, 0)
    for _ in range(options.faults):
        start = time.monotonic()
        with tempfile.TemporaryDirectory() as folder:
            drawn = draw_fault(draw, kinds, Path(folder), bfloat16=options.bfloat16)
            firsts = first_names(drawn)
        name = call_name(drawn.target)
        wrong = {level: first for level, first in firsts.items() if first != name}
        for level in _LEVELS:
            right[level] += firsts[level] == name
        seconds = time.monotonic() - start
        verdict = (
            f"{'MISS' if wrong else 'ok  '} {drawn.what}: {name}{f'; {wrong}' if wrong else ''}"
        )
        print(f"{verdict} ({seconds:.0f} s)", flush=True)
    for level in _LEVELS:
        print(f"{level}: {right[level]} of {options.faults} faults named first", flush=True)


def score_healthy(options: argparse.Namespace) -> None:
    """Compare pairs without a fault, and print what is named and flagged."""
    draw = random.Random(f"healthy {options.seed}")
    flagged, rows, named = dict.fromkeys(_LEVELS, 0), dict.fromkeys(_LEVELS, 0), 0
    for number in range(options.healthy):
        network, seed = sorted(NETWORKS)[number % len(NETWORKS)], draw.randrange(1000)
        kind = ("threads", "bfloat16", "processor", "kernels")[number % 4]
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            before = record(network, seed, folder, REFERENCE)
            if kind == "processor":
                after = record_elsewhere(network, seed, folder)
            else:
                setting = other(network, bfloat16=kind == "bfloat16")
                setting = Setting(threads=2) if kind == "threads" else setting
                after = record(network, seed, folder, setting)
            for level in _LEVELS:
                comparison = compared(before, after, level)
                flagged[level] += comparison.flagged
                rows[level] += comparison.rows
                named += bool(comparison.offenders)
                highest = max(comparison.calls, key=lambda call: call.ratio)
                print(
                    f"{'FALSE' if comparison.offenders else 'ok   '} healthy {network} (seed"
                    f" {seed}), {kind}, {level}: named {first_named(comparison)}, flagged"
                    f" {comparison.flagged} of {comparison.rows}, highest ratio"
                    f" {highest.ratio:.2g} at {highest.name}",
                    flush=True,
                )
    for level in _LEVELS:
        share = flagged[level] / max(rows[level], 1)
        print(f"{level}: {share:.2%} of {rows[level]} values of healthy pairs flagged")
    print(f"{named} of {2 * options.healthy} comparisons of healthy pairs name an op")


def main() -> None:
    """Draw, compare, score."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--faults", type=int, default=24)
    parser.add_argument("--healthy", type=int, default=10)
    parser.add_argument("--kinds", choices=("seen", "unseen", "all"), default="all")
    parser.add_argument("--bfloat16", action="store_true", help="faults under autocast")
    parser.add_argument("--record", nargs=3, metavar=("NETWORK", "SEED", "FOLDER"))
    options = parser.parse_args()
    torch.set_num_threads(1)
    if options.record:
        network, seed, folder = options.record
        record(network, int(seed), Path(folder), REFERENCE)
        return
    score_faults(options)
    score_healthy(options)


if __name__ == "__main__":
    main()
