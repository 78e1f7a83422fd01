"""A hash of a tensor's content, to check whether two are bit-identical."""

import hashlib
from typing import Any, Final

import torch
from torch import Tensor

_HASH: Final = "sha256"
_DIGITS: Final = 16
"""Hexadecimal digits that are kept: 64 bits."""


def digest_of(tensor: Tensor) -> str:
    """The hash of a tensor's bytes, its elements in row-major order however they lie in memory.

    Waits for the device.
    """
    values = tensor.detach().to("cpu").resolve_conj().resolve_neg().contiguous()
    content: Any = values.reshape(-1).view(torch.uint8).numpy()
    return _text(content)


def digest_of_text(text: str) -> str:
    """The hash of a text, in the same form."""
    return _text(text.encode())


def is_comparable(first: str | None, second: str | None) -> bool:
    """Whether both exist and are of the same kind of hash."""
    return bool(first and second) and str(first).split(":")[0] == str(second).split(":")[0]


def _text(content: Any) -> str:
    return f"{_HASH}:{hashlib.sha256(content).hexdigest()[:_DIGITS]}"
