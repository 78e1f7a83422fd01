"""Hashes of tensors' contents, to check whether two tensors are bit-identical."""

import hashlib
from typing import Any, Final

import torch
from torch import Tensor

_HASH: Final = "sha256"
_DIGITS: Final = 16
"""Number of hexadecimal digits that are stored: 64 bits."""


def digest_of(tensor: Tensor) -> str:
    """Return the hash of a tensor's bytes, in row-major order regardless of the memory layout.

    Waits for the device.
    """
    values = tensor.detach().to("cpu").resolve_conj().resolve_neg().contiguous()
    content: Any = values.reshape(-1).view(torch.uint8).numpy()
    return _text(content)


def digest_of_text(text: str) -> str:
    """Return the hash of a text, in the same form."""
    return _text(text.encode())


def is_comparable(first: str | None, second: str | None) -> bool:
    """Whether both digests exist and use the same hash function."""
    return bool(first and second) and str(first).split(":")[0] == str(second).split(":")[0]


def _text(content: Any) -> str:
    return f"{_HASH}:{hashlib.sha256(content).hexdigest()[:_DIGITS]}"
