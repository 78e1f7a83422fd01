"""Casts and format changes that undo each other."""

from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

import polars as pl

from jumar.profiling.comparison.op_kinds import conversion, words
from jumar.profiling.comparison.own_times import Row, Side

CHAINS = {
    "what": pl.String(),
    "shape": pl.String(),
    "of": pl.String(),
    "by_way_of": pl.String(),
    "module": pl.String(),
    "count": pl.Int64(),
    "saved_ns": pl.Int64(),
}
"""Chains of ops at whose end a tensor is what it was at the beginning, and what it would save to
do without: all of them, or only the last where something computes with what lies between."""

REACH = 400
"""So many ops later a tensor of the same shape and dtype is taken for another one."""


class Tensor(NamedTuple):
    """By what a tensor is known again from one op to the next."""

    shape: str
    dtype: str
    layout: str


def ends_of(row: Row) -> tuple[Tensor, Tensor] | None:
    """What a cast or format change takes and gives; None where the profile does not say."""
    source, target = conversion(row.type, row.input_types, row.output_types)
    if not source or not target:
        return None
    shapes, given = row.input_shapes.split(";"), row.output_shapes.split(";")
    layouts, given_layouts = words(row.input_formats), words(row.output_formats)
    taken = Tensor(shapes[0], source, layouts[0] if layouts else "")
    # Traces of torch name no outputs; its casts keep the shape.
    result = Tensor(
        given[0] if row.output_shapes else shapes[0],
        target,
        given_layouts[0] if given_layouts else "",
    )
    return taken, result


class _Link(NamedTuple):
    place: int
    first: Tensor
    rows: tuple[Row, ...]
    used: bool


def cancelling_chains(side: Side) -> pl.DataFrame:
    """Chains of casts and format changes that end where they began (`CHAINS`), by their time.

    A change is linked to the latest one before it in the step that gives what it takes, by shape,
    dtype and layout, if no more than `REACH` ops lie between and no other op gives such a tensor:
    a weight that is brought into the layout of a convolution and its gradient, which is brought
    back, have the same shape and are not the same.
    """
    sums: defaultdict[tuple[str, ...], list[int]] = defaultdict(lambda: [0, 0])
    for step in side.steps:
        for first, rows, used in _chains(step.rows):
            what = " + ".join(row.type for row in rows)
            middle = ends_of(rows[0])
            way = _said(middle[1]) if middle else ""
            key = (what, first.shape, _said(first), way, rows[0].module)
            sums[key][0] += 1
            sums[key][1] += rows[-1].own_ns if used else sum(row.own_ns for row in rows)
    table = pl.DataFrame(
        [(*key, *values) for key, values in sums.items()], schema=CHAINS, orient="row"
    )
    return table.sort("saved_ns", "what", "shape", descending=[True, False, False])


def _said(tensor: Tensor) -> str:
    return " ".join(part for part in (tensor.dtype, tensor.layout) if part)


def _chains(rows: Sequence[Row]) -> list[tuple[Tensor, tuple[Row, ...], bool]]:
    """Each chain that ends where it began, its tensor, and whether the way was made use of."""
    waiting: dict[Tensor, _Link] = {}
    found: list[tuple[Tensor, tuple[Row, ...], bool]] = []
    for place, row in enumerate(rows):
        ends = ends_of(row) if row.kind in ("cast", "format") else None
        if ends is None:
            _passed(row, waiting)
            continue
        taken, given = ends
        if taken == given:
            continue
        link = waiting.pop(taken, None)
        if link is None or place - link.place > REACH:
            link = _Link(place, taken, (), used=False)
        chain = (*link.rows, row)
        if given == link.first and len(chain) > 1:
            found.append((given, chain, link.used))
        else:
            waiting[given] = _Link(place, link.first, chain, link.used)
    return found


def _passed(row: Row, waiting: dict[Tensor, _Link]) -> None:
    """An op that computes between the changes: it uses their tensors, or gives others like them."""
    for tensor in tensors(row.input_shapes, row.input_types, row.input_formats):
        link = waiting.get(tensor)
        if link is None:
            continue
        if row.output_types:
            waiting[tensor] = link._replace(used=True)
        else:
            # Where outputs are not told, what comes next may be the result of this op.
            del waiting[tensor]
    for tensor in tensors(row.output_shapes, row.output_types, row.output_formats):
        waiting.pop(tensor, None)


def tensors(shapes: str, types: str, layouts: str) -> list[Tensor]:
    """The tensors of an op; a layout that is not told is empty."""
    named = words(layouts)
    return [
        Tensor(shape, dtype, named[place] if place < len(named) else "")
        for place, (shape, dtype) in enumerate(zip(shapes.split(";"), words(types), strict=False))
    ]
