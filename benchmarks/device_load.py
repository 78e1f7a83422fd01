"""The cost of reading the device's load during training, as a share of a step.

    python benchmarks/device_load.py
    python benchmarks/device_load.py --every 5 --rounds 15

Blocks of steps of a small network take turns with and without readings, in pairs whose order
changes. Readings come a hundred times as often as by default, so that their cost stands out of the
noise; what they add to a block, divided by the number of readings, is the cost of one. That and
the interval give the share of the time that readings take; a reading timed alone stands beside it.

Time is the process's CPU time over all of its threads, so neighbours on the machine count little.
Exit code 1 if readings take more than 0.5 % at the interval asked for.
"""

import argparse
import sys
import time
from statistics import median

import torch
from torch import nn

from jumar.devices.cpu_load import MachineMeter
from jumar.devices.process import set_threads
from jumar.devices.registry import open_device
from jumar.training.device_load import LoadObserver

ALLOWED = 0.005
OFTEN = 100
ALONE = 200


class Block:
    """Steps of a small convolutional network, for about as long as wanted.

    Args:
        seconds: How long a block takes.
    """

    def __init__(self, seconds: float) -> None:
        torch.manual_seed(1)
        self._net = nn.Sequential(nn.Conv2d(3, 32, 3), nn.ReLU(), nn.Conv2d(32, 32, 3))
        self._images = torch.randn(8, 3, 32, 32)
        self._optimizer = torch.optim.SGD(self._net.parameters(), lr=1e-3)
        self.steps = 20
        self.steps = max(20, round(20 * seconds / max(self.run(), self.run())))

    def run(self) -> float:
        """CPU seconds of the steps."""
        start = time.process_time()
        for _ in range(self.steps):
            self._optimizer.zero_grad()
            self._net(self._images).square().mean().backward()
            self._optimizer.step()
        return time.process_time() - start


def observed(block: Block, device: str, every_s: float) -> tuple[float, int]:
    """CPU seconds of a block beside which the device is read, and how often it was."""
    load = LoadObserver(open_device(device), every_s=every_s, say=print)
    load.begin()
    seconds = block.run()
    load.end()
    readings = sum(record.to_json()["readings"] for record in load.further_records())
    return seconds, readings


def alone_s(device: str) -> float:
    """CPU seconds of one reading with nothing beside it."""
    meter, machine = open_device(device).load_meter(), MachineMeter()
    start = time.process_time()
    for _ in range(ALONE):
        meter.read()
        machine.busy_percent()
    return (time.process_time() - start) / ALONE


def main() -> int:
    """Run the benchmark; the exit code says whether the promise holds."""
    parser = argparse.ArgumentParser(description=str(__doc__).split("\n")[0])
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--every", type=float, default=5.0, help="s between readings")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--block", type=float, default=1.0, help="s of a block of steps")
    chosen = parser.parse_args()
    set_threads(1)
    block = Block(chosen.block)
    ratios: list[float] = []
    costs: list[float] = []
    for turn in range(chosen.rounds):
        plain = block.run() if turn % 2 else 0.0
        read, readings = observed(block, chosen.device, chosen.every / OFTEN)
        plain = plain or block.run()
        ratios.append(read / plain)
        costs.append((read - plain) / max(readings, 1))
    cost, alone = median(costs), alone_s(chosen.device)
    share = max(cost, alone) / chosen.every
    low, high = min(ratios), max(ratios)
    print(f"{chosen.rounds} pairs of blocks of {block.steps} steps, torch {torch.__version__}")
    print(
        f"  with a reading every {chosen.every / OFTEN:g} s: {median(ratios):.4f} x the time "
        f"without ({low:.4f} to {high:.4f})"
    )
    print(f"  a reading: {1e3 * cost:.2f} ms beside steps, {1e3 * alone:.2f} ms alone")
    print(f"  every {chosen.every:g} s: {100 * share:.4f} % of the time")
    return int(share > ALLOWED)


if __name__ == "__main__":
    sys.exit(main())
