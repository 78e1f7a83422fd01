"""Casts and format changes that undo each other, in a few steps."""

from typing import Final

import polars as pl

from jumar.ground.text import Text
from jumar.profiling.columns import COUNT, MODULE, column, ms
from jumar.profiling.profile import Profile
from jumar.profiling.views.view import VIEWS, Options, View

_STEPS: Final = 3
"""So many steps show every chain that comes again."""

CHAINS_TITLE: Final = Text(
    en="Casts and format changes that undo each other", zh="相互抵消的数据类型转换和格式转换"
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
    """Chains that leave a tensor unchanged, by what a step would save without them."""
    # Comparing needs NumPy, for which no other view should wait.
    from jumar.profiling.comparison import chains_per_step, prepare

    return chains_per_step(prepare(profile, steps=_STEPS))


VIEWS.add(
    View(
        name="chains",
        title=CHAINS_TITLE,
        question=Text(
            en="Which casts and format changes of a step bring a tensor back to what it was? Found "
            "by shape, dtype and layout; where another op computes with what is between, only "
            "the way back counts.",
            zh="每个迭代中哪些数据类型转换和格式转换又把张量变回原样？按形状、数据类型和格式识别；若有算子"
            "使用中间结果，则只计变回的部分。",
        ),
        columns=CHAIN_COLUMNS,
        compute=chains,
        place=71,
    )
)
