"""A finding about sequences of small ops on an NPU for which torch_npu has a fused op."""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple

import polars as pl

from jumar.ground.text import Text, counted
from jumar.profiling.advice.finding import FINDINGS, Case, Claim, Finding, ms, untranslated
from jumar.profiling.showing import shown
from jumar.profiling.views.intervals import spans
from jumar.profiling.views.shapes import Shape, shapes_of, volume

_LETTERS: Final = {
    "p": ("pows", "pow", "square"),
    "m": ("mul", "muls"),
    "r": ("reducemean", "reducemeand"),
    "a": ("add", "adds", "addv2"),
    "q": ("rsqrt",),
    "c": ("cast",),
    "w": ("swish", "silu"),
    "n": ("neg",),
    "k": ("concatd", "concatv2", "concatv2d"),
    "s": ("slice", "sliced", "stridedslice", "stridedsliced", "asstrided"),
    "x": ("softmaxv2",),
    "f": ("maskedfill", "selectv2"),
    "d": ("realdiv", "div"),
    "t": ("tanh",),
    "g": ("erf",),
    "o": ("dropoutdomask", "dropoutdomaskv3", "dropoutdomaskv3d"),
    "B": ("batchmatmul", "batchmatmulv2", "batchmatmulv3"),
    "M": ("matmul", "matmulv2", "matmulv3"),
}
"""Letters for the op types of sequences; any other op is a dot."""

_LETTER_OF: Final = {kind: letter for letter, kinds in _LETTERS.items() for kind in kinds}
_MAX_LINES: Final = 3
_COLUMNS: Final = (
    *("rank", "stream", "type", "start_ns", "duration_ns"),
    *("input_shapes", "output_shapes"),
)


class _Op(NamedTuple):
    """An op of a matching sequence."""

    letter: str
    inputs: list[Shape]
    outputs: list[Shape]

    @property
    def largest(self) -> Shape:
        """The largest input."""
        return max(self.inputs, key=volume, default=())


class _Fused(NamedTuple):
    """A fused op of torch_npu, and the sequence of small ops that it replaces."""

    name: str
    api: str
    letters: re.Pattern[str]
    """The pattern of the sequence, with one letter per op."""
    confirms: Callable[[Sequence[_Op]], bool]
    """Whether the shapes confirm the match."""
    kept: str = ""
    """Letters of ops in the sequence that are not replaced."""


def _is_gelu(ops: Sequence[_Op]) -> bool:
    """Whether the largest inputs of all ops have the same shape."""
    return bool(ops[0].largest) and all(op.largest == ops[0].largest for op in ops)


def _is_rms_norm(ops: Sequence[_Op]) -> bool:
    """The mean is over the last axis, and the input is multiplied by its inverse square root."""
    positions = {op.letter: number for number, op in enumerate(ops)}
    first, mean, root = ops[0], ops[positions["r"]], ops[positions["q"]]
    full_shape = first.largest
    reduced_shapes = (full_shape[:-1], (*full_shape[:-1], 1))
    if (
        len(full_shape) < 2
        or full_shape[-1] < 2
        or mean.largest != full_shape
        or root.largest not in reduced_shapes
    ):
        return False
    if first.letter == "m" and first.inputs != [full_shape, full_shape]:
        return False
    scaled, *weighted = ops[positions["q"] + 1 :]
    return (
        scaled.inputs in ([full_shape, root.largest], [root.largest, full_shape])
        and all(op.largest == full_shape for op in weighted)
        and (not weighted or full_shape[-1:] in weighted[-1].inputs)
    )


def _is_swiglu(ops: Sequence[_Op]) -> bool:
    """Both halves have the same shape; a product or slice in between yields the second."""
    half_shape = ops[0].largest
    if len(half_shape) < 2 or ops[-1].inputs != [half_shape, half_shape]:
        return False
    outputs = [shape for op in ops[1:-1] for shape in op.outputs]
    return (
        all(_may_be_view(shape, half_shape) for shape in outputs) and len(outputs) == len(ops) - 2
    )


def _is_rotary(ops: Sequence[_Op]) -> bool:
    """One half is negated and swapped with the other; the result is multiplied and added."""
    letters = "".join(op.letter for op in ops)
    joined, negated = ops[letters.index("k")], ops[letters.index("n")].largest
    full_shape = ops[-1].largest
    halves = [shape for shape in joined.inputs if len(shape) > 1]
    return (
        len(full_shape) > 2
        and len(negated) == len(full_shape)
        and full_shape[-1] == 2 * negated[-1]
        and negated[:-1] == full_shape[:-1]
        and halves == [negated, negated]
        and ops[0].largest == full_shape
        and ops[-2].largest == full_shape
        and ops[-1].inputs == [full_shape, full_shape]
    )


def _is_attention(ops: Sequence[_Op]) -> bool:
    """The last product uses the scores of the first, with only scaling and softmax in between."""
    scores = next(op.largest for op in ops if op.letter == "x")
    first, last = ops[0], ops[-1]
    return (
        len(scores) > 2
        and len(first.outputs) == 1
        and _may_be_view(first.outputs[0], scores)
        and all(_may_be_view(op.largest, scores) for op in ops[1:-1])
        and any(_may_be_view(shape, scores) for shape in last.inputs[:1])
    )


def _may_be_view(first: Shape, second: Shape) -> bool:
    """Whether a tensor may be a view of another: equal element count and row length."""
    return bool(first and second) and volume(first) == volume(second) and first[-1] == second[-1]


_FUSED: Final = (
    _Fused(
        "attention",
        "torch_npu.npu_fusion_attention",
        re.compile(r"B[mdacf]{0,4}x[co]{0,2}B"),
        _is_attention,
        kept="B",
    ),
    _Fused("RMSNorm", "torch_npu.npu_rms_norm", re.compile(r"[pm]raqm(?:c?m)?"), _is_rms_norm),
    _Fused(
        "rotary embedding",
        "torch_npu.npu_rotary_mul",
        re.compile(r"ms{0,2}ns{0,3}kma"),
        _is_rotary,
    ),
    _Fused("SwiGLU", "torch_npu.npu_swiglu", re.compile(r"wM?s?m"), _is_swiglu, kept="M"),
    _Fused(
        "GELU",
        'torch.nn.functional.gelu (approximate="tanh" where tanh is used)',
        re.compile(r"pmamtamm?|[md]gam"),
        _is_gelu,
    ),
)


_ANCHORS: Final = {kind for letter in "rqwnxtg" for kind in _LETTERS[letter]}
"""Every sequence contains one of these types."""


def fusible_sequences(case: Case) -> Iterator[Claim]:
    """Claim consecutive ops of a stream that a fused op of torch_npu can replace."""
    types = case.kinds["type"].unique().str.to_lowercase()
    if case.profile.kind != "npu" or not _ANCHORS & set(types):
        return
    ops = case.in_scope(case.profile.ops.select(_COLUMNS)).sort(
        "rank", "stream", "start_ns", maintain_order=True
    )
    letters = (
        ops["type"]
        .str.to_lowercase()
        .replace_strict(_LETTER_OF, default=".", return_dtype=pl.String)
    )
    line = "".join(letters.fill_null(".").to_list())
    claimed_rows: set[int] = set()
    for fused in _FUSED:
        matches = [rows for rows in _matches(fused, ops, line) if claimed_rows.isdisjoint(rows)]
        if matches:
            claimed_rows.update(row for rows in matches for row in rows)
            replaced = [[row for row in rows if line[row] not in fused.kept] for rows in matches]
            yield _claim(case, fused, ops, replaced)


def _streams(ops: pl.DataFrame) -> Iterator[tuple[int, int]]:
    """The range of rows of each stream."""
    runs = ops.select(pl.struct("rank", "stream").rle_id().alias("run"))["run"]
    changes = runs.arg_unique().sort().to_list()
    yield from zip(changes, [*changes[1:], ops.height], strict=True)


def _matches(fused: _Fused, ops: pl.DataFrame, line: str) -> Iterator[range]:
    """The rows of each sequence whose types and shapes match; the longest match at each start."""
    candidates = [
        range(*match.span())
        for start, end in _streams(ops)
        for match in fused.letters.finditer(line, start, end)
    ]
    shapes = ops.select("input_shapes", "output_shapes")
    for rows in candidates:
        parts = [
            _Op(line[row], shapes_of(inputs), shapes_of(outputs))
            for row, (inputs, outputs) in zip(
                rows, shapes[rows.start : rows.stop].rows(), strict=True
            )
        ]
        for stop in range(rows.stop, rows.start, -1):
            fits = fused.letters.fullmatch(line, rows.start, stop)
            if fits and fused.confirms(parts[: stop - rows.start]):
                yield range(rows.start, stop)
                break


def _claim(case: Case, fused: _Fused, ops: pl.DataFrame, sequences: Sequence[list[int]]) -> Claim:
    """The claim for all sequences of a kind; the fused op is estimated by each one's longest op."""
    durations = ops["duration_ns"]
    rows = [row for sequence in sequences for row in sequence]
    longest = {max(sequence, key=lambda row: int(durations[row] or 0)) for sequence in sequences}
    total = int(durations[rows].sum())
    count = len(sequences) / case.steps
    kinds = Counter(
        (
            " > ".join(str(kind) for kind in ops["type"][sequence]),
            str(ops["input_shapes"][sequence[0]]),
        )
        for sequence in sequences
    )
    return Claim(
        values={
            "name": fused.name,
            "api": fused.api,
            "times": Text(en=counted(count, "time"), zh=f"{count:g} 次"),
            "lasts": ms(total / case.steps),
        },
        spans=spans(ops[[row for row in rows if row not in longest]]),
        evidence=tuple(
            untranslated(f"{number / case.steps:g} x {shown(what, 120)}: {shown(shapes, 80)}")
            for (what, shapes), number in kinds.most_common(_MAX_LINES)
        ),
    )


FINDINGS.add(
    Finding(
        name="fusible-sequence",
        what=Text(
            en="{name} is computed by small ops: {times} per step, {lasts}",
            zh="{name} 由多个小算子拼成：每迭代 {times}，耗时 {lasts}",
        ),
        change=Text(
            en="Call {api}, which needs one op forward and one backward; the fused op is estimated "
            "to take as long as the longest small one, and backward is not counted.",
            zh="改用 {api}，前向、反向各为一个算子；融合算子的耗时按其中最长的小算子估算，"
            "反向的收益未计入。",
        ),
        search=fusible_sequences,
        order=37,
        view="fusion",
        of_ops=True,
    )
)
