"""The last stage of a check: all steps ran, or their losses match the original's."""

from dataclasses import dataclass, replace

from jumar.ground.text import Text
from jumar.porting.check.losses import Comparison, compare
from jumar.porting.check.reasons import details_of, reason_of
from jumar.porting.check.record import Record
from jumar.porting.check.result import Stage
from jumar.porting.check.wording import NOTHING, ORIGINAL, PORT, joined, steps

_RUNS = Text(en="runs {steps}", zh="完成 {steps}训练")
_FOLLOWS = Text(en="follows the original's losses for {steps}", zh="{steps}的损失与原脚本一致")
_BROKE = Text(
    en="the original completes its first step: the port is the cause",
    zh="原脚本能完成第一步：问题由移植造成",
)
_BROKEN_BEFORE = Text(
    en="the original completes no step either: {reason}", zh="原脚本也无法完成一步：{reason}"
)
_ENDED = Text(en="the script ended after {steps}", zh="脚本在 {steps}后结束")
_STOPS = Text(en="{side} stops after {steps}: {reason}", zh="{side}在 {steps}后停止：{reason}")
_NO_LOSS = Text(en="no loss was found in the steps of either side", zh="两边的训练步中都未找到损失")
_NAN = Text(
    en="step {step}: the loss is nan on both sides ({name}), which proves nothing",
    zh="第 {step} 步：两边的损失都是 nan（{name}），不能证明任何结论",
)
_APART = Text(
    en="step {step}: the original has {original}, the port {port} ({name}), "
    "relative difference {difference}, allowed {tolerance}",
    zh="第 {step} 步：原脚本为 {original}，移植结果为 {port}（{name}），"
    "相对差异 {difference}，允许 {tolerance}",
)
_EQUAL = Text(
    en="{equal} of {number} losses equal to the last bit, "
    "largest relative difference {difference}, allowed {tolerance}",
    zh="{number} 个损失中有 {equal} 个逐位相同，最大相对差异 {difference}，允许 {tolerance}",
)
_REPEATS = Text(en="the original is reproducible", zh="原脚本能重现自己的结果")
_FROM_STEP = Text(en=" from step {step} on", zh="从第 {step} 步起")
_INCONCLUSIVE = Text(
    en="inconclusive: two runs of the original differ{where} by up to {difference} "
    "although both have the same seeds",
    zh="无法得出结论：原脚本的两次运行{where}相差最多 {difference}，尽管随机种子相同",
)


@dataclass(frozen=True, kw_only=True)
class Limits:
    """The interpreter, the timeout as typed, and the number of steps of a run."""

    python: str
    timeout: str
    steps: int


def failed(key: str, name: Text, record: Record, limits: Limits, seconds: float) -> Stage:
    """Return a failed stage with the reason why the script stopped."""
    return Stage(
        key=key,
        name=name,
        status="failed",
        seconds=max(0.0, seconds),
        reason=_stop_reason(record, limits),
        details=details_of(record),
    )


def all_steps(limits: Limits, record: Record, *, ran: bool) -> Stage:
    """Return the last stage without an original: all steps ran, or the script finished."""
    name = _RUNS.filled(steps=steps(limits.steps))
    if not ran:
        return Stage(key="steps", name=name, status="not reached", seconds=0.0)
    seconds = max(0.0, record.ended.seconds - record.reached.get("step", 0.0))
    if record.finished:
        reason = _steps_done(record, limits.steps)
        return Stage(key="steps", name=name, status="passed", seconds=seconds, reason=reason)
    return failed("steps", name, record, limits, seconds)


def losses_not_reached(limits: Limits, original: Record) -> Stage:
    """Return the last stage for a port that completes no step, with the original's outcome."""
    reason = _BROKE
    if "step" not in original.reached:
        reason = _BROKEN_BEFORE.filled(reason=_stop_reason(original, limits))
    return Stage(
        key="losses",
        name=_follows(limits),
        status="not reached",
        seconds=original.ended.seconds,
        reason=reason,
    )


def follow(limits: Limits, original: Record, port: Record, comparison: Comparison) -> Stage:
    """Return the stage that compares the losses of both sides."""
    stage = Stage(
        key="losses", name=_follows(limits), status="failed", seconds=original.ended.seconds
    )
    for label, record in ((ORIGINAL, original), (PORT, port)):
        if not record.finished:
            reason = _STOPS.filled(
                side=label, steps=steps(record.num_steps), reason=_stop_reason(record, limits)
            )
            return replace(stage, reason=reason, details=details_of(record))
    difference = comparison.first_different
    if comparison.mismatch.en or not comparison.pairs:
        return replace(stage, reason=comparison.mismatch if comparison.mismatch.en else _NO_LOSS)
    if difference is not None and difference.not_a_number:
        return replace(stage, reason=_NAN.filled(step=difference.step, name=difference.name))
    if difference is not None:
        reason = _APART.filled(
            step=difference.step,
            original=f"{difference.original:.9g}",
            port=f"{difference.port:.9g}",
            name=difference.name,
            difference=f"{difference.relative_difference:.1e}",
            tolerance=f"{comparison.tolerance:g}",
        )
        return replace(stage, reason=reason)
    reason = _EQUAL.filled(
        equal=comparison.num_equal,
        number=len(comparison.pairs),
        difference=f"{comparison.largest_difference:.1e}",
        tolerance=f"{comparison.tolerance:g}",
    )
    if port.num_steps < limits.steps:
        reason = joined(reason, _steps_done(port, limits.steps))
    return replace(stage, status="passed", reason=reason)


def with_repetition(stage: Stage, first: Record, second: Record) -> Stage:
    """Add whether the original is reproducible; if not, the losses of a port cannot match."""
    repetition = compare(first.losses, second.losses, tolerance=0.0)
    seconds = stage.seconds + second.ended.seconds
    if repetition.equal:
        return replace(stage, seconds=seconds, reason=joined(stage.reason, _REPEATS))
    difference = repetition.first_different
    location = _FROM_STEP.filled(step=difference.step) if difference else NOTHING
    reason = _INCONCLUSIVE.filled(where=location, difference=f"{repetition.largest_difference:.1e}")
    return replace(stage, seconds=seconds, reason=joined(reason, stage.reason))


def _stop_reason(record: Record, limits: Limits) -> Text:
    return reason_of(record, python=limits.python, timeout=limits.timeout)


def _follows(limits: Limits) -> Text:
    return _FOLLOWS.filled(steps=steps(limits.steps))


def _steps_done(record: Record, requested_steps: int) -> Text:
    steps_text = steps(record.num_steps)
    return steps_text if record.num_steps >= requested_steps else _ENDED.filled(steps=steps_text)
