"""The time of all ops that read or write a tensor, by tensor."""

from collections import defaultdict
from collections.abc import Mapping
from typing import Final, TypeVar

import polars as pl

from jumar.ground.text import Text
from jumar.profiling.columns import COUNT, SHARE, TOTAL, column
from jumar.profiling.profile import Profile
from jumar.profiling.views.kinds import kinds
from jumar.profiling.views.shapes import Shape, shapes_of, volume
from jumar.profiling.views.view import LEVEL_1, VIEWS, Impossible, Options, View, require

_Key = TypeVar("_Key", str, Shape)
_MAX_SHOWN: Final = 3
"""Number of shapes and op types to list, longest first."""


def by_tensor(profile: Profile, _: Options) -> pl.DataFrame:
    """Time of ops by the size of the largest tensor they read or write.

    Tensors are identified by their number of elements, since views have other shapes. Different
    tensors of the same size therefore share a row.
    """
    require(profile.ops, "ops with their shapes", "input_shapes", "type", how=LEVEL_1)
    columns = ("type", "input_shapes", "output_shapes", "count", "total_ns")
    sums: defaultdict[int, list[int]] = defaultdict(lambda: [0, 0])
    by_shape: defaultdict[int, defaultdict[Shape, int]] = defaultdict(lambda: defaultdict(int))
    by_type: defaultdict[int, defaultdict[str, int]] = defaultdict(lambda: defaultdict(int))
    for kind, inputs, outputs, count, duration in kinds(profile).table.select(columns).iter_rows():
        largest = max((*shapes_of(inputs), *shapes_of(outputs)), key=volume, default=())
        elements = volume(largest)
        if elements > 1:
            sums[elements][0] += count
            sums[elements][1] += duration
            by_shape[elements][largest] += duration
            by_type[elements][str(kind or "-")] += duration
    if not sums:
        raise Impossible("ops with tensors of known shape", LEVEL_1)
    total = max(int(profile.ops["duration_ns"].sum()), 1)
    rows = [
        {
            "elements": elements,
            "shapes": "; ".join(
                ",".join(map(str, shape)) for shape in _longest(by_shape[elements])
            ),
            "types": len(by_type[elements]),
            "op_types": ", ".join(_longest(by_type[elements])),
            "count": count,
            "total_ns": duration,
            "share_%": round(100 * duration / total, 2),
        }
        for elements, (count, duration) in sums.items()
    ]
    return pl.DataFrame(rows).sort("total_ns", "elements", descending=True)


def _longest(times: Mapping[_Key, int]) -> list[_Key]:
    """The keys with the longest times."""
    return sorted(times, key=lambda key: (-times[key], key))[:_MAX_SHOWN]


VIEWS.add(
    View(
        name="by-tensor",
        title=Text(en="Ops by the largest tensor they access", zh="按所涉最大张量统计算子"),
        question=Text(
            en="How much time do all ops that read or write a tensor take? Tensors with the same "
            "number of elements are in one row.",
            zh="一个张量在所有读写它的算子类型中共耗时多少？元素个数相同的张量合并为一行。",
        ),
        columns=(
            column("shapes", "形状"),
            column("elements", "元素个数"),
            column("types", "算子类型数", "op types"),
            column("op_types", "主要算子类型", "mostly"),
            COUNT,
            TOTAL,
            SHARE,
        ),
        compute=by_tensor,
        order=65,
    )
)
