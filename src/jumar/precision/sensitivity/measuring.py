"""Measure the sensitivity of a training step to rounding in each op, by passes with noise."""

import math
import sys
import time
from collections.abc import Callable, Collection, Generator, Mapping, Sequence
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
"""The calls that get noise in one pass: those of an op type in a layer, of a layer, of an op type,
or a single call; forward and backward calls are separate."""
Passes = Callable[[], "tuple[Tensor, Sequence[Tensor | None]]"]
"""Runs forward and backward and returns the loss and the gradients."""
DTYPES: Final = {"float16": torch.float16, "bfloat16": torch.bfloat16}


@dataclass(frozen=True, kw_only=True)
class NoiseSettings:
    """The ops that get noise, and its size.

    Attributes:
        dtype: The dtype whose rounding errors the noise imitates: `float16` or `bfloat16`.
        by: The calls that get noise in one pass.
        backward: Whether ops of the backward pass get noise too.
        seed: Seed of the noise.
    """

    dtype: str = "bfloat16"
    by: By = "group"
    backward: bool = True
    seed: int = 0

    def check(self) -> None:
        """Check the settings.

        Raises:
            UserError: A setting is not allowed.
        """
        if self.dtype not in DTYPES:
            raise unknown_name("dtype", self.dtype, DTYPES, where="--dtype")
        if self.by not in get_args(By):
            raise unknown_name("unit", self.by, get_args(By), where="--by")


@dataclass(frozen=True, kw_only=True)
class Moved:
    """The change of a step by noise in some calls.

    Attributes:
        layer: The layer; empty outside all layers, or if several got noise.
        op: The aten op with its overload; empty if several got noise.
        phase: The phase of the calls.
        number: The number of the call; None if several got noise.
        calls: Number of calls that got noise.
        elements: Number of elements that got noise.
        loss: Relative change of the loss.
        gradient: L2 norm of the change of all gradients, relative to the norm of the gradients.
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
    """The sensitivity of a step to rounding.

    Attributes:
        settings: The settings of the noise.
        loss: The loss without noise.
        gradient: L2 norm of the gradients without noise.
        rows: The changes by noise in each group of calls, in the order of execution.
        together: Change of loss and gradients by noise in all groups at once.
        floor: Change between two passes without noise; 0 if the step is reproducible.
        passes: Number of forward and backward passes.
        seconds: Duration of the measurement.
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
        """Return the change of loss and gradients by layer or op, largest first.

        Errors of different ops are independent, so their squares are added up.
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
    """Measure how noise in each op changes loss and gradients.

    Random state and buffers are restored before each pass, so passes differ only in the noise.

    Args:
        passes: Runs forward and backward on one batch.
        modules: The modules by path; None to name them by their path in the outermost module that
            is called.
        settings: The settings of the noise.
        buffers: The tensors that a pass changes besides gradients.
        say: Called with a line about the number of passes and their time.

    Raises:
        UserError: A setting is not allowed, or the step has no gradients or no finite loss.
    """
    settings.check()
    start = time.monotonic()
    with restored(buffers) as restore, _uncompiled():
        repeated, no_calls = _Step(passes, modules, settings, restore), frozenset[OpCall]()
        first = repeated.run(no_calls)
        if not math.isfinite(first.loss) or not 0 < first.norm < math.inf:
            raise UserError(
                f"the step has a loss of {first.loss:g} and gradients with norm {first.norm:g}",
                todo="The measurement needs a finite loss and gradients that are not all 0. "
                "To find an overflow: jumar precision overflow",
            )
        floor_start = time.monotonic()
        floor = repeated.run(no_calls).change_from(first)
        pass_s = time.monotonic() - floor_start
        groups = _groups(first.calls, settings)
        if say is not None:
            say(
                f"{counted(len(groups) + 3, 'pass')} forward and backward, "
                f"about {time_text(pass_s * (len(groups) + 1))}"
            )
        rows = [
            _moved(calls, settings.by, repeated.run({call for call, _ in calls}), first)
            for calls in groups
        ]
        all_calls = {call for calls in groups for call, _ in calls}
        together = repeated.run(all_calls).change_from(first)
    return Sensitivity(
        settings=settings,
        loss=first.loss,
        gradient=first.norm,
        rows=rows,
        together=together,
        floor=floor,
        passes=repeated.count,
        seconds=time.monotonic() - start,
    )


def parameter_passes(model: nn.Module, step: Callable[[], Tensor]) -> Passes:
    """Return `Passes` for a function that computes a model's gradients and returns the loss."""
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
        """Return the change of loss and gradients from another pass, relative to that pass."""
        pairs = zip(self.gradients, reference.gradients, strict=True)
        changes = [a - b for a, b in pairs if a is not None and b is not None]
        loss_change = abs(self.loss - reference.loss) / (abs(reference.loss) or 1.0)
        return loss_change, _norm(changes) / reference.norm


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

    def run(self, noisy_calls: Collection[OpCall]) -> _Result:
        """Run a pass with noise in some calls."""
        self.count += 1
        self._restore()
        settings = self._settings
        noisy_ops = NoisyOps(
            self._modules,
            dtype=DTYPES[settings.dtype],
            seed=settings.seed,
            is_chosen=noisy_calls.__contains__,
        )
        with noisy_ops:
            loss, gradients = self._passes()
        return _Result(loss, gradients, noisy_ops.calls)


def _groups(
    calls: Sequence[tuple[OpCall, int]], settings: NoiseSettings
) -> list[list[tuple[OpCall, int]]]:
    """Return the calls that get noise together, in the order of their first executions."""
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
    # NaN becomes infinity, because it could not be ranked.
    return math.hypot(*norms) if all(map(math.isfinite, norms)) else math.inf


@contextmanager
def _uncompiled() -> Generator[None]:
    """Return a context in which compiled modules run op by op."""
    if "torch._dynamo" not in sys.modules:
        yield
        return
    with torch.compiler.set_stance("force_eager"):
        yield
