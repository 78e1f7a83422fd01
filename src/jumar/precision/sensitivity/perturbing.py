"""Add noise to the outputs of chosen ops while they run, below autograd and autocast."""

import hashlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Final, NamedTuple

import torch
from torch import nn

from jumar.precision.dumps.dump import Phase
from jumar.precision.overflow.origin import CASTS, FILLS
from jumar.precision.recording.contents import unrecorded
from jumar.precision.recording.layers import Layers
from jumar.precision.recording.modules import tensors_in
from jumar.precision.recording.ops import AboutOp, OpMode
from jumar.precision.sensitivity.rounding import add_noise

_EXACT: Final = (
    *CASTS,
    *FILLS,
    *("aten.ones", "aten.zero", "aten.new_", "aten.arange", "aten.eye"),
    *("aten.bernoulli", "aten.rand", "aten.uniform", "aten.normal_", "aten.dropout"),
)
"""Ops that add no rounding error: casts, constants and random numbers."""


class OpCall(NamedTuple):
    """A call of an op in a pass.

    Attributes:
        layer: The path of its layer; empty outside all layers.
        op: The aten op with its overload.
        phase: `forward` or `backward`.
        number: Number of previous calls of the same op, layer and phase.
    """

    layer: str
    op: str
    phase: Phase
    number: int


class NoisyOps(OpMode):
    """While entered, adds noise to the outputs of chosen ops.

    Ops that compute nothing (views, casts, copies, constants, random numbers) never get noise. Of a
    forward op, only the first output gets noise, because others are statistics for the backward
    pass.

    Args:
        modules: The modules by path; None to name them by their path in the outermost module that
            is called.
        dtype: The dtype whose rounding errors the noise imitates.
        seed: Seed of the noise, besides the call and the position of the output.
        is_chosen: Whether a call gets noise.

    Attributes:
        calls: The calls in the order of execution, with the number of their output elements.
    """

    def __init__(
        self,
        modules: Mapping[str, nn.Module] | None,
        *,
        dtype: torch.dtype,
        seed: int,
        is_chosen: Callable[[OpCall], bool],
    ) -> None:
        super().__init__()
        self._layers = Layers(modules)
        self._dtype, self._seed, self._is_chosen = dtype, seed, is_chosen
        self._numbers: Counter[tuple[str, str, Phase]] = Counter()
        self._following: AbstractContextManager[None] = nullcontext()
        self.calls: list[tuple[OpCall, int]] = []

    def __enter__(self) -> Any:
        self._layers.begin()
        self._following = self._layers.followed()
        self._following.__enter__()
        return super().__enter__()

    def __exit__(self, *error: Any) -> None:
        self._following.__exit__(None, None, None)
        super().__exit__(*error)

    def run(
        self, func: Any, about: AboutOp, args: Sequence[Any], options: Mapping[str, Any]
    ) -> Any:
        """Run an op, and add noise to its output if it is chosen."""
        phase, layer = self._layers.current()
        result = func(*args, **options)
        if about.is_recorded and not about.name.startswith(_EXACT) and phase != "update":
            self._add_call(about.name, layer, phase, result)
        return result

    def _add_call(self, op: str, layer: str, phase: Phase, result: Any) -> None:
        outputs = [tensor for _, tensor in tensors_in(result)]
        if phase == "forward":
            outputs = outputs[:1]
        outputs = [tensor for tensor in outputs if tensor.is_floating_point() and tensor.numel()]
        if not outputs:
            return
        call = OpCall(layer, op, phase, self._numbers[layer, op, phase])
        self._numbers[layer, op, phase] += 1
        self.calls.append((call, sum(tensor.numel() for tensor in outputs)))
        if self._is_chosen(call):
            with unrecorded():
                for position, output in enumerate(outputs):
                    add_noise(output, self._dtype, self._generator(call, position, output.device))

    def _generator(self, call: OpCall, position: int, device: torch.device) -> torch.Generator:
        key = repr((self._seed, tuple(call), position)).encode()
        generator = torch.Generator(device)
        generator.manual_seed(int.from_bytes(hashlib.sha256(key).digest()[:7], "big"))
        return generator
