"""The cost of a mixlist in a training step on a CPU, in bf16.

Every variant runs one step in each round, so that whatever else the machine does meets all of
them; time is CPU time on one thread, and each figure is the median over the rounds of the ratio
to plain `torch.autocast` in the same round. The variants:

- plain: torch.autocast with torch's own lists.
- default: jumar's lists without a mixlist.
- dispatch: the ops of the mixlist on the white list. Their tensors are bf16 already, so nothing
  is cast, and what remains is the Python kernel of each call.
- mixlist: the ops of the mixlist on the black list.
- by hand: plain, with the casts of the mixlist written into the network: what fp32 for these
  ops costs without any list.

The list's own cost is `dispatch` - 1, and, with the casts, `mixlist` - `by hand`.
"""

import argparse
import json
import statistics
import tempfile
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from jumar.models.alexnet import AlexNet
from jumar.models.keyed_dropout import KeyedDropout
from jumar.models.keyed_random import set_random_position
from jumar.models.resnext import Bottleneck, ResNeXt50
from jumar.precision.policy import PrecisionPolicy
from jumar.precision.settings import PrecisionSettings

MODE = "allow_mix_precision_bf16"
LISTS = {
    "usual": ["SoftmaxV2", "ReduceSumD", "Add", "Mul"],
    "and batch norm": ["SoftmaxV2", "ReduceSumD", "Add", "Mul", "BatchNorm"],
}


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--net", choices=("resnext50", "alexnet", "both"), default="both")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    print(f"{'network':<22} {'list':<16} default dispatch mixlist by-hand   step")
    for name in ("resnext50", "alexnet") if arguments.net == "both" else (arguments.net,):
        for title, ops in LISTS.items():
            if name == "alexnet" and "BatchNorm" in ops:
                continue
            size, batch = (64, 16) if name == "resnext50" else (224, 8)
            ratios, seconds = measure(name, ops, size=size, batch=batch, rounds=arguments.rounds)
            figures = [ratios[key] for key in ("default", "dispatch", "mixlist", "by hand")]
            print(
                f"{f'{name} {size} px x {batch}':<22} {title:<16} "
                + " ".join(f"{figure:7.3f}" for figure in figures)
                + f" {seconds:6.3f} s",
                flush=True,
            )


def measure(
    name: str, ops: list[str], *, size: int, batch: int, rounds: int
) -> tuple[dict[str, float], float]:
    """The median ratio of every variant to `plain`, and the median seconds of `plain`."""
    images = torch.randn(batch, 3, size, size).to(memory_format=torch.channels_last)
    labels = torch.randint(0, 10, (batch,))
    nets = {"as it is": build(name, size), "by hand": build(name, size)}
    cast_by_hand(nets["by hand"], ops)
    optimizers = {
        key: torch.optim.SGD(net.parameters(), lr=1e-4, momentum=0.9, fused=True)
        for key, net in nets.items()
    }
    policies = {
        "default": policy_with({}),
        "dispatch": policy_with({"white-list": {"to-add": ops}}),
        "mixlist": policy_with({"black-list": {"to-add": ops}}),
    }

    def seconds_of(variant: str) -> float:
        key = "by hand" if variant == "by hand" else "as it is"
        policy = policies.get(variant)
        region: Callable[[], AbstractContextManager[object]] = plain_region
        if policy is not None:
            policy.install()
            region = policy.forward
        start = time.process_time()
        step(nets[key], optimizers[key], region, images, labels)
        spent = time.process_time() - start
        if policy is not None:
            policy.close()
        return spent

    variants = ["plain", *policies, "by hand"]
    for variant in (*variants, *variants):
        seconds_of(variant)
    spent: dict[str, list[float]] = {variant: [] for variant in variants}
    for number in range(rounds):
        # Another order each round, so that no variant always follows the same one.
        for variant in (*variants[number % 5 :], *variants[: number % 5]):
            spent[variant].append(seconds_of(variant))
    ratios = {
        variant: statistics.median(
            variant_time / plain
            for variant_time, plain in zip(spent[variant], spent["plain"], strict=True)
        )
        for variant in variants
    }
    return ratios, statistics.median(spent["plain"])


def step(
    net: nn.Module,
    optimizer: torch.optim.Optimizer,
    region: Callable[[], AbstractContextManager[object]],
    images: Tensor,
    labels: Tensor,
) -> None:
    """One training step."""
    set_random_position(net, 1, 0)
    with region():
        loss = F.cross_entropy(net(images), labels)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()


def plain_region() -> AbstractContextManager[object]:
    """Plain autocast, without jumar."""
    return torch.autocast("cpu", dtype=torch.bfloat16)


def build(name: str, size: int) -> nn.Module:
    """A network for training with channels_last."""
    torch.manual_seed(0)
    net = (
        ResNeXt50(num_classes=10)
        if name == "resnext50"
        else AlexNet(num_classes=10, image_size=size)
    )
    return net.to(memory_format=torch.channels_last).train()  # pyright: ignore[reportCallIssue]


def policy_with(mixlist: dict[str, dict[str, list[str]]]) -> PrecisionPolicy:
    """A policy with the changes of a mixlist."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "mixlist.json"
        path.write_text(json.dumps(mixlist), "utf-8")
        settings = PrecisionSettings(mode=MODE, modify_mixlist=str(path))
        return PrecisionPolicy(settings, device_type="cpu")


def cast_by_hand(net: nn.Module, ops: list[str]) -> None:
    """Write the casts of a black list into the network's modules."""

    def to_fp32(module: nn.Module, inputs: tuple[Tensor]) -> Tensor:
        del module
        return inputs[0].float()

    for module in net.modules():
        if isinstance(module, nn.BatchNorm2d) and "BatchNorm" in ops:
            module.register_forward_pre_hook(to_fp32)
        if isinstance(module, KeyedDropout) and "Mul" in ops:
            module.register_forward_pre_hook(to_fp32)
        if isinstance(module, Bottleneck) and "Add" in ops:
            module.forward = add_in_fp32(module)  # pyright: ignore[reportAttributeAccessIssue]


def add_in_fp32(block: Bottleneck) -> Callable[[Tensor], Tensor]:
    """The forward of a residual block with both summands in fp32."""

    def forward(x: Tensor) -> Tensor:
        shortcut = x if block.shortcut is None else block.shortcut(x)
        y = block.relu(block.reduce(x))
        y = block.relu(block.grouped(y))
        return block.relu(block.expand(y).float() + shortcut.float())

    return forward


if __name__ == "__main__":
    main()
