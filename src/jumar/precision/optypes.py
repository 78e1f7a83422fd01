"""CANN op types and the corresponding torch operators.

The table is `op_types.json`: one row per group, with the equivalent forward op types, the op types
that run inside autograd, and the aten overloads. Op types are those of the open CANN op libraries,
of the PyTorch adapter and of published mixlists. This module does not import torch, because
comparisons of profiles need it.
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
    "cast": "in torch, casts are not on the lists (in CANN, it keeps low precision from passing "
    "through casts into gray ops)",
    "view": "in torch it is a view or moves data without computing, and keeps its dtype",
    "create": "it creates a tensor of the requested dtype",
    "integer": "it computes integers or truth values",
    "optimizer": "the update runs outside the forward region, always in fp32",
    "variable": "parameters are always fp32",
    "status": "the overflow check is part of the loss scale",
    "collective": "gradients are exchanged in the dtype of the parameters",
    "plumbing": "it is a node of the graph engine that computes nothing",
    "missing": "there is no equivalent torch op",
}
"""Reasons why an entry with an op type of this kind has no effect."""


@dataclass(frozen=True, kw_only=True)
class OpGroup:
    """CANN op types that are equivalent to the same torch operators."""

    kind: Kind
    types: tuple[str, ...]
    """Forward op types; the first one is shown if there is room for only one."""
    backward: tuple[str, ...] = ()
    """Op types that run inside autograd, in the dtypes of the forward pass."""
    ops: tuple[str, ...] = ()
    """aten overloads, for instance `softmax.int`; without `.name` the default overload."""
    shares: tuple[str, ...] = ()
    """Other op types that use some of `ops`, so that torch cannot distinguish them."""
    note: str = ""


@cache
def op_groups() -> tuple[OpGroup, ...]:
    """Return all groups of the table."""
    text = resources.files("jumar.precision").joinpath("op_types.json").read_text("utf-8")
    rows: list[dict[str, Any]] = json.loads(text)
    return tuple(
        OpGroup(
            kind=row["kind"],
            note=row.get("note", ""),
            **{name: tuple(row.get(name, ())) for name in ("types", "backward", "ops", "shares")},
        )
        for row in rows
    )


@cache
def groups_by_type() -> dict[str, OpGroup]:
    """Return the group of every CANN op type, forward and backward."""
    return {name: group for group in op_groups() for name in (*group.types, *group.backward)}


def types_of(op: str) -> tuple[str, ...]:
    """Return the forward CANN op types that are equivalent to an aten overload."""
    return _types_by_op().get(op, ())


@cache
def _types_by_op() -> dict[str, tuple[str, ...]]:
    result: dict[str, tuple[str, ...]] = {}
    for group in op_groups():
        for op in group.ops:
            result[op] = (*result.get(op, ()), *group.types)
    return result
