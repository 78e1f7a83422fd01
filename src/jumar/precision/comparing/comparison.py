"""The result of comparing two dumps: its rows, its offenders, and unpaired calls."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from jumar.precision.comparing.observed import Difference
from jumar.precision.comparing.pairing import Pair
from jumar.precision.comparing.unequal import Unequal
from jumar.precision.dumps.dump import Call, Dump, Value

Verdict = Literal["agrees", "inherited", "offender"]
"""`agrees`: rounding explains the error of the output if its operands were right. `inherited`: the
errors of its operands explain it. `offender`: neither does."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Row:
    """A value of a call on both sides.

    Attributes:
        value: The value in the first dump.
        partner: The value in the second one.
        difference: The difference; None if neither tensors nor statistics can be compared.
        ratio: Observed error over what rounding and the operands' errors explain; None for
            operands.
        verdict: The verdict.
    """

    value: Value
    partner: Value
    difference: Difference | None
    ratio: float | None = None
    verdict: Verdict = "agrees"


@dataclass(frozen=True, kw_only=True, slots=True)
class Compared:
    """A call and its partner with all of their values.

    Attributes:
        pair: Both calls.
        place: Position in the order of execution.
        rows: Their values.
        ratio: The largest ratio of an output.
        verdict: The worst verdict of an output.
        reason: Why it is an offender; empty otherwise.
        added: Relative error that the call adds itself, if it was replayed.
        inherited: Relative error that its operands cause, if it was replayed.
        baseline: Relative error of the baseline against the truth, if there is a truth.
    """

    pair: Pair
    place: int
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
        """A name for people: the layer, the op, its number and the phase."""
        return call_name(self.call)


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """Two dumps compared.

    Attributes:
        before: The reference.
        after: The candidate.
        calls: All pairs, in the order of execution.
        offenders: The first offenders, in the order of execution: their operands agree and their
            output does not.
        only_before: Calls of the reference without a partner.
        only_after: Calls of the candidate without a partner.
        first_difference: The first call whose operands are bit-equal and whose output is not.
        hashed: How many values have a hash in both dumps.
        first_unequal: The first call that is not equal by these hashes; None if all are.
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
    """A name for people: the layer, the op, its number and the phase."""
    number = f" #{call.number}" if call.number else ""
    layer = f"{call.layer}: " if call.layer else ""
    return f"{layer}{call.op}{number} {call.phase}"
