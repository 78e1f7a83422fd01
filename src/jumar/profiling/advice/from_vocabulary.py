"""A finding about language models: ops on logits, which are as wide as the vocabulary."""

import re
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

import polars as pl

from jumar.ground.text import Text
from jumar.profiling.advice.finding import FINDINGS, Case, Claim, Finding, carved, ms, untranslated
from jumar.profiling.columns import largest_first
from jumar.profiling.views.intervals import spans
from jumar.profiling.views.op_costs import family
from jumar.profiling.views.roofline import REACHABLE, require_chip
from jumar.profiling.views.shapes import Shape, shapes_of, volume
from jumar.profiling.views.view import Impossible

_MIN_VOCABULARY: Final = 8192
"""Smaller numbers of classes are not a vocabulary, and their logits are small."""

_LOSSES: Final = re.compile(r"(?i)nll_?loss|cross_?entropy")
_SOFTMAX: Final = re.compile(r"(?i)softmax|logsumexp|^(aten::)?exp$")
"""Ops of a loss that is computed step by step, as with a vocabulary split over ranks."""

_PASSES: Final = 2
"""A fused loss reads the logits once and writes their gradient once."""
_MAX_LINES: Final = 5
_COLUMNS: Final = ("kind", "type", "input_shapes", "output_shapes")
_MIN_SHARE: Final = 0.01
"""Op types below this share of the time are ignored."""


class _Logits(NamedTuple):
    """The vocabulary size of logits, and their possible numbers of rows (tokens)."""

    rows: frozenset[int]
    vocabulary: int

    def matches(self, shape: Shape) -> bool:
        """Whether a tensor has this many elements, with the vocabulary as one axis."""
        rows = volume(shape) // self.vocabulary
        return len(shape) > 1 and self.vocabulary in shape and rows in self.rows


def _shapes(row: Mapping[str, object]) -> list[Shape]:
    texts = (str(row[name] or "") for name in ("input_shapes", "output_shapes"))
    return [shape for text in texts for shape in shapes_of(text) if len(shape) > 1]


def _shapes_by_type(kinds: pl.DataFrame, types: list[str]) -> Iterator[dict[str, object]]:
    """The distinct shapes of ops of some types; there may be a million kinds."""
    selected = kinds.filter(pl.col("type").is_in(types))
    return selected.select("type", "input_shapes", "output_shapes").unique().iter_rows(named=True)


def _logits_of(kinds: pl.DataFrame) -> list[_Logits]:
    """The logits over which losses are computed.

    A softmax may belong to attention, so it counts only if a two-dimensional weight has its width.
    """
    types = [str(kind) for kind in kinds["type"].drop_nulls().unique()]
    products = [kind for kind in types if family(kind) == "matrix"]
    losses = [kind for kind in types if _LOSSES.search(kind) or _SOFTMAX.search(kind)]
    weighted = {
        size
        for row in _shapes_by_type(kinds, products)
        for shape in _shapes(row)
        if len(shape) == 2
        for size in shape
    }
    rows: dict[int, set[int]] = {}
    for row in _shapes_by_type(kinds, losses):
        is_loss = _LOSSES.search(str(row["type"]))
        for shape in _shapes(row):
            height, width = shape[-2], shape[-1]
            wide = width >= _MIN_VOCABULARY and height > 1 and len(shape) < 4
            if wide and (is_loss or (width in weighted and width != height)):
                rows.setdefault(width, set()).add(volume(shape) // width)
    return [_Logits(frozenset(tokens), size) for size, tokens in sorted(rows.items())]


def whole_logits(case: Case) -> Iterator[Claim]:
    """Claim ops between the vocabulary projection and its gradient, which a fused loss avoids."""
    for logits in _logits_of(case.kinds):
        all_shapes = pl.concat_str(
            "input_shapes", "output_shapes", separator=";", ignore_nulls=True
        )
        candidates = case.kinds.filter(
            all_shapes.str.contains(str(logits.vocabulary), literal=True)
        )
        logit_kinds = [
            row["kind"]
            for row in candidates.select(_COLUMNS).iter_rows(named=True)
            if family(str(row["type"])) not in ("matrix", "attention")
            and any(logits.matches(shape) for shape in _shapes(row))
        ]
        kinds = case.kinds.filter(pl.col("kind").is_in(logit_kinds))
        total_ns = int(kinds["duration_ns"].sum())
        by_type = (
            kinds.group_by("type")
            .agg(pl.col("duration_ns").sum(), pl.col("count").sum())
            .pipe(largest_first, "duration_ns", "type")
            .filter(pl.col("duration_ns") >= _MIN_SHARE * total_ns)
        )
        if by_type.height < 2:
            continue  # Already fused.
        remaining = min(_remaining_ns(case, logits) / max(total_ns, 1), 1.0)
        yield Claim(
            values={
                "lasts": ms(total_ns / case.steps),
                "tokens": max(logits.rows),
                "vocabulary": logits.vocabulary,
                "types": by_type.height,
            },
            spans=carved(spans(case.ops_of(kinds)), 1 - remaining),
            evidence=(
                *(
                    untranslated(f"{count / case.steps:g} x {kind}: {ms(size / case.steps)}")
                    for kind, size, count in by_type.head(_MAX_LINES).iter_rows()
                ),
                _assumption(remaining),
            ),
        )


def _remaining_ns(case: Case, logits: _Logits) -> float:
    """The time to read and write the logits once in 16 bits, over all steps; 0 if unknown."""
    try:
        chip = require_chip(case.profile, case.options)
    except Impossible:
        return 0.0
    elements = float(max(logits.rows)) * logits.vocabulary
    return case.steps * _PASSES * 2 * elements / (REACHABLE * chip.hbm_gb_s)


def _assumption(remaining: float) -> Text:
    if not remaining:
        return Text(
            en="counted in full, since the chip's bandwidth is unknown",
            zh="因芯片带宽未知，全部计入",
        )
    return Text(
        en="minus one read and one write of the logits in 16 bits; the products with the "
        "vocabulary's weights are not counted",
        zh="已扣除 16 位 logits 的一次读和一次写；与词表权重的矩阵乘未计入",
    )


FINDINGS.add(
    Finding(
        name="whole-logits",
        what=Text(
            en="Tensors as wide as the vocabulary ({tokens} x {vocabulary}) take {lasts} per step "
            "in {types} op types",
            zh="词表宽度的张量（{tokens} x {vocabulary}）在 {types} 类算子中每迭代耗时 {lasts}",
        ),
        change=Text(
            en="Do not materialize the whole logits: use a fused or chunked cross entropy "
            "(projection and loss for a few thousand tokens at a time, such as Liger's fused "
            "linear cross entropy, or torch.compile; on Ascend torch_npu.npu_cross_entropy_loss), "
            "without a cast to FLOAT in between; drop positions without a loss before the "
            "projection.",
            zh="不要生成完整的 logits：使用融合或分块的交叉熵（每次对数千个 token "
            "做投影和损失计算，如 Liger 的 fused linear cross entropy 或 torch.compile；昇腾上用 "
            "torch_npu.npu_cross_entropy_loss），中间不转换为 FLOAT；投影前去掉不计损失的位置。",
        ),
        search=whole_logits,
        order=35,
        view="by-shape",
        of_ops=True,
    )
)
