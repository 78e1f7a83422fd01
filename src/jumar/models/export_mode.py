"""Export mode: networks take a form whose graph is valid for every batch.

Tracing a network (`torch.export`, ONNX) records the ops of one forward. Whatever depends on values
(padding that is left out), on sizes (work done in parts) or on the kernel of a device is recorded
as it happened to be. Within `export_mode()` the networks here avoid that; the numbers are the same.
"""

from collections.abc import Generator
from contextlib import AbstractContextManager, contextmanager, nullcontext

import torch

_depth = 0


def in_export_mode() -> bool:
    """Whether a network is being exported."""
    return _depth > 0


@contextmanager
def export_mode() -> Generator[None]:
    """A region in which networks are traced."""
    global _depth  # noqa: PLW0603 - of the process, as tracing is
    _depth += 1
    try:
        yield
    finally:
        _depth -= 1


def without_autocast(device_type: str) -> AbstractContextManager[object]:
    """A region in which every precision mode computes in the dtype of its inputs.

    In export mode there is no autocast, and a graph of regions would need more than ONNX has.
    """
    return nullcontext() if in_export_mode() else torch.autocast(device_type, enabled=False)
