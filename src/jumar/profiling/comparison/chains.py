"""Casts and format changes that undo each other."""

from collections import defaultdict
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import polars as pl

from jumar.profiling.comparison.op_kinds import conversion, words
from jumar.profiling.comparison.own_times import Op, Side, Step

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
do without: all of them, or only the last where something computes with what is between."""

REACH = 400
"""So many ops later a tensor of the same shape and dtype is taken for another one."""


class Tensor(NamedTuple):
    """The identity of a tensor from one op to the next."""

    shape: str
    dtype: str
    layout: str

    def __str__(self) -> str:
        return " ".join(part for part in (self.dtype, self.layout) if part)


def ends_of(op: Op) -> tuple[Tensor, Tensor] | None:
    """Input and output of a cast or format change; None if the profile lacks them."""
    source, target = conversion(op.type, op.input_types, op.output_types)
    if not source or not target:
        return None
    shapes, outputs = op.input_shapes.split(";"), op.output_shapes.split(";")
    layouts, given_layouts = words(op.input_formats), words(op.output_formats)
    taken = Tensor(shapes[0], source, layouts[0] if layouts else "")
    # Traces of torch list no outputs; its casts keep the shape.
    result = Tensor(
        outputs[0] if op.output_shapes else shapes[0],
        target,
        given_layouts[0] if given_layouts else "",
    )
    return taken, result


class _Link(NamedTuple):
    """A change that another one may undo; `whole_ns` is that of the chain so far."""

    place: int
    first: Tensor
    which: int
    before: "_Link | None"
    whole_ns: int
    used: bool

    @property
    def chain(self) -> tuple[int, ...]:
        """The ops so far."""
        places: list[int] = []
        link: _Link | None = self
        while link is not None:
            places.append(link.which)
            link = link.before
        return tuple(reversed(places))


class _Meaning(NamedTuple):
    """How an op relates to the tensors of casts and format changes.

    `ends` is that of a change; of other ops, `takes` and `gives` name the tensors.
    """

    ends: tuple[Tensor, Tensor] | None
    takes: tuple[Tensor, ...]
    gives: tuple[Tensor, ...]
    tells_outputs: bool


def cancelling_chains(side: Side) -> pl.DataFrame:
    """Chains of casts and format changes that end where they started (`CHAINS`), longest first.

    A change is linked to the latest one before it in the step that gives what it takes, by shape,
    dtype and layout, if no more than `REACH` ops are between and no other op gives such a tensor:
    a weight that is brought into the layout of a convolution and its gradient, which is brought
    back, have the same shape and are not the same.
    """
    meanings = _meanings(side)
    matters = np.array([meaning is not None for meaning in meanings], bool)
    sums: defaultdict[tuple[Tensor, tuple[int, ...]], list[int]] = defaultdict(lambda: [0, 0])
    for step in side.steps:
        for tensor, chain, saved_ns in _chains(step, meanings, matters):
            sums[tensor, chain][0] += 1
            sums[tensor, chain][1] += saved_ns
    rows = [(*_texts(side, *key), *values) for key, values in sums.items()]
    names = [name for name in CHAINS if name not in ("count", "saved_ns")]
    return (
        pl.DataFrame(rows, schema=CHAINS, orient="row")
        .group_by(names)
        .agg(pl.col("count", "saved_ns").sum())
        .sort("saved_ns", *names, descending=[True, *[False] * len(names)])
    )


def _texts(side: Side, first: Tensor, chain: tuple[int, ...]) -> tuple[str, ...]:
    ops = [side.ops[which] for which in chain]
    middle = ends_of(ops[0])
    way = str(middle[1]) if middle else ""
    return " + ".join(op.type for op in ops), first.shape, str(first), way, ops[0].module


def _meanings(side: Side) -> list[_Meaning | None]:
    """For each distinct op, its relation to such tensors; None if it touches none.

    Most ops touch none, and are not looked at again.
    """
    changes = [ends_of(op) if op.kind in ("cast", "format") else None for op in side.ops]
    known = {tensor for ends in changes if ends and ends[0] != ends[1] for tensor in ends}
    meanings: list[_Meaning | None] = []
    for op, ends in zip(side.ops, changes, strict=True):
        if ends is not None:
            meanings.append(
                _Meaning(ends, (), (), tells_outputs=True) if ends[0] != ends[1] else None
            )
            continue
        takes = tensors(op.input_shapes, op.input_types, op.input_formats)
        gives = tensors(op.output_shapes, op.output_types, op.output_formats)
        meaning = _Meaning(
            None,
            tuple(tensor for tensor in takes if tensor in known),
            tuple(tensor for tensor in gives if tensor in known),
            tells_outputs=bool(op.output_types),
        )
        meanings.append(meaning if meaning.takes or meaning.gives else None)
    return meanings


def _chains(
    step: Step, meanings: list[_Meaning | None], matters: np.ndarray
) -> Iterator[tuple[Tensor, tuple[int, ...], int]]:
    """Each chain that ends where it started: the tensor, its ops, and the possible saving.

    Where something computes with what is between, only the way back would be saved.
    """
    waiting: dict[Tensor, _Link] = {}
    places = np.flatnonzero(matters[step.which])
    columns = places.tolist(), step.which[places].tolist(), step.own_ns[places].tolist()
    for place, which, own_ns in zip(*columns, strict=True):
        meaning = meanings[which]
        if meaning is None:
            continue
        if meaning.ends is None:
            _passed(meaning, waiting)
            continue
        input_, output = meaning.ends
        link = waiting.pop(input_, None)
        if link is not None and place - link.place > REACH:
            link = None
        if link is None:
            waiting[output] = _Link(place, input_, which, None, own_ns, used=False)
            continue
        whole_ns = link.whole_ns + own_ns
        longer = _Link(place, link.first, which, link, whole_ns, link.used)
        if output == link.first:
            yield output, longer.chain, own_ns if link.used else whole_ns
        else:
            waiting[output] = longer


def _passed(meaning: _Meaning, waiting: dict[Tensor, _Link]) -> None:
    """Handle an op that computes between the changes: it consumes or produces such tensors."""
    for tensor in meaning.takes:
        link = waiting.get(tensor)
        if link is None:
            continue
        if meaning.tells_outputs:
            waiting[tensor] = link._replace(used=True)
        else:
            # Where outputs are unknown, what comes next may be the result of this op.
            del waiting[tensor]
    for tensor in meaning.gives:
        waiting.pop(tensor, None)


def tensors(shapes: str, types: str, layouts: str) -> list[Tensor]:
    """The tensors of an op; an unknown layout is empty."""
    named = words(layouts)
    return [
        Tensor(shape, dtype, named[place] if place < len(named) else "")
        for place, (shape, dtype) in enumerate(zip(shapes.split(";"), words(types), strict=False))
    ]


def chains_a_step(side: Side) -> pl.DataFrame:
    """`cancelling_chains` with counts and times of one step."""
    steps = len(side.steps)
    return cancelling_chains(side).with_columns(
        pl.col("count") / steps, (pl.col("saved_ns") / steps / 1e6).round(3).alias("saved_ms")
    )
