"""The cost of a training step of our networks, as ratios to named peers.

    python benchmarks/model_step.py             # everything, about 2 minutes
    python benchmarks/model_step.py --only dropout

Prints three tables. The variants of a table take turns in one process, and with one thread the
clock is the process's CPU time, so that a busy machine disturbs the ratios little:

- step: ResNeXt-50 against timm's resnext50_32x4d in the same loop (bf16 autocast,
  channels_last, fused SGD), median of the rounds. timm is optional.
- padding: ways to compute the strided 3x3 grouped convolution with TensorFlow's SAME padding,
  forward and backward, best of the rounds.
- dropout: KeyedDropout against nn.Dropout on [128, 4096], forward and backward, best of the
  rounds.
"""

import argparse
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import ModuleType

import torch
import torch.nn.functional as F
from torch import nn

from jumar.models.keyed_dropout import KeyedDropout
from jumar.models.keyed_random import set_random_position
from jumar.models.resnext import ResNeXt50

NUM_CLASSES = 1001
STEP_CASES = ((64, 16, 15), (224, 4, 9))
"""Pixels a side, samples and rounds."""
PADDING_CASES = ((4, 256, 56), (4, 512, 28), (4, 1024, 14), (16, 256, 16), (16, 1024, 4))
"""Samples, channels and pixels a side, as in the network at 224 and at 64 px."""
GROUPS = 32
INSTALL = (
    "timm is not installed: pip install --no-deps timm torchvision\n"
    "(--no-deps, because torchvision would replace a CPU build of torch)"
)

_KEPT_ALIVE: list[torch.library.Library] = []
"""Schemas vanish with the library object that defined them."""


def take_turns(variants: Mapping[str, Callable[[], None]], rounds: int) -> dict[str, list[float]]:
    """Seconds of each variant in each round, after two rounds of warm-up."""
    clock = time.process_time if torch.get_num_threads() == 1 else time.perf_counter
    seconds: dict[str, list[float]] = {name: [] for name in variants}
    for turn in range(rounds + 2):
        for name, run in variants.items():
            start = clock()
            run()
            if turn >= 2:
                seconds[name].append(clock() - start)
    return seconds


def report(
    title: str,
    seconds: Mapping[str, Sequence[float]],
    peer: str,
    summary: Callable[[Sequence[float]], float],
) -> None:
    """Print the time of every variant and how many times as fast as the peer it is."""
    print(title)
    for name, values in seconds.items():
        ratio = summary(seconds[peer]) / summary(values)
        print(f"  {name:<34} {1e3 * summary(values):9.2f} ms   {ratio:5.2f} x {peer}")


def import_timm() -> ModuleType | None:
    """The timm package, also where torchvision's operators do not fit this torch.

    timm imports torchvision, which refuses to load without the schemas of its operators. The
    networks used here need none of them, so empty schemas do.
    """
    try:
        import timm
    except ImportError:
        return None
    except RuntimeError:
        operators = torch.library.Library("torchvision", "DEF")
        operators.define("nms() -> ()")
        operators.define("qnms() -> ()")
        _KEPT_ALIVE.append(operators)
        import timm
    return timm


def training_step(
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    images: torch.Tensor,
    labels: torch.Tensor,
) -> None:
    """Forward, loss, backward, update and the reading of the loss."""
    with torch.autocast("cpu", torch.bfloat16):
        loss = F.cross_entropy(model(images), labels, label_smoothing=0.1)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    loss.item()


def forward_and_backward(
    compute: Callable[..., torch.Tensor], inputs: Sequence[torch.Tensor], gradient: torch.Tensor
) -> None:
    """The output for some inputs and the gradients of all of them."""
    torch.autograd.grad(compute(*inputs), inputs, gradient)


def compare_steps() -> None:
    """Print the table `step`."""
    timm = import_timm()
    models: dict[str, nn.Module] = {
        "jumar": ResNeXt50(num_classes=NUM_CLASSES),
        "jumar, convolutions only": ResNeXt50(num_classes=NUM_CLASSES, matrix_product=False),
    }
    if timm is None:
        print(INSTALL)
    else:
        models["timm"] = timm.create_model("resnext50_32x4d", num_classes=NUM_CLASSES)
    steps: dict[str, Callable[[torch.Tensor, torch.Tensor], None]] = {}
    for name, model in models.items():
        model.to(memory_format=torch.channels_last).train()  # pyright: ignore[reportCallIssue]
        optimizer = torch.optim.SGD(
            model.parameters(), lr=0.01, momentum=0.9, nesterov=True, fused=True
        )
        steps[name] = partial(training_step, model, optimizer)
    for pixels, samples, rounds in STEP_CASES:
        images = torch.randn(samples, 3, pixels, pixels)
        images = images.contiguous(memory_format=torch.channels_last)
        labels = torch.randint(0, NUM_CLASSES, (samples,))
        variants = {name: partial(step, images, labels) for name, step in steps.items()}
        seconds = take_turns(variants, rounds)
        title = f"step of ResNeXt-50, {pixels} px, batch {samples}, median"
        report(title, seconds, "jumar" if timm is None else "timm", statistics.median)


def symmetric_padding(image: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    """The convolution as torchvision has it: every window one pixel off."""
    return F.conv2d(image, weight, None, 2, 1, groups=GROUPS)


def padded_copy(image: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    """SAME padding as `SameConv2d` computes it on images of even size."""
    return F.conv2d(F.pad(image, (0, 1, 0, 1)), weight, None, 2, groups=GROUPS)


def larger_kernel(image: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    """SAME padding without a copy of the image: zeros before the kernel move its windows."""
    return F.conv2d(image, F.pad(weight, (1, 0, 1, 0)), None, 2, 1, groups=GROUPS)


def compare_padding() -> None:
    """Print the table `padding`."""
    for samples, channels, pixels in PADDING_CASES:
        weight = torch.randn(channels, channels // GROUPS, 3, 3, dtype=torch.bfloat16)
        weight = weight.contiguous(memory_format=torch.channels_last).requires_grad_()
        image, gradient = (
            torch.randn(samples, channels, side, side, dtype=torch.bfloat16).contiguous(
                memory_format=torch.channels_last
            )
            for side in (pixels, pixels // 2)
        )
        inputs = (image.requires_grad_(), weight)
        ways: dict[str, Callable[..., torch.Tensor]] = {
            "padding=1 (one pixel off)": symmetric_padding,
            "padded copy (jumar)": padded_copy,
            "4x4 kernel with zeros, padding=1": larger_kernel,
        }
        variants = {
            name: partial(forward_and_backward, way, inputs, gradient) for name, way in ways.items()
        }
        title = f"SAME 3x3 stride 2, {GROUPS} groups, {list(image.shape)}, best"
        report(title, take_turns(variants, rounds=30), "padding=1 (one pixel off)", min)


def compare_dropout() -> None:
    """Print the table `dropout`."""
    for dtype in (torch.float32, torch.bfloat16):
        features = torch.randn(128, 4096, dtype=dtype).requires_grad_()
        gradient = torch.randn(128, 4096, dtype=dtype)
        keyed = KeyedDropout(0.35)
        set_random_position(keyed, key=1, first_row=0)
        variants = {
            "nn.Dropout": partial(forward_and_backward, nn.Dropout(0.35), (features,), gradient),
            "KeyedDropout": partial(forward_and_backward, keyed, (features,), gradient),
        }
        seconds = take_turns(variants, rounds=100)
        report(f"dropout, [128, 4096], {dtype}, best", seconds, "nn.Dropout", min)


COMPARISONS = {"step": compare_steps, "padding": compare_padding, "dropout": compare_dropout}


def main() -> None:
    """Read the options and print the tables."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--only", choices=list(COMPARISONS), help="print one table")
    parser.add_argument("--threads", type=int, default=1, help="threads of an operation")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    torch.manual_seed(0)
    print(f"torch {torch.__version__}, {options.threads} thread(s)")
    for name, compare in COMPARISONS.items():
        if options.only in (None, name):
            compare()


if __name__ == "__main__":
    main()
