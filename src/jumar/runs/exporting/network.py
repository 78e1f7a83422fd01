"""A run's network for export: its inputs and outputs, and how to use it without jumar."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor, nn

from jumar.ground.errors import UserError, unknown_name
from jumar.tasks.task import Task

TOLERANCE = 1e-4
"""Largest difference between a file and the network, as a fraction of the largest value. float32
has seven digits, of which a deep network loses two or three if the order of its sums changes."""
SEED = 1

Lengths = Mapping[str, int]
"""Lengths of axes, by name."""


@dataclass(frozen=True, kw_only=True)
class Axis:
    """An axis whose length the network leaves open.

    Attributes:
        usual: A length for tracing and testing.
        other: Another length, to check that the file accepts it.
        min_length: Smallest length.
        max_length: Largest length; None for any.
        multiple: Lengths must be multiples of this.
    """

    usual: int
    other: int
    min_length: int = 1
    max_length: int | None = None
    multiple: int = 1

    def accepts(self, length: int) -> bool:
        """Return whether the network accepts a length."""
        is_within = self.min_length <= length <= (self.max_length or length)
        return is_within and length % self.multiple == 0

    def described(self) -> dict[str, int | None]:
        """Return the axis as JSON."""
        return {"least": self.min_length, "most": self.max_length, "multiple": self.multiple}

    def __str__(self) -> str:
        multiple = f", multiples of {self.multiple}" if self.multiple > 1 else ""
        limit = "any length" if self.max_length is None else f"at most {self.max_length}"
        return f"{limit}{multiple}"


@dataclass(frozen=True, kw_only=True)
class Port:
    """An input or output.

    Attributes:
        dtype: The dtype of its tensors.
        shape: Lengths of the axes; an open axis has its name instead, and an axis that depends on
            it an expression such as `height/4`.
        meaning: Description of its values.
    """

    name: str
    dtype: torch.dtype = torch.float32
    shape: Sequence[int | str]
    meaning: str

    def described(self) -> dict[str, Any]:
        """Return the port as JSON."""
        return {
            "name": self.name,
            "dtype": str(self.dtype).removeprefix("torch."),
            "shape": list(self.shape),
            "meaning": self.meaning,
        }


@dataclass(frozen=True, kw_only=True, eq=False)
class Exportable:
    """A network that can be exported.

    Attributes:
        network: Accepts the inputs by position and returns a tensor or a tuple of tensors.
        part: Name of the part of the run's network; empty for the entire network.
        axes: The open axes of the inputs.
        made_up: Makes inputs of the requested lengths, for checks without the run's data.
        drawn: Description of the made-up inputs.
        facts: How to prepare inputs and interpret outputs, as JSON.
        files: Contents of further files by name, such as a vocabulary.
        entrance: Finds the module that receives the inputs in the run's evaluation; None if there
            is none.
        prepared: Changes the network before tracing, without changing its results.
        tolerance: See `TOLERANCE`.
    """

    network: nn.Module
    part: str = ""
    inputs: Sequence[Port]
    outputs: Sequence[Port]
    axes: Mapping[str, Axis]
    made_up: Callable[[Lengths, torch.Generator], tuple[Tensor, ...]]
    facts: Mapping[str, Any]
    files: Mapping[str, str] = field(default_factory=dict[str, str])
    drawn: str = "made-up inputs"
    entrance: Callable[[Task], nn.Module] | None = None
    prepared: Callable[[nn.Module], None] = lambda _: None
    tolerance: float = TOLERANCE

    def sample(self, **lengths: int) -> tuple[Tensor, ...]:
        """Return random inputs of the usual lengths, except where `lengths` names another."""
        usual = {name: axis.usual for name, axis in self.axes.items()}
        return self.made_up({**usual, **lengths}, torch.Generator().manual_seed(SEED))

    def lengths_of(self, inputs: Sequence[Tensor]) -> dict[str, int] | None:
        """Return the lengths of the open axes; None if the inputs do not fit."""
        lengths: dict[str, int] = {}
        if len(inputs) != len(self.inputs):
            return None
        for port, tensor in zip(self.inputs, inputs, strict=True):
            if tensor.ndim != len(port.shape):
                return None
            for expected, length in zip(port.shape, tensor.shape, strict=True):
                if isinstance(expected, str):
                    if lengths.setdefault(expected, length) != length:
                        return None
                elif expected != length:
                    return None
        fits = all(axis.accepts(lengths[name]) for name, axis in self.axes.items())
        return lengths if fits else None

    def fixed(self, lengths: Lengths) -> "Exportable":
        """Return a copy with the lengths of some axes fixed.

        Raises:
            UserError: There is no such open axis, or the network does not accept a length.
        """
        for name, length in lengths.items():
            if name not in self.axes:
                raise unknown_name("axis", name, self.axes, where="--fix")
            if not self.axes[name].accepts(length):
                raise UserError(
                    f"{name} cannot be {length}",
                    where="--fix",
                    todo=f"The network accepts {self.axes[name]}.",
                )
        made_up = self.made_up

        def made_up_of(others: Lengths, random: torch.Generator) -> tuple[Tensor, ...]:
            return made_up({**lengths, **others}, random)

        return replace(
            self,
            inputs=[_fixed(port, lengths) for port in self.inputs],
            outputs=[_fixed(port, lengths) for port in self.outputs],
            axes={name: axis for name, axis in self.axes.items() if name not in lengths},
            made_up=made_up_of,
        )


def _fixed(port: Port, lengths: Lengths) -> Port:
    return replace(port, shape=[_length(length, lengths) for length in port.shape])


def _length(length: int | str, lengths: Lengths) -> int | str:
    """Return a length with a known `NAME` in `NAME`, `NAME*N` or `NAME/N` replaced."""
    if isinstance(length, int):
        return length
    name, sign, number = re.split(r"([*/]|$)", f"{length}", maxsplit=1)
    if name not in lengths:
        return length
    if sign == "*":
        return lengths[name] * int(number)
    return lengths[name] // int(number) if sign == "/" else lengths[name]
