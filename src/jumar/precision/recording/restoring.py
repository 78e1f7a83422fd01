"""Restores random state and buffers, so that passes can be repeated without side effects."""

import random
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy
import torch
from torch import Tensor


@contextmanager
def restored(buffers: Sequence[Tensor]) -> Generator[Callable[[], None]]:
    """A function that restores buffers and random state; called once more at the end."""
    copies = [item.detach().clone() for item in buffers]
    plain = random.getstate()
    arrays: Any = numpy.random.get_state()
    devices = _accelerators(buffers)
    states = [torch.get_rng_state(), *(item.get_rng_state() for item in devices)]

    def restore() -> None:
        with torch.no_grad():
            for buffer, before in zip(buffers, copies, strict=True):
                buffer.copy_(before)
        random.setstate(plain)
        numpy.random.set_state(arrays)
        torch.set_rng_state(states[0])
        for device, state in zip(devices, states[1:], strict=True):
            device.set_rng_state(state)

    try:
        yield restore
    finally:
        restore()


def _accelerators(buffers: Sequence[Tensor]) -> list[Any]:
    """The modules of torch for the accelerators that are in use."""
    kinds = {buffer.device.type for buffer in buffers} | {
        kind for kind in ("cuda", "npu") if getattr(getattr(torch, kind, None), "_initialized", 0)
    }
    return [getattr(torch, kind) for kind in sorted(kinds - {"cpu", "meta"})]
