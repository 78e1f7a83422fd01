"""A dump: inputs and outputs of the ops and layers of one training step.

Every reader produces this from its tool's files, and every writer takes it, so that a comparison is
independent of the tool.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol

import torch

Phase = Literal["forward", "backward", "update"]
"""`update`: what the optimizer does after the backward pass."""
Kind = Literal["op", "module", "parameter"]
"""`op`: an aten op or an API call; `module`: a layer; `parameter`: a trained tensor of one."""
Role = Literal["input", "output", "parameter", "gradient", "state", "change"]
"""`state`: a slot of the optimizer; `change`: what the update adds to the parameter."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Statistics:
    """Statistics of a tensor; None for values that the tool did not write.

    Min, max, mean and l2 are of the finite elements where our own recorder wrote them; other tools
    give NaN as soon as one element is.

    Attributes:
        count: Elements.
        min: Smallest.
        max: Largest.
        mean: Mean.
        l2: Square root of the sum of squares.
        nan: How many are not a number.
        inf: How many are infinite.
        zeros: How many are zero.
        above_fp16: How many finite ones exceed float16's largest number, 65504.
        below_normal: How many nonzero ones lie below float16's smallest normal number, 2**-14.
        below_subnormal: How many of those lie below its smallest subnormal number, 2**-24.
    """

    count: int
    min: float | None = None
    max: float | None = None
    mean: float | None = None
    l2: float | None = None
    nan: int | None = None
    inf: int | None = None
    zeros: int | None = None
    above_fp16: int | None = None
    below_normal: int | None = None
    below_subnormal: int | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Value:
    """An input or output of a call.

    Attributes:
        role: Its role in the call.
        name: Its name in the call: `0`, `1.0` for the first of a list, a keyword, a parameter's own
            name.
        dtype: As torch names it, without `torch.`: `float32`, `bfloat16`.
        shape: Its shape.
        statistics: Its numbers; None if the tool wrote none.
        digest: A hash of its bytes, with the name of the hash: `crc32:0a1b2c3d`; None if unknown.
        tensor: Its key in `Dump.tensors`; None if there are only statistics.
    """

    role: Role
    name: str
    dtype: str
    shape: tuple[int, ...]
    statistics: Statistics | None = None
    digest: str | None = None
    tensor: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Call:
    """One call of an op or a layer, or one parameter, in the order of execution.

    Calls of two dumps are partners if all but `values` and `arguments` are equal.

    Attributes:
        kind: Kind of call.
        op: The aten op with its overload (`aten.addmm.default`), an API as its tool names it
            (`Functional.softmax`), a layer's class, or a parameter's own name.
        layer: Path of the innermost layer, as `named_modules` names it; empty for the whole network
            and where it is unknown.
        number: How many calls of the same kind, op, layer and phase came before.
        phase: The part of the step.
        values: The tensors, inputs first.
        arguments: Non-tensor arguments, as text by name.
        cann: The CANN op type that does the same; empty if unknown.
    """

    kind: Kind
    op: str
    layer: str
    number: int
    phase: Phase
    values: tuple[Value, ...]
    arguments: Mapping[str, str] = field(default_factory=dict)
    cann: str = ""

    @property
    def key(self) -> tuple[Kind, str, str, Phase, int]:
        """The identity that partners in two dumps share."""
        return self.kind, self.op, self.layer, self.phase, self.number


class Tensors(Protocol):
    """Reads the tensors of a dump, one at a time."""

    def read(self, name: str) -> torch.Tensor:
        """The tensor that `Value.tensor` names, on the CPU.

        Raises:
            UserError: Its file is missing, truncated or has another tensor.
        """
        ...


@dataclass(frozen=True, kw_only=True)
class Dump:
    """A step of a rank.

    Attributes:
        where: The folder or file.
        tool: What wrote it, with its version if known: `jumar 0.4`, `msprobe`, `CANN`.
        framework: `pytorch`, `mindspore`, `tensorflow`, or empty.
        step: Step of the training, counted from 0; None if unknown.
        rank: Rank; None if unknown.
        facts: Further facts of its header: device, precision mode, seed, versions.
        calls: In the order of execution.
        tensors: Reads tensors; None if there are only statistics.
        notices: What was left out or assumed while reading, one sentence each.
    """

    where: Path
    tool: str
    framework: str = ""
    step: int | None = None
    rank: int | None = None
    facts: Mapping[str, str] = field(default_factory=dict)
    calls: Sequence[Call] = ()
    tensors: Tensors | None = None
    notices: Sequence[str] = ()
