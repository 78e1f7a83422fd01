"""Export mode, in which networks take a form whose graph is valid for every batch.

Tracing a network (`torch.export`, ONNX) records the ops of one forward pass. Everything that
depends on values (padding that is left out), on sizes (work done in parts) or on a device's kernels
is recorded as it was in that pass. Within `export_mode()` the networks here avoid such
dependencies; their results are the same.
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
    """A context in which networks are traced."""
    global _depth  # noqa: PLW0603 - tracing concerns the whole process
    _depth += 1
    try:
        yield
    finally:
        _depth -= 1


def without_autocast(device_type: str) -> AbstractContextManager[object]:
    """A context in which every precision mode computes in the dtype of its inputs.

    It does nothing in export mode, where there is no autocast and ONNX could not express a context.
    """
    return nullcontext() if in_export_mode() else torch.autocast(device_type, enabled=False)
