"""Compare two dumps of one step: pair their calls, measure and judge errors, find offenders."""

from collections.abc import Mapping
from typing import Final

import torch

from jumar.ground.errors import UserError
from jumar.ground.text import counted
from jumar.precision.comparing.comparison import Compared, Comparison, Row, call_name
from jumar.precision.comparing.drift import drift_of
from jumar.precision.comparing.judging import EXPLAINED, Judge, first_offenders, resolved_layers
from jumar.precision.comparing.observed import (
    Difference,
    compare_statistics,
    compare_tensors,
    roundoff,
)
from jumar.precision.comparing.pairing import Pair, Pairing, pair_calls, pair_values
from jumar.precision.comparing.replay import replay
from jumar.precision.comparing.unequal import first_unequal, hashed_values
from jumar.precision.dumps.dump import Dump, Value

_MIN_PAIRED: Final = 0.05
"""If a smaller fraction of the calls is paired, the dumps are of different models."""

_LAYER_GRADIENTS: Final = ("module", "backward")


def compare_dumps(before: Dump, after: Dump, truth: Dump | None = None) -> Comparison:
    """Compare a candidate with a reference.

    Args:
        before: The reference.
        after: The candidate.
        truth: A more precise run of the same step. If present, both are measured against it, and
            errors as large as the reference's are tolerated.

    Raises:
        UserError: The dumps are of different models or steps, or empty.
    """
    _check_steps(before, after, *([truth] if truth else []))
    base = truth or before
    pairing = _paired(base, after)
    errors = _errors(truth, before) if truth else {}
    reader = _Differences(base, after)
    judge = Judge(
        drift=drift_of(base),
        resolved=resolved_layers(pair.before for pair in pairing.pairs),
    )
    forward = {
        pair.before.use: pair
        for pair in pairing.pairs
        if pair.before.phase == "forward" and pair.before.kind == "op"
    }
    calls: list[Compared] = []
    roundings = _roundings(after)
    for position, pair in enumerate(pairing.pairs):
        judge.note_rounding(roundings.get(id(pair.after), 0.0))
        twin = forward.get(pair.before.use) if pair.before.is_gradient else None
        replayed = replay(pair, base, after, twin, EXPLAINED)
        baseline = errors.get(id(pair.before), {})
        calls.append(judge.judge(position, pair, reader.rows(pair), replayed, baseline))
    return Comparison(
        before=before,
        after=after,
        calls=calls,
        offenders=[*first_offenders(calls)],
        only_before=pairing.only_before,
        only_after=pairing.only_after,
        first_difference=next(filter(_is_first_difference, calls), None),
        hashed=hashed_values(pairing),
        first_unequal=first_unequal(base, after, pairing),
        notices=[*_notices(base, after, pairing), *reader.notices],
    )


def _roundings(dump: Dump) -> Mapping[int, float]:
    """Return, for each call of a dump, the coarsest unit roundoff of the casts up to it."""
    coarsest = 0.0
    coarsest_by_call: dict[int, float] = {}
    for call in dump.calls:
        if call.op.startswith("aten._to_copy"):
            units = [roundoff(value.dtype) for value in call.of("output")]
            coarsest = max([coarsest, *units])
        coarsest_by_call[id(call)] = coarsest
    return coarsest_by_call


def _check_steps(*dumps: Dump) -> None:
    for dump in dumps:
        if not dump.calls:
            raise UserError("contains no calls", where=str(dump.where), todo="Dump a step again.")
    first = dumps[0]
    for dump in dumps[1:]:
        if None not in (first.step, dump.step) and first.step != dump.step:
            raise UserError(
                f"the dumps are of different steps, {first.step} and {dump.step}",
                where=f"{first.where} and {dump.where}",
                todo="Compare dumps of the same step.",
            )


def _paired(before: Dump, after: Dump) -> Pairing:
    pairing = pair_calls(before, after)
    if len(pairing.pairs) < _MIN_PAIRED * min(len(before.calls), len(after.calls)) + 1e-9:
        raise UserError(
            f"only {len(pairing.pairs)} of {len(before.calls)} and {len(after.calls)} calls match, "
            "so these are dumps of different models, with calls such as"
            f" {call_name(before.calls[0])} and {call_name(after.calls[0])}",
            where=f"{before.where} and {after.where}",
            todo="Compare dumps of one step of one model.",
        )
    return pairing


def _errors(truth: Dump, baseline: Dump) -> Mapping[int, Mapping[tuple[str, str], float]]:
    """Return the baseline's error against the truth, by call of the truth and by value.

    If only statistics are available, it is a lower bound, like the candidate's error.
    """
    reader = _Differences(truth, baseline)
    return {
        id(pair.before): {
            (row.value.role, row.value.name): row.difference.lower
            for row in reader.rows(pair)
            if row.difference is not None and row.value.role not in ("input", "parameter")
        }
        for pair in _paired(truth, baseline).pairs
    }


class _Differences:
    """Measures the differences between paired values, from tensors if both dumps have them.

    Args:
        before: The reference.
        after: The candidate.
    """

    def __init__(self, before: Dump, after: Dump) -> None:
        self._before = before
        self._after = after
        tools = {dump.tool.partition(" ")[0] for dump in (before, after)}
        self._is_mixed = len(tools) > 1 and "jumar" in tools
        self._missing: list[str] = []
        self._measured: dict[tuple[str | None, str | None], Difference] = {}

    @property
    def notices(self) -> list[str]:
        """Notes about values that could not be read or compared."""
        notices: list[str] = []
        if self._is_mixed:
            notices.append(
                "Gradients of layers' inputs are not compared: jumar records their sum over all "
                "uses of the input, other tools only the layer's contribution."
            )
        if self._missing:
            notices.append(
                f"{counted(len(self._missing), 'tensor')} could not be read, so statistics were"
                f" compared instead: {self._missing[0]}"
            )
        return notices

    def rows(self, pair: Pair) -> list[Row]:
        """Return the values of a call with their differences."""
        # Other tools record only this layer's contribution to the gradient of an input.
        is_partial = self._is_mixed and (pair.before.kind, pair.before.phase) == _LAYER_GRADIENTS
        is_reordered = pair.before.op != pair.after.op
        return [
            Row(
                value=value,
                partner=partner,
                # A weight may be transposed, which changes no statistic.
                difference=compare_statistics(value, partner)
                if is_reordered and value.role == "input"
                else self._difference(value, partner),
            )
            for value, partner in pair_values(pair)
            if not (is_partial and value.role == "output")
        ]

    def _difference(self, value: Value, partner: Value) -> Difference | None:
        names = value.tensor, partner.tensor
        if names in self._measured:  # Most operands are outputs of an earlier call.
            return self._measured[names]
        first = self._tensor(self._before, value)
        second = self._tensor(self._after, partner) if first is not None else None
        if first is None or second is None or first.numel() != second.numel():
            return compare_statistics(value, partner)
        self._measured[names] = compare_tensors(first, second)
        return self._measured[names]

    def _tensor(self, dump: Dump, value: Value) -> torch.Tensor | None:
        if dump.tensors is None or value.tensor is None:
            return None
        try:
            return dump.tensors.read(value.tensor)
        except UserError as error:
            self._missing.append(str(error).partition("\n")[0])
            return None


def _is_first_difference(compared: Compared) -> bool:
    operands = [row for row in compared.rows if row.value.role in ("input", "parameter")]
    outputs = [row for row in compared.rows if row.ratio is not None]
    return (
        bool(operands)
        and all(row.difference is not None and row.difference.is_exact for row in operands)
        and any(row.difference is not None and not row.difference.is_exact for row in outputs)
    )


def _notices(before: Dump, after: Dump, pairing: Pairing) -> list[str]:
    notices = [*before.notices, *after.notices]
    for dump, calls in ((before, pairing.only_before), (after, pairing.only_after)):
        if calls:
            notices.append(
                f"{counted(len(calls), 'call')} of {dump.where} without a partner, such as"
                f" {', '.join(map(call_name, calls[:3]))}."
            )
    if None not in (before.rank, after.rank) and before.rank != after.rank:
        notices.append(f"Rank {before.rank} is compared with rank {after.rank}.")
    return notices
