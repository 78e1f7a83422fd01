"""Write tensors as msprobe does: a file of torch for each, named like its call and its role."""

import io
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

import torch

from jumar.precision.dumps.dump import Role, Tensors, Value

_SECTIONS: Final[dict[Role, str]] = {"parameter": ".parameters", "gradient": ""}
_MAX_NAME: Final = 200
"""Maximum characters of a file's name, without its number and suffix."""


def write_tensors(
    folder: Path, tensors: Tensors, named: Iterable[tuple[str, Sequence[Value]]]
) -> dict[str, str]:
    """Write the tensors of calls, each once; those that are only samples are omitted.

    Args:
        folder: The folder, which is created if there is a tensor.
        tensors: Reads the tensors.
        named: The name of each call, and its values.

    Returns:
        The name of each tensor's file, by `Value.tensor`.

    Raises:
        UserError: A tensor cannot be read.
        OSError: A file cannot be written.
    """
    files: dict[str, str] = {}
    taken: set[str] = set()
    for call_name, values in named:
        for value in values:
            if value.tensor is None or value.tensor in files:
                continue
            tensor = tensors.read(value.tensor)
            if tuple(tensor.shape) != value.shape:
                continue
            section = _SECTIONS.get(value.role, f".{value.role}")
            name = _free_name(f"{call_name}{section}.{value.name}", taken)
            folder.mkdir(exist_ok=True)
            # torch's own writer raises RuntimeError if the disk is full.
            content = io.BytesIO()
            torch.save(tensor.clone(memory_format=torch.contiguous_format), content)
            (folder / name).write_bytes(content.getbuffer())
            files[value.tensor] = name
    return files


def _free_name(name: str, taken: set[str]) -> str:
    """Return a file name that is not taken, and take it; names of calls may contain anything."""
    plain = re.sub(r"[^\w.]", "_", name, flags=re.ASCII)[:_MAX_NAME]
    number = 0
    while (candidate := f"{plain}.{number}.pt" if number else f"{plain}.pt") in taken:
        number += 1
    taken.add(candidate)
    return candidate
