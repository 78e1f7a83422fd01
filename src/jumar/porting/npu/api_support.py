"""The support level of each TensorFlow 1.15 API in the adapter.

The names and levels come from `tf1.15_api_support_list.xlsx` in the repository Ascend/tensorflow,
as of December 2023; the descriptions are ours.
"""

import json
from functools import cache
from importlib.resources import files
from typing import Literal, TypedDict, get_args

from jumar.porting.edits import Text

Level = Literal[
    "supported", "ported", "harmless", "deprecated", "analysed", "contradictory", "unsupported"
]
LEVELS: dict[Level, Text] = {
    "supported": Text(en="supported without changes", zh="支持，无需修改"),
    "ported": Text(en="supported after porting", zh="移植后支持"),
    "harmless": Text(
        en="not supported, but not needed after porting", zh="不支持，但不影响移植后的脚本"
    ),
    "deprecated": Text(
        en="deprecated in TensorFlow 1.15; works if its operators are supported",
        zh="TensorFlow 1.15 已弃用；所含算子受支持时可用",
    ),
    "analysed": Text(en="not yet analysed: it may fail", zh="尚未分析，可能失败"),
    "contradictory": Text(
        en="listed as supported, but with a remark that it is not",
        zh="清单标为支持，备注却称不支持",
    ),
    "unsupported": Text(en="not supported", zh="不支持"),
}
"""The description of each level."""


class _Table(TypedDict):
    source: str
    commit: str
    date: str
    names: dict[Level, list[str]]


@cache
def _table() -> _Table:
    text = files("jumar.porting.npu").joinpath("api_support.json").read_text(encoding="utf-8")
    table: _Table = json.loads(text)
    assert set(table["names"]) == set(get_args(Level))
    return table


def release() -> str:
    """The date of the table."""
    return _table()["date"]


def names_of(*levels: Level) -> tuple[str, ...]:
    """The names that are listed with one of the levels."""
    return tuple(name for level in levels for name in _table()["names"][level])
