"""Find the op types used in a step, as named in op lists."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from jumar.precision.mixlist import SHARED_BY_KIND
from jumar.precision.oplist import NO_LOW_KERNEL
from jumar.precision.optypes import OpGroup, groups_by_type, op_groups
from jumar.precision.recording.cann import cann_type


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """Ops that an op list treats alike.

    Attributes:
        name: The displayed CANN op type; `aten::NAME` if CANN has none.
        types: All names that an op list must contain for it.
        ops: The aten overloads that the step calls.
    """

    name: str
    types: tuple[str, ...]
    ops: tuple[str, ...]


def candidates(called: Iterable[str]) -> tuple[Candidate, ...]:
    """Return the candidates among a step's ops, which a mode may compute in lower precision.

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


def mixlist_of(all_candidates: Sequence[Candidate], kept: Collection[str]) -> dict[str, Any]:
    """Return the content of a `modify_mixlist` file.

    Args:
        all_candidates: All candidates of the step.
        kept: Names of candidates that stay in float32; all others use lower precision.
    """
    lists: dict[str, list[str]] = {"black-list": [], "white-list": []}
    for candidate in all_candidates:
        lists["black-list" if candidate.name in kept else "white-list"] += candidate.types
    return {name: {"to-add": types} for name, types in lists.items() if types}


def _is_lowerable(op: str) -> bool:
    if op in NO_LOW_KERNEL or op in SHARED_BY_KIND:
        return False
    groups = [group for group in op_groups() if op in group.ops]
    return not groups or any(group.kind in ("cube", "compute") for group in groups)


def _types(name: str, ops: Sequence[str], called: set[str]) -> tuple[str, ...]:
    """Return the types of a type's group, and of groups that torch computes with the same ops."""
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
    """Whether adding the group to a list changes only these ops."""
    return bool(group.ops) and group.ops[0] in ops and called.intersection(group.ops) <= set(ops)
