"""The cost of ViDeNN's spatial convolutions alone, and how fast this CPU can multiply.

    python benchmarks/convolution_floor.py

A training step cannot be faster than its convolutions. Each kind of them is timed by itself in
channels_last: forward, and backward for its weights and, but for the first, its input. The last
line of a type is a product of two matrices of 4096 x 4096, which is about the CPU's peak. Kinds and
types take turns, so that a neighbour on the machine disturbs all of them; the best of the rounds
counts.
"""

import argparse
import time
from collections import Counter, defaultdict
from collections.abc import Callable

import torch
from torch import Tensor, nn

from jumar.models.videnn import SpatialCNN

MATRIX = 4096
TYPES = {"fp32": torch.float32, "bf16": torch.bfloat16}


def backward(layer: nn.Conv2d, x: Tensor, gradient: Tensor, *, needs_input: bool) -> None:
    """The gradients that a training step takes of one convolution."""
    outputs = layer.out_channels
    torch.ops.aten.convolution_backward(
        gradient,
        x,
        layer.weight,
        [outputs] if layer.bias is not None else None,
        [1, 1],
        [1, 1],
        [1, 1],
        False,
        [0, 0],
        1,
        [needs_input, True, layer.bias is not None],
    )


def directions(
    layer: nn.Conv2d, dtype: torch.dtype, batch: int, size: int, *, first: bool
) -> dict[str, Callable[[], object]]:
    """One convolution forward and backward, on its own random numbers."""
    layer = layer.to(dtype=dtype, memory_format=torch.channels_last)  # pyright: ignore[reportCallIssue]
    layer.requires_grad_(False)
    x, gradient = (
        torch.randn(batch, channels, size, size).to(dtype).to(memory_format=torch.channels_last)
        for channels in (layer.in_channels, layer.out_channels)
    )
    return {
        "forward": lambda: layer(x),
        "backward": lambda: backward(layer, x, gradient, needs_input=not first),
    }


def main() -> None:
    """Time, and print a table for each type."""
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--size", type=int, default=50, help="side of a patch in px")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=15)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    network = SpatialCNN()
    layers = [layer for layer in network.modules() if isinstance(layer, nn.Conv2d)]
    kinds = Counter((layer.in_channels, layer.out_channels) for layer in layers)
    runs: dict[tuple[str, str, str], Callable[[], object]] = {}
    for name, dtype in TYPES.items():
        for inputs, outputs in kinds:
            first = inputs == layers[0].in_channels
            layer = nn.Conv2d(inputs, outputs, 3, padding=1, bias=first)
            for direction, run in directions(
                layer, dtype, arguments.batch, arguments.size, first=first
            ).items():
                runs[name, f"{inputs} to {outputs}", direction] = run
        left, right = (torch.randn(MATRIX, MATRIX).to(dtype) for _ in range(2))
        runs[name, "matrices", "forward"] = lambda a=left, b=right: a @ b
    seconds: dict[tuple[str, str, str], list[float]] = defaultdict(list)
    for turn in range(arguments.rounds + 2):
        for key, run in runs.items():
            start = time.perf_counter()
            run()
            if turn >= 2:
                seconds[key].append(time.perf_counter() - start)
    print(f"torch {torch.__version__}, {arguments.threads} threads")
    for name in TYPES:
        total = work = 0.0
        for (inputs, outputs), count in kinds.items():
            kind = f"{inputs} to {outputs}"
            forward, back = (min(seconds[name, kind, way]) for way in ("forward", "backward"))
            flops = 2 * 9 * inputs * outputs * arguments.batch * arguments.size**2
            products = 2 if inputs == layers[0].in_channels else 3
            total += count * (forward + back)
            work += count * flops * products
            print(
                f"{name}  {count:2d} of {kind:>9} channels: "
                f"forward {1000 * forward:6.2f} ms, backward {1000 * back:6.2f} ms"
            )
        peak = 2 * MATRIX**3 / min(seconds[name, "matrices", "forward"])
        print(
            f"{name}  a step's convolutions: {1000 * total:.0f} ms, {work / total / 1e12:.3f} "
            f"Tflop/s; a product of matrices: {peak / 1e12:.3f} Tflop/s"
        )


if __name__ == "__main__":
    main()
