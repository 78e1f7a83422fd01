"""A dump: inputs and outputs of the ops and layers of one training step.

Every reader creates a `Dump` from its tool's files, and every writer accepts one, so that a
comparison is independent of the tools.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Literal, Protocol

import torch

Phase = Literal["forward", "backward", "update"]
"""`update`: the optimizer step after the backward pass."""
Kind = Literal["op", "module", "parameter"]
"""`op`: an aten op or an API call; `module`: a layer; `parameter`: a trained tensor of a layer."""
Role = Literal["input", "output", "parameter", "gradient", "state", "change"]
"""`state`: a slot of the optimizer; `change`: the update that is added to the parameter."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Statistics:
    """Statistics of a tensor; None for values that the tool did not write.

    In jumar's dumps, min, max, mean and l2 cover only the finite elements; other tools write NaN if
    any element is NaN.

    Attributes:
        count: Number of elements.
        min: Smallest element.
        max: Largest element.
        mean: Mean of the elements.
        l2: Square root of the sum of squares.
        nan: Number of elements that are NaN.
        inf: Number of infinite elements.
        zeros: Number of elements that are zero.
        above_fp16: Number of finite elements beyond float16's maximum, 65504, in magnitude.
        below_normal: Number of nonzero elements below float16's smallest normal number, 2**-14.
        below_subnormal: Number of them below float16's smallest subnormal number, 2**-24.
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
        name: Its name in the call: a position such as `0`, or `1.0` for the first of a list, a
            keyword, or a parameter's name.
        dtype: Torch's name without `torch.`: `float32`, `bfloat16`.
        shape: Its shape.
        statistics: Its statistics; None if the tool wrote none.
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
    """A call of an op or a layer, or a parameter, in the order of execution.

    Calls of two dumps are partners if all but `values` and `arguments` are equal.

    Attributes:
        kind: Kind of call.
        op: The aten op with its overload (`aten.addmm.default`), the tool's name of an API
            (`Functional.softmax`), a layer's class, or a parameter's name.
        layer: Path of the innermost layer, as in `named_modules`; empty for the whole network, or
            if it is unknown.
        number: Number of previous calls of the same kind, op, layer and phase.
        phase: The part of the step.
        values: The tensors, inputs first.
        arguments: Non-tensor arguments, as text by name.
        cann: The equivalent CANN op type; empty if unknown.
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
    def is_gradient(self) -> bool:
        """Whether it computes gradients of a forward call, as a layer's or an API's backward does.

        An op of the backward pass has all its operands itself.
        """
        return self.phase == "backward" and not self.op.startswith("aten.")

    @property
    def use(self) -> tuple[str, str, int]:
        """What a forward call and its backward call share: op, layer and number."""
        return self.op, self.layer, self.number

    def of(self, role: Role) -> list[Value]:
        """Return the values with a role."""
        return [value for value in self.values if value.role == role]

    @property
    def key(self) -> tuple[Kind, str, str, Phase, int]:
        """The identity that partners in two dumps share."""
        return self.kind, self.op, self.layer, self.phase, self.number


class Tensors(Protocol):
    """Reads the tensors of a dump, one at a time."""

    def read(self, name: str) -> torch.Tensor:
        """Read the tensor that `Value.tensor` names, to the CPU.

        Raises:
            UserError: Its file is missing, truncated or contains another tensor.
        """
        ...


@dataclass(frozen=True, kw_only=True)
class Dump:
    """The dump of one step on one rank.

    Attributes:
        where: The folder or file.
        tool: The tool that wrote it, with its version if known: `jumar 0.4`, `msprobe`, `CANN`.
        framework: `pytorch`, `mindspore`, `tensorflow`, or empty.
        step: Step of the training, counted from 0; None if unknown.
        rank: Rank; None if unknown.
        facts: Further facts from the header: device, precision mode, seed, versions.
        calls: The calls in the order of execution.
        tensors: Reads tensors; None if there are only statistics.
        notices: Omissions and assumptions while reading, one sentence each.
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


@cache
def dtype_name(dtype: torch.dtype) -> str:
    """Return the name of a dtype, as in `Value.dtype`."""
    return str(dtype).removeprefix("torch.")
