"""CANN op types and the corresponding torch operators.

The table is `op_types.json`: one row per policy group, with the forward op types that share it,
the op types that run inside autograd, and the aten overloads. Op types are those of the open
CANN op libraries, of the PyTorch adapter and of published mixlists. It needs no torch, since
profiles are compared by it.
"""

import json
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any, Literal

Kind = Literal[
    "cube",
    "compute",
    "movement",
    "cast",
    "view",
    "create",
    "integer",
    "optimizer",
    "variable",
    "status",
    "collective",
    "plumbing",
    "missing",
]

WITHOUT_EFFECT: dict[Kind, str] = {
    "cast": "in CANN it stops low precision from passing through casts into gray ops; in torch a "
    "cast is not an op of the list",
    "view": "in torch it is a view or moves data without computing, and keeps its dtype",
    "create": "it makes a tensor of the requested dtype",
    "integer": "it works on whole numbers or gives a truth value",
    "optimizer": "the update runs outside the forward region, always in fp32",
    "variable": "parameters are always fp32",
    "status": "the overflow check is part of the loss scale",
    "collective": "gradients are exchanged in the dtype of the parameters",
    "plumbing": "it is a node of the graph engine that computes nothing",
    "missing": "no torch op stands for it",
}
"""Why an entry with an op type of this kind changes nothing."""


@dataclass(frozen=True, kw_only=True)
class OpGroup:
    """CANN op types that stand for the same torch operators."""

    kind: Kind
    types: tuple[str, ...]
    """Forward op types; the first one is shown if there is room for only one."""
    backward: tuple[str, ...] = ()
    """Op types that run inside autograd and follow the dtypes of the forward."""
    ops: tuple[str, ...] = ()
    """aten overloads, for instance `softmax.int`; without `.name` the default overload."""
    shares: tuple[str, ...] = ()
    """Op types with torch ops of their own among `ops`, which torch cannot tell from these."""
    note: str = ""


@cache
def op_groups() -> tuple[OpGroup, ...]:
    """Every group of the table."""
    text = resources.files("jumar.precision").joinpath("op_types.json").read_text("utf-8")
    rows: list[dict[str, Any]] = json.loads(text)
    return tuple(
        OpGroup(
            kind=row["kind"],
            types=tuple(row["types"]),
            backward=tuple(row.get("backward", ())),
            ops=tuple(row.get("ops", ())),
            shares=tuple(row.get("shares", ())),
            note=row.get("note", ""),
        )
        for row in rows
    )


@cache
def groups_by_type() -> dict[str, OpGroup]:
    """The group of every CANN op type, forward and backward."""
    return {name: group for group in op_groups() for name in (*group.types, *group.backward)}


def types_of(op: str) -> tuple[str, ...]:
    """The forward CANN op types that stand for an aten overload."""
    return _types_by_op().get(op, ())


@cache
def _types_by_op() -> dict[str, tuple[str, ...]]:
    result: dict[str, tuple[str, ...]] = {}
    for group in op_groups():
        for op in group.ops:
            result[op] = (*result.get(op, ()), *group.types)
    return result
