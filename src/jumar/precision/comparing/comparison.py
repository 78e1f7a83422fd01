"""The result of comparing two dumps: its rows, its offenders, and unpaired calls."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from jumar.precision.comparing.observed import Difference
from jumar.precision.comparing.pairing import Pair
from jumar.precision.comparing.unequal import Unequal
from jumar.precision.dumps.dump import Call, Dump, Value

Verdict = Literal["agrees", "inherited", "offender"]
"""`agrees`: rounding alone explains the error of the output. `inherited`: the errors of its
operands explain it. `offender`: neither does."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Row:
    """A value of a call in both dumps.

    Attributes:
        value: The value in the first dump.
        partner: The value in the second dump.
        difference: The difference; None if neither tensors nor statistics can be compared.
        ratio: Ratio of the observed error to the error that rounding and the operands' errors
            explain; None for operands.
        verdict: The verdict.
    """

    value: Value
    partner: Value
    difference: Difference | None
    ratio: float | None = None
    verdict: Verdict = "agrees"


@dataclass(frozen=True, kw_only=True, slots=True)
class Compared:
    """A call and its partner with all their values.

    Attributes:
        pair: Both calls.
        position: Position in the order of execution.
        rows: The values of both calls.
        ratio: The largest ratio of an output.
        verdict: The worst verdict of an output.
        reason: The reason why the call is an offender; empty otherwise.
        added: Relative error that the call adds itself, if it was replayed.
        inherited: Relative error that its operands cause, if it was replayed.
        baseline: Relative error of the baseline against the truth, if there is a truth.
    """

    pair: Pair
    position: int
    rows: Sequence[Row]
    ratio: float
    verdict: Verdict
    reason: str = ""
    added: float | None = None
    inherited: float | None = None
    baseline: float | None = None

    @property
    def call(self) -> Call:
        """The call in the first dump."""
        return self.pair.before

    @property
    def name(self) -> str:
        """A readable name: the layer, the op, its number and the phase."""
        return call_name(self.call)


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """The comparison of two dumps.

    Attributes:
        before: The reference.
        after: The candidate.
        calls: All pairs, in the order of execution.
        offenders: The first offenders, in the order of execution: their operands agree, but not
            their outputs.
        only_before: Calls of the reference without a partner.
        only_after: Calls of the candidate without a partner.
        first_difference: The first call with bit-identical operands and a different output.
        hashed: Number of values with a hash in both dumps.
        first_unequal: The first call with different hashes; None if all are equal.
        notices: Notes, one sentence each.
    """

    before: Dump
    after: Dump
    calls: Sequence[Compared]
    offenders: Sequence[Compared]
    only_before: Sequence[Call]
    only_after: Sequence[Call]
    first_difference: Compared | None
    hashed: int
    first_unequal: Unequal | None
    notices: Sequence[str]

    @property
    def flagged(self) -> int:
        """Number of rows with an unexplained error."""
        return sum(row.verdict == "offender" for call in self.calls for row in call.rows)

    @property
    def rows(self) -> int:
        """Number of compared values."""
        return sum(len(call.rows) for call in self.calls)


def call_name(call: Call) -> str:
    """Return a readable name: the layer, the op, its number and the phase."""
    number = f" #{call.number}" if call.number else ""
    layer = f"{call.layer}: " if call.layer else ""
    return f"{layer}{call.op}{number} {call.phase}"
