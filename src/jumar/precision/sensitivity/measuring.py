"""How sensitive a training step is to rounding, op by op: one pass with noise for each."""

import math
import sys
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final, Literal, get_args

import torch
from torch import Tensor, nn

from jumar.ground.errors import UserError, unknown_name
from jumar.ground.text import counted, time_text
from jumar.precision.dumps.dump import Phase
from jumar.precision.recording.cann import cann_type
from jumar.precision.recording.restoring import restored
from jumar.precision.sensitivity.perturbing import NoisyOps, OpCall

By = Literal["group", "layer", "op", "call"]
"""What gets noise in one pass: all calls of an op type in a layer, all of a layer, all of an op
type, or a single call; forward and backward apart."""
Passes = Callable[[], "tuple[Tensor, Sequence[Tensor | None]]"]
"""Runs forward and backward; returns the loss and the gradients."""
DTYPES: Final = {"float16": torch.float16, "bfloat16": torch.bfloat16}


@dataclass(frozen=True, kw_only=True)
class NoiseSettings:
    """What gets noise, and how much.

    Attributes:
        dtype: The dtype whose rounding the noise equals: `float16` or `bfloat16`.
        by: What gets noise in one pass.
        backward: Whether ops of the backward pass get noise too.
        seed: Determines the noise.
    """

    dtype: str = "bfloat16"
    by: By = "group"
    backward: bool = True
    seed: int = 0

    def check(self) -> None:
        """Check the settings.

        Raises:
            UserError: One is not allowed.
        """
        if self.dtype not in DTYPES:
            raise unknown_name("dtype", self.dtype, DTYPES, where="--dtype")
        if self.by not in get_args(By):
            raise unknown_name("unit", self.by, get_args(By), where="--by")


@dataclass(frozen=True, kw_only=True)
class Moved:
    """How far noise in some calls moved the step.

    Attributes:
        layer: The layer; empty outside all layers, and where noise went into several.
        op: The aten op with its overload; empty where noise went into several.
        phase: Of the calls.
        number: The number of the call; None where noise went into several.
        calls: How many calls got noise.
        elements: How many elements.
        loss: Change of the loss, relative to it.
        gradient: L2 norm of the change of all gradients, relative to that of the gradients.
    """

    layer: str
    op: str
    phase: Phase
    number: int | None = None
    calls: int
    elements: int
    loss: float
    gradient: float

    @property
    def cann(self) -> str:
        """The CANN op type; empty if unknown."""
        return cann_type(self.op.removeprefix("aten.").removesuffix(".default"))


@dataclass(frozen=True, kw_only=True)
class Sensitivity:
    """How sensitive a step is to rounding.

    Attributes:
        settings: What got noise.
        loss: The loss without noise.
        gradient: L2 norm of the gradients without noise.
        rows: In the order of execution.
        together: Change of loss and gradients with noise in all of them at once.
        floor: The same of two passes without noise; 0 if the step is reproducible.
        passes: Number of forward and backward passes.
        seconds: Their duration.
    """

    settings: NoiseSettings
    loss: float
    gradient: float
    rows: Sequence[Moved]
    together: tuple[float, float]
    floor: tuple[float, float]
    passes: int
    seconds: float

    @property
    def ranked(self) -> list[Moved]:
        """The rows, largest change of gradients first."""
        return sorted(self.rows, key=lambda row: (-row.gradient, -row.loss))

    def summed(self, name: Literal["layer", "op", "cann"]) -> dict[str, tuple[float, float]]:
        """Change of loss and gradients by layer or op, largest first.

        Errors of different ops are independent, so their squares add up.
        """
        squares: dict[str, list[float]] = {}
        for row in self.rows:
            sums = squares.setdefault(getattr(row, name), [0.0, 0.0])
            sums[0] += row.loss**2
            sums[1] += row.gradient**2
        roots = {
            key: (math.sqrt(loss), math.sqrt(gradient)) for key, (loss, gradient) in squares.items()
        }
        return dict(sorted(roots.items(), key=lambda item: -item[1][1]))


def sensitivity(
    passes: Passes,
    *,
    modules: Mapping[str, nn.Module] | None,
    settings: NoiseSettings,
    buffers: Sequence[Tensor] = (),
    say: Callable[[str], None] | None = None,
) -> Sensitivity:
    """Measure how far noise in each op moves loss and gradients.

    Random state and buffers are restored before each pass, so passes differ only by the noise.

    Args:
        passes: Runs forward and backward on one batch.
        modules: The modules by path; None to name them by their path in the outermost one called.
        settings: What gets noise.
        buffers: What a pass changes besides gradients.
        say: Called with a line about the number of passes and their time.

    Raises:
        UserError: A setting is not allowed, or the step has no gradients or no finite loss.
    """
    settings.check()
    began = time.monotonic()
    with restored(buffers) as restore, _uncompiled():
        repeated, nothing = _Step(passes, modules, settings, restore), frozenset[OpCall]()
        first = repeated.run(nothing.__contains__)
        if not math.isfinite(first.loss) or not 0 < first.norm < math.inf:
            raise UserError(
                f"the step has the loss {first.loss:g} and gradients of norm {first.norm:g}",
                todo="Noise is measured against a finite loss and gradients that are not all 0. "
                "Look for an overflow: jumar precision overflow",
            )
        floor_began = time.monotonic()
        floor = repeated.run(nothing.__contains__).change_from(first)
        pass_s = time.monotonic() - floor_began
        groups = _groups(first.calls, settings)
        if say is not None:
            say(
                f"{counted(len(groups) + 3, 'pass')} forward and backward, "
                f"about {time_text(pass_s * (len(groups) + 1))}"
            )
        rows = [
            _moved(
                calls, settings.by, repeated.run({call for call, _ in calls}.__contains__), first
            )
            for calls in groups
        ]
        noisy_calls = {call for calls in groups for call, _ in calls}
        together = repeated.run(noisy_calls.__contains__).change_from(first)
    return Sensitivity(
        settings=settings,
        loss=first.loss,
        gradient=first.norm,
        rows=rows,
        together=together,
        floor=floor,
        passes=repeated.count,
        seconds=time.monotonic() - began,
    )


def parameter_passes(model: nn.Module, step: Callable[[], Tensor]) -> Passes:
    """Passes of a function that leaves gradients in a model's parameters and returns the loss."""
    parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]

    def passes() -> tuple[Tensor, Sequence[Tensor | None]]:
        for parameter in parameters:
            parameter.grad = None
        loss = step()
        return loss, [parameter.grad for parameter in parameters]

    return passes


class _Result:
    """The result of a pass."""

    def __init__(
        self, loss: Tensor, gradients: Sequence[Tensor | None], calls: Sequence[tuple[OpCall, int]]
    ) -> None:
        self.loss = loss.detach().double().item()
        self.gradients = [
            None if gradient is None else gradient.detach().clone() for gradient in gradients
        ]
        self.norm = _norm(self.gradients)
        self.calls = calls

    def change_from(self, reference: "_Result") -> tuple[float, float]:
        """The change of loss and gradients from another pass, relative to that."""
        pairs = zip(self.gradients, reference.gradients, strict=True)
        changes = [a - b for a, b in pairs if a is not None and b is not None]
        size = abs(reference.loss)
        change = abs(self.loss - reference.loss)
        return (change / size if size else change), _norm(changes) / reference.norm


class _Step:
    """Runs passes and counts them."""

    def __init__(
        self,
        passes: Passes,
        modules: Mapping[str, nn.Module] | None,
        settings: NoiseSettings,
        restore: Callable[[], None],
    ) -> None:
        self._passes, self._modules, self._settings = passes, modules, settings
        self._restore = restore
        self.count = 0

    def run(self, is_chosen: Callable[[OpCall], bool]) -> _Result:
        """One pass with noise in some calls."""
        self.count += 1
        self._restore()
        settings = self._settings
        noisy = NoisyOps(
            self._modules, dtype=DTYPES[settings.dtype], seed=settings.seed, is_chosen=is_chosen
        )
        with noisy:
            loss, gradients = self._passes()
        return _Result(loss, gradients, noisy.calls)


def _groups(
    calls: Sequence[tuple[OpCall, int]], settings: NoiseSettings
) -> list[list[tuple[OpCall, int]]]:
    """The calls that get noise together, in the order of execution of their first."""
    groups: dict[tuple[object, ...], list[tuple[OpCall, int]]] = {}
    for call, elements in calls:
        if call.phase == "forward" or settings.backward:
            key: tuple[object, ...] = tuple(call)
            if settings.by != "call":
                layer = call.layer if settings.by != "op" else None
                key = (layer, call.op if settings.by != "layer" else None, call.phase)
            groups.setdefault(key, []).append((call, elements))
    return list(groups.values())


def _moved(
    calls: Sequence[tuple[OpCall, int]], by: By, result: _Result, reference: _Result
) -> Moved:
    first = calls[0][0]
    loss, gradient = result.change_from(reference)
    return Moved(
        layer="" if by == "op" else first.layer,
        op="" if by == "layer" else first.op,
        phase=first.phase,
        number=first.number if by == "call" else None,
        calls=len(calls),
        elements=sum(elements for _, elements in calls),
        loss=loss,
        gradient=gradient,
    )


def _norm(tensors: Sequence[Tensor | None]) -> float:
    norms = [tensor.float().norm().double().item() for tensor in tensors if tensor is not None]
    # A non-finite norm becomes infinite: NaN could not be ranked.
    return math.hypot(*norms) if all(map(math.isfinite, norms)) else math.inf


@contextmanager
def _uncompiled() -> Generator[None]:
    """The context in which compiled modules run op by op."""
    if "torch._dynamo" not in sys.modules:
        yield
        return
    with torch.compiler.set_stance("force_eager"):
        yield
