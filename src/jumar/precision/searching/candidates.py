"""Op types used in a step, as named in op lists."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from jumar.precision.mixlist import SHARED_BY_KIND
from jumar.precision.oplist import NO_LOW_KERNEL
from jumar.precision.optypes import OpGroup, groups_by_type, op_groups
from jumar.precision.recording.cann import cann_type


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """Ops that a list treats alike.

    Attributes:
        name: The CANN op type shown; `aten::NAME` where CANN has none.
        types: Every name that an op list needs for it.
        ops: The aten overloads that the step calls.
    """

    name: str
    types: tuple[str, ...]
    ops: tuple[str, ...]


def candidates(called: Iterable[str]) -> tuple[Candidate, ...]:
    """The candidates among the ops of a step: those that a mode may compute in lower precision.

    Args:
        called: aten overloads as in op lists.
    """
    lowerable = [op for op in called if _is_lowerable(op)]
    ops: dict[str, list[str]] = {}
    for op in lowerable:
        ops.setdefault(cann_type(op) or f"aten::{op}", []).append(op)
    return tuple(
        Candidate(name=name, types=_types(name, called_ops, set(lowerable)), ops=tuple(called_ops))
        for name, called_ops in ops.items()
    )


def mixlist_of(every: Sequence[Candidate], kept: Collection[str]) -> dict[str, Any]:
    """The content of a `modify_mixlist` file.

    Args:
        every: All candidates.
        kept: Names of those that stay in float32; all others use lower precision.
    """
    black = [name for candidate in every if candidate.name in kept for name in candidate.types]
    white = [name for candidate in every if candidate.name not in kept for name in candidate.types]
    lists: Mapping[str, Sequence[str]] = {"black-list": black, "white-list": white}
    return {name: {"to-add": types} for name, types in lists.items() if types}


def _is_lowerable(op: str) -> bool:
    if op in NO_LOW_KERNEL or op in SHARED_BY_KIND:
        return False
    groups = [group for group in op_groups() if op in group.ops]
    return not groups or any(group.kind in ("cube", "compute") for group in groups)


def _types(name: str, ops: Sequence[str], called: set[str]) -> tuple[str, ...]:
    """All types of its group, and of those that torch computes with the same ops."""
    first = groups_by_type().get(name)
    if first is None:
        return (name,)
    return tuple(
        op_type
        for group in op_groups()
        if group is first or _is_same(group, ops, called)
        for op_type in group.types
    )


def _is_same(group: OpGroup, ops: Sequence[str], called: set[str]) -> bool:
    """Whether a list that names the group changes no op but these."""
    return bool(group.ops) and group.ops[0] in ops and called.intersection(group.ops) <= set(ops)
