"""Restore random state and buffers, so that passes can be repeated without side effects."""

import random
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy
import torch
from torch import Tensor


@contextmanager
def restored(buffers: Sequence[Tensor]) -> Generator[Callable[[], None]]:
    """Yield a function that restores buffers and random state, and call it again at the end."""
    copies = [buffer.detach().clone() for buffer in buffers]
    python_state = random.getstate()
    numpy_state: Any = numpy.random.get_state()
    torch_state = torch.get_rng_state()
    device_states = [(device, device.get_rng_state()) for device in _accelerators(buffers)]

    def restore() -> None:
        copy_into(buffers, copies)
        random.setstate(python_state)
        numpy.random.set_state(numpy_state)
        torch.set_rng_state(torch_state)
        for device, state in device_states:
            device.set_rng_state(state)

    try:
        yield restore
    finally:
        restore()


@torch.no_grad()
def copy_into(targets: Sequence[Tensor], sources: Sequence[Tensor]) -> None:
    """Copy each source into the target at its position."""
    for target, source in zip(targets, sources, strict=True):
        target.copy_(source)


def _accelerators(buffers: Sequence[Tensor]) -> list[Any]:
    """Return torch's modules for the accelerators in use, such as `torch.cuda`."""
    kinds = {buffer.device.type for buffer in buffers} | {
        kind for kind in ("cuda", "npu") if getattr(getattr(torch, kind, None), "_initialized", 0)
    }
    return [getattr(torch, kind) for kind in sorted(kinds - {"cpu", "meta"})]
