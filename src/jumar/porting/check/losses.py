"""Compares the losses of two runs, step by step."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from jumar.ground.text import Text
from jumar.porting.check.record import StepLosses
from jumar.porting.check.wording import NOTHING, number_of, steps

_OTHER_LOSSES = Text(
    en="step {step} has {original} in the original and {port} in the port",
    zh="第 {step} 步在原脚本中有 {original}，在移植结果中有 {port}",
)
_OTHER_STEPS = Text(
    en="the original ran {original} and the port {port}",
    zh="原脚本运行了 {original}，移植结果运行了 {port} 步",
)


@dataclass(frozen=True, kw_only=True)
class LossPair:
    """One loss of one step on both sides.

    `index` numbers the losses of a step, `process` the processes that trained.
    """

    step: int
    index: int
    name: str
    original: float
    port: float
    process: int = 0

    @property
    def relative_difference(self) -> float:
        """0 if both are equal, even if infinite; infinite if they differ and one is not finite."""
        if self.original == self.port:
            return 0.0
        if not (math.isfinite(self.original) and math.isfinite(self.port)):
            return math.inf
        return abs(self.original - self.port) / max(abs(self.original), abs(self.port))

    @property
    def not_a_number(self) -> bool:
        """Whether both losses are NaN, so that there is nothing to compare."""
        return math.isnan(self.original) and math.isnan(self.port)


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """The losses of the steps that both sides ran; `mismatch` is set if their numbers differ."""

    pairs: tuple[LossPair, ...]
    tolerance: float
    mismatch: Text

    @property
    def first_different(self) -> LossPair | None:
        different_pairs = (pair for pair in self.pairs if pair.relative_difference > self.tolerance)
        return next(different_pairs, None)

    @property
    def largest_difference(self) -> float:
        return max((pair.relative_difference for pair in self.pairs), default=0.0)

    @property
    def num_equal(self) -> int:
        """The number of losses that are equal to the last bit."""
        return sum(pair.relative_difference == 0.0 for pair in self.pairs)

    @property
    def equal(self) -> bool:
        return bool(self.pairs) and not self.mismatch.en and self.first_different is None


def compare(
    original: Sequence[StepLosses], port: Sequence[StepLosses], *, tolerance: float
) -> Comparison:
    """Pair the losses of both sides by process, step and order within a step.

    They are not paired by name: a tensor may get a new name if a port adds ops of the same name.
    """
    pairs: list[LossPair] = []
    mismatch = NOTHING
    for process in sorted({step.process for step in [*original, *port]}):
        original_steps = [step for step in original if step.process == process]
        port_steps = [step for step in port if step.process == process]
        for original_step, port_step in zip(original_steps, port_steps, strict=False):
            if len(port_step.losses) != len(original_step.losses):
                mismatch = _other_losses(original_step, port_step)
                break
            pairs += _pairs(original_step, port_step)
        if not mismatch.en and len(original_steps) != len(port_steps):
            mismatch = _OTHER_STEPS.filled(
                original=steps(len(original_steps)), port=len(port_steps)
            )
    return Comparison(
        pairs=tuple(pairs),
        tolerance=tolerance,
        mismatch=mismatch,
    )


def _other_losses(original: StepLosses, port: StepLosses) -> Text:
    return _OTHER_LOSSES.filled(
        step=port.step,
        original=number_of(len(original.losses), "loss", "个损失"),
        port=number_of(len(port.losses), "loss", "个损失"),
    )


def _pairs(original: StepLosses, port: StepLosses) -> Iterator[LossPair]:
    for index, (original_loss, port_loss) in enumerate(
        zip(original.losses, port.losses, strict=True)
    ):
        yield LossPair(
            step=port.step,
            index=index,
            name=port_loss[0],
            original=original_loss[1],
            port=port_loss[1],
            process=port.process,
        )
