"""Time by layer, including sublayers, with repeated layers merged."""

import re
from collections.abc import Iterator
from typing import Final

import polars as pl

from jumar.ground.text import Text
from jumar.profiling.columns import COUNT, SHARE, TOTAL, column, ms
from jumar.profiling.profile import Profile
from jumar.profiling.views.view import VIEWS, Options, View, require

_HOW: Final = "record with `jumar profile`, or with torch.profiler or torch_npu and with_stack=True"
_NUMBER: Final = re.compile(r"(?<=.)_\d+$")
"""The number in names of repeated layers: `layer_3`, `BertLayer_3`."""
_MAX_DEPTH: Final = 32
"""Layers below this depth count as part of their ancestor; a hostile path has a million names."""


def layers(profile: Profile, _: Options) -> pl.DataFrame:
    """Time by layer, including sublayers; layers that differ only by a number are merged."""
    ops = require(profile.ops, "ops with their layer", "module", how=_HOW)
    sums = (
        ops.filter(pl.col("module").str.len_chars() > 0)
        .group_by("module")
        .agg(pl.len().alias("count"), pl.col("duration_ns").sum())
    )
    rows = [
        (layer, instance, count, duration, duration if is_innermost else 0)
        for module, count, duration in sums.iter_rows()
        for layer, instance, is_innermost in _with_ancestors(module)
    ]
    schema = {
        **dict.fromkeys(("layer", "instance"), pl.String),
        **dict.fromkeys(("count", "total_ns", "own_ns"), pl.Int64),
    }
    total = max(int(ops["duration_ns"].sum()), 1)
    return (
        pl.DataFrame(rows, schema=schema, orient="row")
        .group_by("layer")
        .agg(
            pl.col("instance").n_unique().alias("layers"),
            pl.col("count", "total_ns", "own_ns").sum(),
        )
        .with_columns((pl.col("total_ns") * 100 / total).round(2).alias("share_%"))
        .sort("total_ns", pl.col("layer").str.len_chars(), "layer", descending=[True, False, False])
    )


def _with_ancestors(module: str) -> Iterator[tuple[str, str, bool]]:
    """A layer and all enclosing ones: name without numbers, full name, whether it is innermost."""
    separator = "/" if "/" in module else "."
    names = module.split(separator)[:_MAX_DEPTH]
    merged = ["*" if name.isdecimal() else _NUMBER.sub("", name) for name in names]
    for length in range(1, len(names) + 1):
        layer, instance = (separator.join(parts[:length]) for parts in (merged, names))
        yield layer, instance, length == len(names)


VIEWS.add(
    View(
        name="layers",
        title=Text(en="Layers, including their sublayers", zh="各层耗时（含其内部所有子层）"),
        question=Text(
            en="What does each part of the network cost, forward and backward? Layers that differ "
            "only by a number are summed; `own` is the time outside sublayers.",
            zh="网络各部分前向加反向共耗时多少？仅编号不同的层合并统计；“自身”指不属于任何子层的部分。",
        ),
        columns=(
            column("layer", "网络层", keeps_end=True),
            column("layers", "层数"),
            COUNT,
            TOTAL,
            ms("own", "自身"),
            SHARE,
        ),
        compute=layers,
        order=64,
    )
)
