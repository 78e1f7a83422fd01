"""What the adapter's own table says of the API that a script uses."""

import ast
from collections.abc import Iterator

from jumar.porting.edits import Text
from jumar.porting.npu.api_support import LEVELS, api_support, names_of, release
from jumar.porting.rewriting.changes import Change, Leave
from jumar.porting.rewriting.registry import rule
from jumar.porting.rewriting.view import View

_REASON = Text(
    en="{name}: {level_en} (API list of the adapter for TensorFlow 1.15, {release})",
    zh="{name}：{level_zh}（TensorFlow 1.15 适配层 API 清单，{release}）",
)
_TODO = Text(
    en="replace it where it is part of the training step; what runs on the host, such as the "
    "input of tf.data, may stay",
    zh="若属于训练步请替换；在主机上执行的部分（如 tf.data 输入）可保留",
)
_TPU_TODO = Text(
    en="remove it: it is made for TPUs; precision and distribution come from the options of the "
    "port",
    zh="请删除：仅用于 TPU；精度与分布式由移植选项设置",
)
_QUESTION_TODO = Text(
    en="graph mode is the only one on the NPU; the branch for eager mode can go",
    zh="NPU 只支持图模式；可删除 eager 分支",
)
_TRY_TODO = Text(
    en="run the script to its first step on the NPU and look at this place first if that fails",
    zh="请在 NPU 上运行到第一步；若失败，先检查此处",
)
_TOLD = frozenset(
    {
        # Of these, rules of their own say what to write instead.
        "tensorflow.enable_eager_execution",
        "tensorflow.enable_v2_behavior",
        "tensorflow.IdentityReader",
        "tensorflow.LMDBReader",
        "tensorflow.WholeFileReader",
        "tensorflow.is_finite",
        "tensorflow.is_inf",
        "tensorflow.is_nan",
        "tensorflow.contrib.tpu.CrossShardOptimizer",
        "tensorflow.distribute.experimental.TPUStrategy",
        "tensorflow.keras.layers.CuDNNGRU",
        "tensorflow.keras.layers.CuDNNLSTM",
    }
)
_QUESTIONS = ("tensorflow.executing_eagerly",)
_NAMES = tuple(
    name
    for name in names_of("unsupported", "contradictory", "analysed", "harmless", "deprecated")
    if name not in _TOLD
)


@rule(
    "unsupported-api",
    title=Text(en="API that the adapter does not support", zh="适配层不支持的 API"),
    source="tf1.15_api_support_list.xlsx of Ascend/tensorflow, December 2023",
    references=_NAMES,
)
def unsupported_api(node: ast.expr, view: View) -> Iterator[Change]:
    """A finding for what is not supported, or doubtful; the rest is counted."""
    name = view.module.name_of(node) or ""
    found = api_support(name)
    if found is None:
        return
    shown = name.replace("tensorflow.", "tf.", 1)
    level = LEVELS[found.level]
    if found.level in ("harmless", "deprecated"):
        yield Leave(node=node, reason=level)
        return
    todo = _TPU_TODO if ".tpu." in name else _TODO
    if name in _QUESTIONS:
        todo = _QUESTION_TODO
    elif found.level != "unsupported":
        todo = _TRY_TODO
    yield view.notice(
        node,
        reason=_REASON.filled(name=shown, level_en=level.en, level_zh=level.zh, release=release()),
        todo=todo,
        severity="blocking" if found.level == "unsupported" and name not in _QUESTIONS else "look",
        confidence="certain" if found.level == "unsupported" else "unsure",
    )
