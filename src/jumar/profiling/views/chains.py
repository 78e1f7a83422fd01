"""Casts and format changes that cancel out, over a few steps."""

from typing import Final

import polars as pl

from jumar.ground.text import Text
from jumar.profiling.columns import COUNT, MODULE, column, ms
from jumar.profiling.profile import Profile
from jumar.profiling.views.view import VIEWS, Options, View

_STEPS: Final = 3
"""Number of steps to analyse, enough to show every recurring chain."""

CHAINS_TITLE: Final = Text(
    en="Casts and format changes that cancel out", zh="相互抵消的数据类型转换和格式转换"
)
CHAIN_COLUMNS: Final = (
    column("what", "算子", "ops"),
    column("shape", "形状"),
    column("of", "起止类型与格式", "from and to"),
    column("by_way_of", "中间类型与格式"),
    MODULE,
    COUNT,
    ms("saved", "可节省", "would save"),
)


def chains(profile: Profile, _: Options) -> pl.DataFrame:
    """Chains that leave a tensor unchanged, by possible saving per step."""
    # Imported here because the comparison shows this view's columns.
    from jumar.profiling.comparison import chains_per_step, prepare

    return chains_per_step(prepare(profile, steps=_STEPS))


VIEWS.add(
    View(
        name="chains",
        title=CHAINS_TITLE,
        question=Text(
            en="Which casts and format changes of a step restore the original tensor? Detected by "
            "shape, dtype and layout; if another op uses an intermediate result, only the last "
            "conversion counts.",
            zh="每个迭代中哪些数据类型转换和格式转换又把张量变回原样？按形状、数据类型和格式识别；若有算子"
            "使用中间结果，则只计变回的部分。",
        ),
        columns=CHAIN_COLUMNS,
        compute=chains,
        order=71,
    )
)
