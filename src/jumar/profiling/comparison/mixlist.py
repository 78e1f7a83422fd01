"""Edits of `modify_mixlist` that would save time, from a pair of precision modes."""

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from jumar.ground.text import Text
from jumar.profiling.comparison.chains import REACH, Tensor, ends_of, tensors
from jumar.profiling.comparison.op_kinds import NARROW, WIDE, is_narrow, is_wide, words
from jumar.profiling.comparison.own_times import Op, Step
from jumar.profiling.comparison.parts import Comparison

ListName = Literal["black-list", "white-list"]


@dataclass(frozen=True, kw_only=True)
class Edit:
    """One entry of a mixlist.

    Args:
        name: The op as the list names it.
        to: The list that it is added to.
        own_ns: How much longer the op itself takes in 16 bits, in all compared steps; negative
            if faster. 0 for an op that stayed in 32 bits.
        casts_ns: The time of the casts that would go.
    """

    name: str
    to: ListName
    own_ns: int
    casts_ns: int

    @property
    def gain_ns(self) -> int:
        """The estimated saving over all compared steps."""
        return self.own_ns + self.casts_ns

    def why(self, steps: int) -> Text:
        """The reason, with its numbers per step."""
        own, casts = (f"{abs(length) / steps / 1e6:.3f}" for length in (self.own_ns, self.casts_ns))
        if self.to == "white-list":
            return Text(
                en=f"it stays in 32 bits between casts of {casts} ms a step",
                zh=f"它保持 32 位，前后的类型转换每迭代耗时 {casts} ms",
            )
        loses = self.own_ns > 0
        return Text(
            en=f"in 16 bits it {'loses' if loses else 'wins'} {own} ms a step, its casts take "
            f"{casts} ms",
            zh=f"改为 16 位后每迭代{'多' if loses else '少'}用 {own} ms，类型转换耗时 {casts} ms",
        )


class _Cast(NamedTuple):
    """Casts of the later profile with the ops on both sides, named as in the lists."""

    lowers: bool
    producer: str
    consumer: str


def propose(
    comparison: Comparison, name_of: Callable[[str], str], *, least: float = 0.002
) -> tuple[Edit, ...]:
    """The edits that would save time, the largest gain first.

    An op goes on the black list where computing it in 16 bits costs more, with the casts that it
    needs, than it saves against the earlier profile. An op that stayed in 32 bits goes on the white
    list where casts raise its inputs and lower its result again. No cast is counted twice.

    Args:
        comparison: The pair; the second profile is the one whose list is changed.
        name_of: The name under which an op type can be listed (that of its forward op), or an
            empty string.
        least: The smallest gain, as a share of a step; anything below is within measurement noise.
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
        casts = {cast: own_ns for cast, own_ns in casts.items() if not _needed(cast, best)}


def _gain(edit: Edit) -> int:
    return edit.gain_ns


def _after(kind: str) -> str:
    return kind.rpartition(" → ")[2]


def _needed(cast: _Cast, edit: Edit) -> bool:
    """Whether a cast exists because an op is, or is not, lowered."""
    if edit.to == "black-list":
        return edit.name == (cast.consumer if cast.lowers else cast.producer)
    return edit.name == (cast.producer if cast.lowers else cast.consumer)


def _black(name: str, delta: int, casts: Mapping[_Cast, int]) -> Edit:
    offer = Edit(name=name, to="black-list", own_ns=delta, casts_ns=0)
    cost = sum(own_ns for cast, own_ns in casts.items() if _needed(cast, offer))
    return replace(offer, casts_ns=cost)


def _white(name: str, casts: Mapping[_Cast, int]) -> Edit:
    offer = Edit(name=name, to="white-list", own_ns=0, casts_ns=0)
    own = [(cast.lowers, own_ns) for cast, own_ns in casts.items() if _needed(cast, offer)]
    raised = sum(own_ns for lowers, own_ns in own if not lowers)
    lowered = sum(own_ns for lowers, own_ns in own if lowers)
    return replace(offer, casts_ns=raised + lowered if raised and lowered else 0)


@dataclass(frozen=True, kw_only=True)
class _Meaning:
    """What an op does with the cast tensors; `name` is the one it is listed by."""

    cast: tuple[Tensor, Tensor] | None
    computes: bool
    name: str
    takes: tuple[Tensor, ...]
    gives: tuple[Tensor, ...]


def _casts(comparison: Comparison, name_of: Callable[[str], str]) -> dict[_Cast, int]:
    """The casts between 32 and 16 bits by their neighbours, with their total times."""
    side = comparison.after
    meanings = _meanings(side.ops, name_of)
    touches = np.array(
        [bool(meaning.cast or meaning.takes or meaning.gives) for meaning in meanings], bool
    )
    computes = np.array([meaning.computes for meaning in meanings], bool)
    sums: defaultdict[_Cast, int] = defaultdict(int)
    for step in side.steps:
        for cast, own_ns in _linked(step, side.ops, meanings, (touches, computes)):
            sums[cast] += own_ns
    return dict(sums)


def _meanings(ops: Sequence[Op], name_of: Callable[[str], str]) -> list[_Meaning]:
    changes: list[tuple[Tensor, Tensor] | None] = []
    for op in ops:
        ends = ends_of(op) if op.kind == "cast" else None
        taken, given = ends or (None, None)
        dtypes = {taken.dtype, given.dtype} if taken and given else set[str]()
        if taken and given and dtypes & NARROW and dtypes & WIDE:
            # Not all profiles give a layout; shape and dtype are enough between neighbours.
            changes.append((taken._replace(layout=""), given._replace(layout="")))
        else:
            changes.append(None)
    known = {tensor for ends in changes if ends for tensor in ends}

    def those_cast(shapes: str, types: str) -> tuple[Tensor, ...]:
        return tuple(tensor for tensor in tensors(shapes, types, "") if tensor in known)

    return [
        _Meaning(
            cast=ends,
            computes=op.kind == "compute",
            name=name_of(op.type) if op.kind == "compute" else "",
            takes=those_cast(op.input_shapes, op.input_types) if op.kind == "compute" else (),
            gives=those_cast(op.output_shapes, op.output_types) if op.kind == "compute" else (),
        )
        for op, ends in zip(ops, changes, strict=True)
    ]


def _linked(
    step: Step,
    ops: Sequence[Op],
    meanings: Sequence[_Meaning],
    which_are: tuple[NDArray[np.bool_], NDArray[np.bool_]],
) -> Iterable[tuple[_Cast, int]]:
    """Casts between 32 and 16 bits, each with its producer and its consumer.

    Where a profile names no outputs, the maker is the op before the cast, if it computes in the
    dtype that is cast.
    """
    touches, computes = which_are
    made: dict[Tensor, tuple[int, str]] = {}
    waiting: dict[Tensor, int] = {}
    casts: dict[int, tuple[_Cast, int]] = {}
    at = np.arange(len(step.which))
    which_of = step.which.tolist()
    last_of = np.maximum.accumulate(np.where(computes[step.which], at, -1))
    places = np.flatnonzero(touches[step.which])
    columns = places, step.which[places], step.own_ns[places], last_of[places]
    for place, which, own_ns, before in zip(*(one.tolist() for one in columns), strict=True):
        meaning = meanings[which]
        if meaning.cast is not None:
            taken, given = meaning.cast
            maker, producer = made.get(taken), ""
            if maker is not None and place - maker[0] <= REACH:
                producer = maker[1]
            elif before >= 0:
                last = ops[which_of[before]]
                if not last.output_types and taken.dtype in words(last.input_types):
                    producer = meanings[which_of[before]].name
            waiting[given] = place
            casts[place] = (_Cast(given.dtype in NARROW, producer, ""), own_ns)
        for tensor in meaning.takes:
            wanted = waiting.pop(tensor, None)
            if wanted is not None and place - wanted <= REACH:
                cast, length = casts[wanted]
                casts[wanted] = (cast._replace(consumer=meaning.name), length)
        for tensor in meaning.gives:
            made[tensor] = (place, meaning.name)
    return casts.values()


def as_mixlist(edits: Sequence[Edit]) -> str:
    """The edits as a file for `precision.modify_mixlist`, in CANN's form."""
    lists: dict[ListName, dict[str, list[str]]] = {}
    for edit in edits:
        lists.setdefault(edit.to, {"to-add": []})["to-add"].append(edit.name)
    return json.dumps(lists, indent=2, ensure_ascii=False) + "\n"
