"""The support level of each API in the adapter for TensorFlow 1.15: its converter's table, as data.

The names and levels are those of `tf1.15_api_support_list.xlsx` of the repository
Ascend/tensorflow, state of December 2023; the words are ours.
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
    "supported": Text(en="supported as it is", zh="支持，无需修改"),
    "ported": Text(en="supported after porting", zh="移植后支持"),
    "harmless": Text(
        en="not supported, and does nothing that a port needs", zh="不支持，但不影响移植后的脚本"
    ),
    "deprecated": Text(
        en="deprecated in TensorFlow 1.15; it works where its operators do",
        zh="TensorFlow 1.15 已弃用；所含算子受支持时可用",
    ),
    "analysed": Text(en="not yet analysed: it may fail", zh="尚未分析，可能失败"),
    "contradictory": Text(
        en="listed as supported, with the remark that it is not", zh="清单标为支持，备注却称不支持"
    ),
    "unsupported": Text(en="not supported", zh="不支持"),
}
"""What the levels mean."""


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
    """The listed names of some levels."""
    return tuple(name for level in levels for name in _table()["names"][level])
