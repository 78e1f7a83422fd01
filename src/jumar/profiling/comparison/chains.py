"""Casts and format changes that cancel out."""

from collections import defaultdict
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import polars as pl

from jumar.profiling.columns import largest_first
from jumar.profiling.comparison.op_kinds import conversion, split_list
from jumar.profiling.comparison.own_times import Op, PreparedProfile, Step

CHAINS = {
    "what": pl.String(),
    "shape": pl.String(),
    "of": pl.String(),
    "by_way_of": pl.String(),
    "module": pl.String(),
    "count": pl.Int64(),
    "saved_ns": pl.Int64(),
}
"""Chains of ops that end with the original tensor, and the time saved without them: that of all
ops, or only of the last one if an intermediate result is used."""

MAX_OPS_BETWEEN = 400
"""After more ops than this, a tensor of the same shape and dtype counts as a different one."""


class Tensor(NamedTuple):
    """The identity of a tensor from one op to the next."""

    shape: str
    dtype: str
    layout: str

    def __str__(self) -> str:
        return " ".join(part for part in (self.dtype, self.layout) if part)


def input_and_output(op: Op) -> tuple[Tensor, Tensor] | None:
    """Input and output of a cast or format change; None if the profile lacks them."""
    input_dtype, output_dtype = conversion(op.type, op.input_types, op.output_types)
    if not input_dtype or not output_dtype:
        return None
    input_shapes, output_shapes = op.input_shapes.split(";"), op.output_shapes.split(";")
    input_layouts, output_layouts = split_list(op.input_formats), split_list(op.output_formats)
    input_tensor = Tensor(input_shapes[0], input_dtype, input_layouts[0] if input_layouts else "")
    # Traces of torch list no outputs; its casts keep the shape.
    output_tensor = Tensor(
        output_shapes[0] if op.output_shapes else input_shapes[0],
        output_dtype,
        output_layouts[0] if output_layouts else "",
    )
    return input_tensor, output_tensor


class _ChainLink(NamedTuple):
    """The last op of a chain so far; `chain_ns` is the time of the whole chain."""

    position: int
    first: Tensor
    op_number: int
    previous: "_ChainLink | None"
    chain_ns: int
    is_used: bool

    @property
    def chain(self) -> tuple[int, ...]:
        """The numbers of the ops in the chain so far."""
        op_numbers: list[int] = []
        link: _ChainLink | None = self
        while link is not None:
            op_numbers.append(link.op_number)
            link = link.previous
        return tuple(reversed(op_numbers))


class _TensorUse(NamedTuple):
    """An op's use of tensors that are cast or change their format.

    A cast or format change has a `conversion`; other ops have `inputs` and `outputs`.
    """

    conversion: tuple[Tensor, Tensor] | None
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    has_outputs: bool


def cancelling_chains(profile: PreparedProfile) -> pl.DataFrame:
    """Chains of conversions that end with the original tensor (`CHAINS`), largest saving first.

    A conversion is linked to the last one in the step whose output has the shape, dtype and layout
    of its input, if at most `MAX_OPS_BETWEEN` ops are between them and no other op outputs such a
    tensor. A weight converted for a convolution and its gradient, which is converted back, have the
    same shape but are different tensors.
    """
    tensor_uses = _tensor_uses(profile)
    is_relevant = np.array([use is not None for use in tensor_uses], bool)
    sums: defaultdict[tuple[Tensor, tuple[int, ...]], list[int]] = defaultdict(lambda: [0, 0])
    for step in profile.steps:
        for tensor, chain, saved_ns in _chains(step, tensor_uses, is_relevant):
            sums[tensor, chain][0] += 1
            sums[tensor, chain][1] += saved_ns
    rows = [(*_texts(profile, *key), *values) for key, values in sums.items()]
    names = [name for name in CHAINS if name not in ("count", "saved_ns")]
    return (
        pl.DataFrame(rows, schema=CHAINS, orient="row")
        .group_by(names)
        .agg(pl.col("count", "saved_ns").sum())
        .pipe(largest_first, "saved_ns", *names)
    )


def _texts(profile: PreparedProfile, first: Tensor, chain: tuple[int, ...]) -> tuple[str, ...]:
    ops = [profile.ops[op_number] for op_number in chain]
    middle = input_and_output(ops[0])
    by_way_of = str(middle[1]) if middle else ""
    return " + ".join(op.type for op in ops), first.shape, str(first), by_way_of, ops[0].module


def _tensor_uses(profile: PreparedProfile) -> list[_TensorUse | None]:
    """Each distinct op's use of converted tensors; None if it uses none, like most ops."""
    conversions = [
        input_and_output(op) if op.kind in ("cast", "format") else None for op in profile.ops
    ]
    converted = {tensor for ends in conversions if ends and ends[0] != ends[1] for tensor in ends}
    tensor_uses: list[_TensorUse | None] = []
    for op, ends in zip(profile.ops, conversions, strict=True):
        if ends is not None:
            tensor_uses.append(
                _TensorUse(ends, (), (), has_outputs=True) if ends[0] != ends[1] else None
            )
            continue
        inputs = tensors(op.input_shapes, op.input_types, op.input_formats)
        outputs = tensors(op.output_shapes, op.output_types, op.output_formats)
        use = _TensorUse(
            None,
            tuple(tensor for tensor in inputs if tensor in converted),
            tuple(tensor for tensor in outputs if tensor in converted),
            has_outputs=bool(op.output_types),
        )
        tensor_uses.append(use if use.inputs or use.outputs else None)
    return tensor_uses


def _chains(
    step: Step, tensor_uses: list[_TensorUse | None], is_relevant: np.ndarray
) -> Iterator[tuple[Tensor, tuple[int, ...], int]]:
    """Each chain that ends with the original tensor: that tensor, the ops, and the possible saving.

    If an intermediate result is used, only the last op can be saved.
    """
    open_links: dict[Tensor, _ChainLink] = {}
    positions = np.flatnonzero(is_relevant[step.op_numbers])
    columns = (
        positions.tolist(),
        step.op_numbers[positions].tolist(),
        step.own_ns[positions].tolist(),
    )
    for position, op_number, own_ns in zip(*columns, strict=True):
        use = tensor_uses[op_number]
        if use is None:
            continue
        if use.conversion is None:
            _apply_use(use, open_links)
            continue
        input_, output = use.conversion
        link = open_links.pop(input_, None)
        if link is not None and position - link.position > MAX_OPS_BETWEEN:
            link = None
        if link is None:
            open_links[output] = _ChainLink(
                position, input_, op_number, None, own_ns, is_used=False
            )
            continue
        chain_ns = link.chain_ns + own_ns
        extended = _ChainLink(position, link.first, op_number, link, chain_ns, link.is_used)
        if output == link.first:
            yield output, extended.chain, own_ns if link.is_used else chain_ns
        else:
            open_links[output] = extended


def _apply_use(use: _TensorUse, open_links: dict[Tensor, _ChainLink]) -> None:
    """Update the open chains for an op that consumes or produces converted tensors."""
    for tensor in use.inputs:
        link = open_links.get(tensor)
        if link is None:
            continue
        if use.has_outputs:
            open_links[tensor] = link._replace(is_used=True)
        else:
            # Without known outputs, the next such tensor may be the output of this op.
            del open_links[tensor]
    for tensor in use.outputs:
        open_links.pop(tensor, None)


def tensors(shapes: str, types: str, layouts: str) -> list[Tensor]:
    """The tensors of an op's inputs or outputs; unknown layouts are empty."""
    layout_names = split_list(layouts)
    return [
        Tensor(shape, dtype, layout_names[index] if index < len(layout_names) else "")
        for index, (shape, dtype) in enumerate(
            zip(shapes.split(";"), split_list(types), strict=False)
        )
    ]


def chains_per_step(profile: PreparedProfile) -> pl.DataFrame:
    """`cancelling_chains` with counts and times per step."""
    steps = len(profile.steps)
    return cancelling_chains(profile).with_columns(
        pl.col("count") / steps, (pl.col("saved_ns") / steps / 1e6).round(3).alias("saved_ms")
    )
