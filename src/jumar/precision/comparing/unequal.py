"""Find the first call of two dumps that is not bit-identical, by the hashes of its tensors."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from jumar.precision.comparing.pairing import Pair, Pairing, pair_values
from jumar.precision.dumps.digest import is_comparable
from jumar.precision.dumps.dump import Call, Dump, Value


@dataclass(frozen=True, kw_only=True)
class Unequal:
    """A call with unequal tensors.

    Attributes:
        pair: The call in both dumps.
        values: The unequal tensors, in both dumps.
        inputs_equal: Whether all its inputs are equal, so that the difference arises in the call.
        unpaired: The first call, before this one, that only one of the dumps has, such as a cast;
            None if there is none.
    """

    pair: Pair
    values: Sequence[tuple[Value, Value]]
    inputs_equal: bool
    unpaired: Call | None = None


def hashed_values(pairing: Pairing) -> int:
    """Return the number of values with a hash in both dumps."""
    return sum(
        is_comparable(value.digest, partner.digest)
        for pair in pairing.pairs
        for value, partner in pair_values(pair)
    )


def first_unequal(before: Dump, after: Dump, pairing: Pairing) -> Unequal | None:
    """Find the first unequal op or parameter, or else the first module; None if all are equal.

    A module's call has the inputs and outputs of its ops, so an op is more specific. Values with a
    hash in only one dump are ignored.

    Args:
        before: The first dump.
        after: The second dump.
        pairing: The pairing of their calls.
    """
    unequal = list(_unequal(pairing.pairs))
    ops = [unequal_call for unequal_call in unequal if unequal_call.pair.after.kind != "module"]
    if not unequal:
        return None
    first = (ops or unequal)[0]
    unpaired = _first_unpaired(before, pairing.only_before, first.pair.before)
    return replace(
        first,
        unpaired=unpaired or _first_unpaired(after, pairing.only_after, first.pair.after),
    )


def _unequal(pairs: Sequence[Pair]) -> Iterator[Unequal]:
    for pair in pairs:
        values = [sides for sides in pair_values(pair) if not _is_equal(*sides)]
        if values:
            input_roles = ("input", "parameter")
            if pair.before.kind == "parameter":
                input_roles = (*input_roles, "gradient")
            inputs_equal = not any(value.role in input_roles for value, _ in values)
            yield Unequal(pair=pair, values=values, inputs_equal=inputs_equal)


def _is_equal(value: Value, partner: Value) -> bool:
    """Whether two tensors are equal, as far as is known."""
    if not is_comparable(value.digest, partner.digest):
        return True
    return (value.digest, value.dtype) == (partner.digest, partner.dtype)


def _first_unpaired(dump: Dump, unpaired: Sequence[Call], until: Call) -> Call | None:
    """Return the first unpaired op of a dump before a call; None if there is none."""
    unpaired_ids = {id(call) for call in unpaired}
    for call in dump.calls:
        if call is until:
            return None
        if id(call) in unpaired_ids and call.kind == "op":
            return call
    return None
