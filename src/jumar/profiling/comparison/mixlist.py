"""Proposes edits of `modify_mixlist` that would save time, from a pair of precision modes."""

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from jumar.ground.text import Text
from jumar.profiling.comparison.chains import MAX_OPS_BETWEEN, Tensor, input_and_output, tensors
from jumar.profiling.comparison.op_kinds import (
    DTYPES_16_BIT,
    DTYPES_32_BIT,
    has_16_bit,
    is_32_bit,
    split_list,
)
from jumar.profiling.comparison.own_times import Op, Step
from jumar.profiling.comparison.parts import Comparison

ListName = Literal["black-list", "white-list"]


@dataclass(frozen=True, kw_only=True)
class Edit:
    """A proposed entry of a mixlist.

    Args:
        name: The op as named in the list.
        target_list: The list to add it to.
        own_ns: How much longer the op itself takes in 16 bits, over all compared steps; negative
            if it is faster, 0 if it stayed in 32 bits.
        casts_ns: The time of the casts that would be removed.
    """

    name: str
    target_list: ListName
    own_ns: int
    casts_ns: int

    @property
    def gain_ns(self) -> int:
        """The estimated saving over all compared steps."""
        return self.own_ns + self.casts_ns

    def reason(self, steps: int) -> Text:
        """The reason, with times per step."""
        own_ms, casts_ms = (
            f"{abs(length) / steps / 1e6:.3f}" for length in (self.own_ns, self.casts_ns)
        )
        if self.target_list == "white-list":
            return Text(
                en=f"it stays in 32 bits between casts of {casts_ms} ms per step",
                zh=f"它保持 32 位，前后的类型转换每迭代耗时 {casts_ms} ms",
            )
        is_slower = self.own_ns > 0
        return Text(
            en=f"in 16 bits it is {own_ms} ms per step {'slower' if is_slower else 'faster'}, "
            f"and its casts take {casts_ms} ms",
            zh=f"改为 16 位后每迭代{'多' if is_slower else '少'}用 {own_ms} ms，"
            f"类型转换耗时 {casts_ms} ms",
        )


class _CastBetween(NamedTuple):
    """A cast in the second profile, with the ops before and after it as named in the lists."""

    is_downcast: bool
    producer: str
    consumer: str


def propose(
    comparison: Comparison, name_of: Callable[[str], str], *, min_gain: float = 0.002
) -> tuple[Edit, ...]:
    """Edits that would save time, largest gain first.

    An op is added to the black list if computing it in 16 bits costs more, including its casts,
    than it saves compared with the first profile. An op that stayed in 32 bits is added to the
    white list if its inputs are upcast and its result is downcast again. No cast is counted twice.

    Args:
        comparison: The pair of profiles; the edits apply to the second one's list.
        name_of: Returns the name under which an op type can be listed (that of its forward op), or
            an empty string.
        min_gain: The smallest gain, as a share of a step; smaller ones are measurement noise.
    """
    min_gain_ns = max(min_gain * comparison.after_ns, 1)
    casts = _casts(comparison, name_of)
    delta_by_name: defaultdict[str, int] = defaultdict(int)
    for row in comparison.changes.filter(part="dtype").iter_rows(named=True):
        name = name_of(str(row["type"]).rpartition(" → ")[2])
        if name and is_32_bit(str(row["before"])) and has_16_bit(str(row["after"])):
            delta_by_name[name] += int(row["delta_ns"])
    names = sorted({name for cast in casts for name in (cast.producer, cast.consumer) if name})
    edits: list[Edit] = []
    while True:
        candidates = [
            _black_list_edit(name, delta_by_name[name], casts) for name in sorted(delta_by_name)
        ]
        candidates += [_white_list_edit(name, casts) for name in names if name not in delta_by_name]
        edited = {edit.name for edit in edits}
        best = max(
            (edit for edit in candidates if edit.name not in edited),
            key=attrgetter("gain_ns"),
            default=None,
        )
        if best is None or best.gain_ns < min_gain_ns:
            return tuple(edits)
        edits.append(best)
        casts = {
            cast: own_ns for cast, own_ns in casts.items() if not _would_be_removed(cast, best)
        }


def _would_be_removed(cast: _CastBetween, edit: Edit) -> bool:
    """Whether an edit would remove a cast."""
    if edit.target_list == "black-list":
        return edit.name == (cast.consumer if cast.is_downcast else cast.producer)
    return edit.name == (cast.producer if cast.is_downcast else cast.consumer)


def _black_list_edit(name: str, delta_ns: int, casts: Mapping[_CastBetween, int]) -> Edit:
    edit = Edit(name=name, target_list="black-list", own_ns=delta_ns, casts_ns=0)
    cost = sum(own_ns for cast, own_ns in casts.items() if _would_be_removed(cast, edit))
    return replace(edit, casts_ns=cost)


def _white_list_edit(name: str, casts: Mapping[_CastBetween, int]) -> Edit:
    edit = Edit(name=name, target_list="white-list", own_ns=0, casts_ns=0)
    own_casts = [
        (cast.is_downcast, own_ns)
        for cast, own_ns in casts.items()
        if _would_be_removed(cast, edit)
    ]
    upcast_ns = sum(own_ns for is_downcast, own_ns in own_casts if not is_downcast)
    downcast_ns = sum(own_ns for is_downcast, own_ns in own_casts if is_downcast)
    return replace(edit, casts_ns=upcast_ns + downcast_ns if upcast_ns and downcast_ns else 0)


@dataclass(frozen=True, kw_only=True)
class _TensorUse:
    """An op's use of cast tensors; `name` is the op's name in the lists."""

    cast: tuple[Tensor, Tensor] | None
    is_compute: bool
    name: str
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]


def _casts(comparison: Comparison, name_of: Callable[[str], str]) -> dict[_CastBetween, int]:
    """The total time of casts between 32 and 16 bits, by the ops before and after them."""
    profile = comparison.after
    tensor_uses = _tensor_uses(profile.ops, name_of)
    is_relevant = np.array(
        [bool(use.cast or use.inputs or use.outputs) for use in tensor_uses], bool
    )
    is_compute = np.array([use.is_compute for use in tensor_uses], bool)
    sums: defaultdict[_CastBetween, int] = defaultdict(int)
    for step in profile.steps:
        for cast, own_ns in _casts_between(
            step, profile.ops, tensor_uses, (is_relevant, is_compute)
        ):
            sums[cast] += own_ns
    return dict(sums)


def _tensor_uses(ops: Sequence[Op], name_of: Callable[[str], str]) -> list[_TensorUse]:
    conversions: list[tuple[Tensor, Tensor] | None] = []
    for op in ops:
        ends = input_and_output(op) if op.kind == "cast" else None
        dtypes = {tensor.dtype for tensor in ends or ()}
        if ends and dtypes & DTYPES_16_BIT and dtypes & DTYPES_32_BIT:
            # Not all profiles have layouts; shape and dtype suffice between neighbouring ops.
            conversions.append((ends[0]._replace(layout=""), ends[1]._replace(layout="")))
        else:
            conversions.append(None)
    cast_tensors = {tensor for ends in conversions if ends for tensor in ends}

    def cast_among(shapes: str, types: str) -> tuple[Tensor, ...]:
        return tuple(tensor for tensor in tensors(shapes, types, "") if tensor in cast_tensors)

    return [
        _TensorUse(
            cast=ends,
            is_compute=op.kind == "compute",
            name=name_of(op.type) if op.kind == "compute" else "",
            inputs=cast_among(op.input_shapes, op.input_types) if op.kind == "compute" else (),
            outputs=cast_among(op.output_shapes, op.output_types) if op.kind == "compute" else (),
        )
        for op, ends in zip(ops, conversions, strict=True)
    ]


def _casts_between(
    step: Step,
    ops: Sequence[Op],
    tensor_uses: Sequence[_TensorUse],
    masks: tuple[NDArray[np.bool_], NDArray[np.bool_]],
) -> Iterable[tuple[_CastBetween, int]]:
    """The casts between 32 and 16 bits, each with its producer and consumer, and its time.

    If the profile has no outputs, the producer is the last compute op before the cast, provided it
    has an input of the dtype that is cast.
    """
    is_relevant, is_compute = masks
    producers: dict[Tensor, tuple[int, str]] = {}
    open_casts: dict[Tensor, int] = {}
    casts: dict[int, tuple[_CastBetween, int]] = {}
    positions_in_step = np.arange(len(step.op_numbers))
    op_numbers = step.op_numbers.tolist()
    last_compute = np.maximum.accumulate(
        np.where(is_compute[step.op_numbers], positions_in_step, -1)
    )
    positions = np.flatnonzero(is_relevant[step.op_numbers])
    columns = positions, step.op_numbers[positions], step.own_ns[positions], last_compute[positions]
    for position, op_number, own_ns, last_computed in zip(
        *(column.tolist() for column in columns), strict=True
    ):
        use = tensor_uses[op_number]
        if use.cast is not None:
            source, result = use.cast
            found_producer, producer = producers.get(source), ""
            if found_producer is not None and position - found_producer[0] <= MAX_OPS_BETWEEN:
                producer = found_producer[1]
            elif last_computed >= 0:
                last_op = ops[op_numbers[last_computed]]
                if not last_op.output_types and source.dtype in split_list(last_op.input_types):
                    producer = tensor_uses[op_numbers[last_computed]].name
            open_casts[result] = position
            casts[position] = (_CastBetween(result.dtype in DTYPES_16_BIT, producer, ""), own_ns)
        for tensor in use.inputs:
            cast_position = open_casts.pop(tensor, None)
            if cast_position is not None and position - cast_position <= MAX_OPS_BETWEEN:
                cast, cast_ns = casts[cast_position]
                casts[cast_position] = (cast._replace(consumer=use.name), cast_ns)
        for tensor in use.outputs:
            producers[tensor] = (position, use.name)
    return casts.values()


def as_mixlist(edits: Sequence[Edit]) -> str:
    """The edits as the content of a file for `precision.modify_mixlist`, in CANN's format."""
    lists: dict[ListName, dict[str, list[str]]] = {}
    for edit in edits:
        lists.setdefault(edit.target_list, {"to-add": []})["to-add"].append(edit.name)
    return json.dumps(lists, indent=2, ensure_ascii=False) + "\n"
