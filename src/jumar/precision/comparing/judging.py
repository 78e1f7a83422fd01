"""Decide whether rounding explains the error of a call, and which calls are to blame."""

import math
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from jumar.precision.comparing.comparison import Compared, Row, Verdict
from jumar.precision.comparing.drift import Drift, layer_and_ancestors
from jumar.precision.comparing.explained import Operand, coarser, explained_error
from jumar.precision.comparing.observed import Difference, magnitude, roundoff
from jumar.precision.comparing.pairing import Pair
from jumar.precision.comparing.replay import Replayed
from jumar.precision.dumps.dump import Call, Phase

EXPLAINED: Final = 3.0
"""Errors of up to this many times the typical error are explained. In runs without a fault (float32
with other kernels, bfloat16 against float32), no error exceeded 1.6 times the typical one."""
_DISAGREEMENT: Final = 10.0
"""An operand whose error exceeds this many times the usual error is itself wrong."""
_INPUTS: Final = ("input", "parameter")
_OUTPUTS: Final = ("output", "gradient", "state", "change")
_KeyOfUse = tuple[str, str, int]


@dataclass
class Judge:
    """Judges pairs of calls in the order of execution, remembering earlier ones.

    Attributes:
        drift: How far parameters may have diverged before the step.
        resolved: Layers and phases whose ops were all recorded; only these ops are judged.
    """

    drift: Drift = field(default_factory=Drift)
    resolved: Collection[tuple[str, Phase]] = ()
    _forward: dict[_KeyOfUse, Sequence[Row]] = field(default_factory=dict)
    """Operands and outputs of forward calls, which their backward calls depend on."""
    _data: defaultdict[str, list[Row]] = field(default_factory=lambda: defaultdict(list))
    """Forward inputs of a layer, on which its parameters' gradients depend."""
    _incoming: defaultdict[str, list[Row]] = field(default_factory=lambda: defaultdict(list))
    """The incoming gradients of a layer."""
    _usual: defaultdict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    """Explained errors of outputs so far, by phase."""
    _explained: set[tuple[str, str, str]] = field(default_factory=set)
    """Identities of the differences of agreeing outputs, to recognise them as later operands."""
    _coarsest: float = 0.0
    _has_disagreement: bool = False

    def note_rounding(self, unit: float) -> None:
        """Record that a tensor was rounded to a dtype with this unit roundoff.

        The dump may not show it: a CPU without bf16 instructions rounds operands to bfloat16, but
        multiplies in float32.
        """
        self._coarsest = max(self._coarsest, unit)

    def judge(
        self,
        position: int,
        pair: Pair,
        rows: Sequence[Row],
        replayed: Replayed | None,
        baseline: Mapping[tuple[str, str], float],
    ) -> Compared:
        """Judge a call.

        Args:
            position: Position of the call in the order of execution.
            pair: Both calls.
            rows: Their values with differences.
            replayed: The result of replaying the call; None if it was not replayed.
            baseline: The baseline's error against the truth, by role and name of an output.
        """
        call = pair.before
        for row in rows:
            self._coarsest = max(self._coarsest, coarser(row.value, row.partner))
        context = self._context(call)
        judged_rows = [
            self._judged(call, row, self._operands_of(row, rows, context), rows, replayed, baseline)
            if row.value.role in _OUTPUTS
            else row
            for row in rows
        ]
        is_resolved = call.kind == "module" and (call.layer, call.phase) in self.resolved
        reason, differing_inputs = "", ()
        if not is_resolved:
            reason, differing_inputs = self._reason(pair, judged_rows, context, replayed)
        judged_rows = [
            replace(row, verdict="offender")
            if any(row is differing_row for differing_row in differing_inputs)
            else self._settled(row, reason)
            for row in judged_rows
        ]
        self._remember(call, judged_rows)
        if not is_resolved:
            disagrees = any(
                row.ratio is not None and row.verdict != "agrees" for row in judged_rows
            )
            self._has_disagreement = self._has_disagreement or disagrees or bool(reason)
        verdicts = {row.verdict for row in judged_rows}
        worst: Verdict = "inherited" if "inherited" in verdicts else "agrees"
        return Compared(
            pair=pair,
            position=position,
            rows=judged_rows,
            ratio=max((row.ratio for row in judged_rows if row.ratio is not None), default=0.0),
            verdict="offender" if reason else worst,
            reason=reason,
            added=replayed.added if replayed else None,
            inherited=replayed.inherited if replayed else None,
            baseline=max(baseline.values(), default=None),
        )

    def _context(self, call: Call) -> list[Row]:
        """Return the implicit operands of a call: saved tensors of the forward pass."""
        if call.kind == "parameter":
            incoming = sorted(self._incoming[call.layer], key=_strength, reverse=True)
            return [*incoming[:1], *self._data[call.layer]] if incoming else []
        return list(self._forward.get(call.use, ())) if call.is_gradient else []

    def _operands_of(self, row: Row, rows: Sequence[Row], context: Sequence[Row]) -> list[Row]:
        """Return the values on which an output depends."""
        if row.value.role in ("state", "change"):
            return [operand for operand in rows if operand.value.role in ("gradient", "parameter")]
        return [*context] if row.value.role == "gradient" else [*_operands(rows), *context]

    def _judged(
        self,
        call: Call,
        row: Row,
        operands: Sequence[Row],
        rows: Sequence[Row],
        replayed: Replayed | None,
        baseline: Mapping[tuple[str, str], float],
    ) -> Row:
        difference = row.difference
        if difference is None or difference.is_exact:
            return replace(row, ratio=0.0)
        if row.value.role == "gradient" and _identity(difference) in self._explained:
            return replace(row, ratio=0.0)  # The op that computed it was judged.
        if row.value.role in ("state", "change") and any(map(_is_all_noise, operands)):
            return replace(row, ratio=0.0)  # Updates by such a gradient are noise too.
        observed = difference.lower * difference.rms
        if math.isinf(difference.lower):
            # The reference is zero, or only one of the values is finite.
            largest = difference.largest
            observed = math.inf if difference.remark or largest is None else largest
        # Errors of operands cannot make a tensor zero.
        is_lost = _is_lost(row) and not any(map(_is_lost, operands))
        usual_error = 0.0 if is_lost else self._level(call.phase)
        if call.kind == "module":  # Its parameters are not among its operands.
            usual_error = max(usual_error, self.drift.layers.get(call.layer, 0.0))
        healthy = [min(self._error(operand, usual_error), usual_error) for operand in operands]
        actual = [0.0 if is_lost else self._error(operand, usual_error) for operand in operands]
        if not operands:
            healthy = actual = [usual_error]
        as_operands = [*operands] or [row]
        is_gradient = call.is_gradient or "_backward" in call.op

        truth = baseline.get((row.value.role, row.value.name), 0.0) * difference.rms

        def explained(errors: Sequence[float]) -> float:
            with_errors = [
                _as_operand(operand, error)
                for operand, error in zip(as_operands, errors, strict=True)
            ]
            absolute = explained_error(
                call, with_errors, _as_operand(row, 0.0), is_gradient=is_gradient
            )
            return max(absolute, truth, usual_error * _scale(row, rows, is_gradient=is_gradient))

        if replayed is not None and row.value.name in replayed.ratios:
            ratio = replayed.ratios[row.value.name]
            if truth > 0:
                ratio = min(ratio, _over(observed, truth))
        else:
            ratio = _over(observed, explained(actual))
        verdict: Verdict = "agrees"
        if ratio > EXPLAINED:
            verdict = "offender"
        elif _over(observed, explained(healthy)) > EXPLAINED:
            verdict = "inherited"
        return replace(row, ratio=ratio, verdict=verdict)

    def _error(self, row: Row, usual_error: float) -> float:
        """Return an approximate upper bound of an operand's relative error."""
        difference = row.difference
        if difference is None:
            return usual_error
        if difference.is_exact:
            return 0.0
        if difference.upper == difference.lower:
            return difference.upper
        # Statistics may underestimate an error.
        return max(difference.upper, usual_error)

    def _level(self, phase: str) -> float:
        """Return the typical error so far."""
        errors = sorted(self._usual[phase] or self._usual["forward"])
        return errors[len(errors) * 9 // 10] if errors else 0.0

    def _reason(
        self, pair: Pair, rows: Sequence[Row], context: Sequence[Row], replayed: Replayed | None
    ) -> tuple[str, Sequence[Row]]:
        """Return why a call is to blame (empty if it is not), and the operands to blame."""
        operands = [*_operands(rows), *context]
        if self._disagreeing(pair.before.phase, operands):
            differing_inputs = [
                row
                for row in self._disagreeing(pair.before.phase, _operands(rows))
                if not self._has_drifted(pair.before.layer, row)
            ]
            if differing_inputs and not self._has_disagreement:
                names = ", ".join(f"{row.value.role} {row.value.name}" for row in differing_inputs)
                return f"{names} already differs, but no earlier value does", differing_inputs
            if replayed is None or not replayed.is_blamed:
                return "", ()
        offending = [row for row in rows if row.verdict == "offender"]
        return (_output_reason(pair, offending[0], replayed) if offending else ""), ()

    def _has_drifted(self, layer: str, row: Row) -> bool:
        """Whether an operand may be a parameter that diverged in two runs."""
        difference = row.difference
        assert difference is not None
        max_drift = self.drift.parameters.get((layer, row.value.shape), 0.0)
        return difference.lower * difference.rms <= max_drift

    def _disagreeing(self, phase: str, operands: Sequence[Row]) -> list[Row]:
        limit = _DISAGREEMENT * max(self._level(phase), self._coarsest)
        return [
            row
            for row in operands
            if row.difference is not None
            and not row.difference.is_exact
            and row.difference.lower > limit
            and _identity(row.difference) not in self._explained
            and (not math.isinf(row.difference.lower) or row.difference.remark)
        ]

    def _settled(self, row: Row, reason: str) -> Row:
        """Mark an unexplained error as inherited if its call is not to blame."""
        return row if reason or row.verdict != "offender" else replace(row, verdict="inherited")

    def _remember(self, call: Call, rows: Sequence[Row]) -> None:
        if call.phase == "forward" and call.kind != "parameter":
            self._forward[call.use] = rows
            self._data[call.layer] += [row for row in rows if row.value.role == "input"]
        if call.phase == "backward" and call.kind != "parameter":
            self._incoming[call.layer] += [row for row in rows if row.value.role == "input"]
        for row in rows:
            if row.ratio is None or row.difference is None or row.verdict != "agrees":
                continue
            self._explained.add(_identity(row.difference))
            if roundoff(row.value.dtype) and row.difference.upper < 1:
                self._usual[call.phase].append(row.difference.upper)


def _output_reason(pair: Pair, row: Row, replayed: Replayed | None) -> str:
    """Return the reason for an unexplained output, in words."""
    changed = [
        f"{name} is {pair.before.arguments.get(name)} and {text}"
        for name, text in pair.after.arguments.items()
        if pair.before.arguments.get(name) not in (None, text)
    ]
    if changed and pair.before.op == pair.after.op:
        return f"its argument {'; '.join(changed)}"
    if row.difference is not None and row.difference.remark:
        return row.difference.remark
    if replayed is not None and replayed.is_reference_blamed:
        return "its operands agree, but the reference's output does not follow from them"
    return "its operands agree, but its output does not"


def resolved_layers(calls: Iterable[Call]) -> frozenset[tuple[str, Phase]]:
    """Return the layers and phases whose ops were all recorded: those that contain aten ops."""
    resolved: set[tuple[str, Phase]] = set()
    for call in calls:
        if call.op.startswith("aten."):
            resolved.update((layer, call.phase) for layer in layer_and_ancestors(call.layer))
    return frozenset(resolved)


def first_offenders(calls: Sequence[Compared]) -> Iterator[Compared]:
    """Yield the offenders, without layers that merely contain another offender."""
    blamed: list[Compared] = []
    offenders = [compared for compared in calls if compared.verdict == "offender"]
    for compared in offenders:
        call = compared.call
        # The backward call of a layer is recorded before those of the ops in it.
        is_container = call.kind in ("module", "parameter") and any(
            _is_inside(offender.call, call)
            for offender in offenders
            if offender in blamed or _is_finer(offender.call, call)
        )
        if not is_container and not any(
            _is_gradient_of(call, offender.call) for offender in blamed
        ):
            blamed.append(compared)
            yield compared


def _is_finer(inner: Call, outer: Call) -> bool:
    return inner.kind == "op" or (inner.kind == "module" and len(inner.layer) > len(outer.layer))


def _is_inside(inner: Call, outer: Call) -> bool:
    phase = "backward" if outer.kind == "parameter" else outer.phase
    if inner.phase not in (phase, outer.phase):
        return False
    return not outer.layer or f"{inner.layer}.".startswith(f"{outer.layer}.")


def _is_gradient_of(call: Call, forward: Call) -> bool:
    """Whether a call computes gradients with what a forward call saved."""
    is_later = (forward.phase, call.phase) == ("forward", "backward")
    return is_later and (call.kind, call.use) == (forward.kind, forward.use)


def _strength(row: Row) -> float:
    return _rms(row.difference) * math.sqrt(math.prod(row.value.shape))


def _identity(difference: Difference) -> tuple[str, str, str]:
    """Return a key by which the value of a difference is recognised again, even if reshaped."""
    return f"{difference.lower:.5g}", f"{difference.rms:.5g}", f"{difference.peak:.5g}"


def _operands(rows: Sequence[Row]) -> list[Row]:
    return [row for row in rows if row.value.role in _INPUTS]


def _as_operand(row: Row, error: float) -> Operand:
    difference = row.difference
    sizes = (difference.rms, difference.peak) if difference else magnitude(row.value)
    rms, peak = (size if math.isfinite(size) else 0.0 for size in sizes)
    unit = coarser(row.value, row.partner)
    return Operand(value=row.value, error=error, roundoff=unit, rms=rms, peak=peak)


def _scale(row: Row, rows: Sequence[Row], *, is_gradient: bool) -> float:
    """Return the magnitude to which the usual relative error of an output applies.

    For a gradient, it includes the layer's other gradients, because it may be zero in theory.
    """
    rms = _rms(row.difference)
    if not is_gradient or len(row.value.shape) != 1:
        return rms
    return max(
        [rms, *(_rms(output.difference) for output in rows if output.value.role in _OUTPUTS)]
    )


def _is_all_noise(row: Row) -> bool:
    """Whether a gradient's error is as large as the gradient, as if it were zero in theory.

    If it is not, the gradient or the op that computed it is reported.
    """
    difference = row.difference
    return (
        row.value.role == "gradient"
        and difference is not None
        and not difference.remark
        and difference.lower >= 1
    )


def _is_lost(row: Row) -> bool:
    """Whether all elements are zero in the second dump, but not in the first."""
    first, second = row.value.statistics, row.partner.statistics
    return bool(first and second and first.l2 and second.l2 == 0 == second.max)


def _rms(difference: Difference | None) -> float:
    if difference is None or not math.isfinite(difference.rms):
        return 0.0
    return difference.rms


def _over(observed: float, explained: float) -> float:
    if explained > 0:
        return observed / explained
    return math.inf if observed > 0 else 0.0
