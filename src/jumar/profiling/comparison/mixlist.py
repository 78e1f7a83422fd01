"""Edits of `modify_mixlist` that would win time, from a pair of precision modes."""

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from jumar.profiling.comparison.chains import REACH, Tensor, ends_of
from jumar.profiling.comparison.op_kinds import NARROW, WIDE, is_narrow, is_wide, words
from jumar.profiling.comparison.own_times import Row
from jumar.profiling.comparison.parts import Comparison

ListName = Literal["black-list", "white-list"]


@dataclass(frozen=True, kw_only=True)
class Edit:
    """One entry of a mixlist.

    Args:
        name: The op as the list names it.
        to: The list that it is added to.
        own_ns: What the op itself takes longer in 16 bits, in all compared steps; negative where
            it wins. 0 for an op that stayed in 32 bits.
        casts_ns: What the casts take that would go.
    """

    name: str
    to: ListName
    own_ns: int
    casts_ns: int

    @property
    def gain_ns(self) -> int:
        """What the compared steps would take less, together: an estimate."""
        return self.own_ns + self.casts_ns

    def why(self, steps: int) -> str:
        """The reason, with its numbers a step."""
        own, casts = (abs(length) / steps / 1e6 for length in (self.own_ns, self.casts_ns))
        if self.to == "white-list":
            return f"it stays in 32 bits between casts of {casts:.3f} ms a step"
        said = "loses" if self.own_ns > 0 else "wins"
        return f"in 16 bits it {said} {own:.3f} ms a step, its casts take {casts:.3f} ms"


class _Cast:
    """A cast of the later profile with the ops on both of its sides, by the names of lists."""

    def __init__(self, row: Row) -> None:
        self.own_ns = row.own_ns
        self.lowers = False
        self.producer = ""
        self.consumer = ""


def propose(
    comparison: Comparison, name_of: Callable[[str], str], *, least: float = 0.002
) -> tuple[Edit, ...]:
    """The edits that would win time, the largest gain first.

    An op goes on the black list where computing it in 16 bits costs more, with the casts that it
    needs, than it wins against the earlier profile. An op that stayed in 32 bits goes on the white
    list where casts raise its inputs and lower its result again. No cast is counted twice.

    Args:
        comparison: The pair; the second profile is the one whose list is changed.
        name_of: The name under which an op type can be listed (that of its forward op), or an
            empty string.
        least: The smallest gain, as a share of a step; below it lies what a measurement varies.
    """
    least_ns = max(least * comparison.after_ns, 1)
    casts = _casts(comparison, name_of)
    lowered: defaultdict[str, int] = defaultdict(int)
    for row in comparison.changes.filter(part="dtype").iter_rows(named=True):
        name = name_of(_after(str(row["type"])))
        if name and is_wide(str(row["before"])) and is_narrow(str(row["after"])):
            lowered[name] += int(row["delta_ns"])
    names = sorted({one for cast in casts for one in (cast.producer, cast.consumer) if one})
    edits: list[Edit] = []
    while True:
        offers = [_black(name, lowered[name], casts) for name in sorted(lowered)]
        offers += [_white(name, casts) for name in names if name not in lowered]
        done = {edit.name for edit in edits}
        best = max((one for one in offers if one.name not in done), key=_gain, default=None)
        if best is None or best.gain_ns < least_ns:
            return tuple(edits)
        edits.append(best)
        casts = [cast for cast in casts if not _needed(cast, best)]


def _gain(edit: Edit) -> int:
    return edit.gain_ns


def _after(kind: str) -> str:
    return kind.rpartition(" → ")[2]


def _needed(cast: _Cast, edit: Edit) -> bool:
    """Whether a cast is there because an op is, or is not, lowered."""
    if edit.to == "black-list":
        return edit.name == (cast.consumer if cast.lowers else cast.producer)
    return edit.name == (cast.producer if cast.lowers else cast.consumer)


def _black(name: str, delta: int, casts: Sequence[_Cast]) -> Edit:
    offer = Edit(name=name, to="black-list", own_ns=delta, casts_ns=0)
    cost = sum(cast.own_ns for cast in casts if _needed(cast, offer))
    return replace(offer, casts_ns=cost)


def _white(name: str, casts: Sequence[_Cast]) -> Edit:
    offer = Edit(name=name, to="white-list", own_ns=0, casts_ns=0)
    own = [cast for cast in casts if _needed(cast, offer)]
    raised = sum(cast.own_ns for cast in own if not cast.lowers)
    lowered = sum(cast.own_ns for cast in own if cast.lowers)
    return replace(offer, casts_ns=raised + lowered if raised and lowered else 0)


def _casts(comparison: Comparison, name_of: Callable[[str], str]) -> list[_Cast]:
    found: list[_Cast] = []
    for step in comparison.after.steps:
        found.extend(_linked(step.rows, name_of))
    return found


def _linked(rows: Sequence[Row], name_of: Callable[[str], str]) -> Iterable[_Cast]:
    """Casts between 32 and 16 bits with who made their input and who takes their result.

    Where a profile names no outputs, the maker is the op before the cast, if it computes in the
    dtype that is cast.
    """
    made: dict[Tensor, tuple[int, str]] = {}
    waiting: dict[Tensor, tuple[int, _Cast]] = {}
    last: Row | None = None
    for place, row in enumerate(rows):
        ends = ends_of(row) if row.kind == "cast" else None
        if ends is not None:
            cast = _Cast(row)
            taken, given = (Tensor(end.shape, end.dtype, "") for end in ends)
            if {taken.dtype, given.dtype} & NARROW and {taken.dtype, given.dtype} & WIDE:
                cast.lowers = given.dtype in NARROW
                maker = made.get(taken)
                if maker is not None and place - maker[0] <= REACH:
                    cast.producer = maker[1]
                elif last is not None and not last.output_types:
                    own = taken.dtype in words(last.input_types)
                    cast.producer = name_of(last.type) if own else ""
                waiting[given] = (place, cast)
                yield cast
        if row.kind != "compute":
            continue
        last = row
        name = name_of(row.type)
        for shape, dtype in zip(row.input_shapes.split(";"), words(row.input_types), strict=False):
            wanted = waiting.pop(Tensor(shape, dtype, ""), None)
            if wanted is not None and place - wanted[0] <= REACH:
                wanted[1].consumer = name
        given = zip(row.output_shapes.split(";"), words(row.output_types), strict=False)
        for shape, dtype in given:
            made[Tensor(shape, dtype, "")] = (place, name)


def as_mixlist(edits: Sequence[Edit]) -> str:
    """The edits as a file for `precision.modify_mixlist`, in CANN's form."""
    lists: dict[ListName, dict[str, list[str]]] = {}
    for edit in edits:
        lists.setdefault(edit.to, {"to-add": []})["to-add"].append(edit.name)
    return json.dumps(lists, indent=2, ensure_ascii=False) + "\n"
