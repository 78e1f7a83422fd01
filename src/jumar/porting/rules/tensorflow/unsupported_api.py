"""API that the adapter's own table lists as unsupported."""

from jumar.porting.edits import Severity, Text
from jumar.porting.npu.api_support import LEVELS, Level, names_of, release
from jumar.porting.rewriting.reporting import Case, report

_REASON = Text(
    en="{name}: {level_en} (API list of the adapter for TensorFlow 1.15, {release})",
    zh="{name}：{level_zh}（TensorFlow 1.15 适配层 API 清单，{release}）",
)
_ADVICE = Text(
    en="replace it where it is part of the training step; what runs on the host, such as the "
    "input of tf.data, may stay",
    zh="若属于训练步请替换；在主机上执行的部分（如 tf.data 输入）可保留",
)
_TPU_ADVICE = Text(
    en="remove it: it is made for TPUs; precision and distribution come from the options of the "
    "port",
    zh="请删除：仅用于 TPU；精度与分布式由移植选项设置",
)
_QUESTION_ADVICE = Text(
    en="graph mode is the only one on the NPU; the branch for eager mode can go",
    zh="NPU 只支持图模式；可删除 eager 分支",
)
_TRY_ADVICE = Text(
    en="run the script to its first step on the NPU and look at this place first if that fails",
    zh="请在 NPU 上运行到第一步；若失败，先检查此处",
)
_TOLD = frozenset(
    {
        # Other rules say what to write instead of these.
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
_QUESTION = ("tensorflow.executing_eagerly",)
_NAMES = {level: tuple(name for name in names_of(level) if name not in _TOLD) for level in LEVELS}
_FOR_TPUS = tuple(name for name in _NAMES["unsupported"] if ".tpu." in name)


def _case(
    level: Level, todo: Text, *, names: tuple[str, ...] = (), severity: Severity = "look"
) -> Case:
    words = LEVELS[level]
    return Case(
        references=names or _NAMES[level],
        reason=_REASON.filled(
            name="{name}", level_en=words.en, level_zh=words.zh, release=release()
        ),
        todo=todo,
        severity=severity,
        confidence="certain" if level == "unsupported" else "unsure",
    )


report(
    "unsupported-api",
    title=Text(en="API that the adapter does not support", zh="适配层不支持的 API"),
    source="tf1.15_api_support_list.xlsx of Ascend/tensorflow, December 2023",
    cases=(
        _case("unsupported", _QUESTION_ADVICE, names=_QUESTION),
        _case("unsupported", _TPU_ADVICE, names=_FOR_TPUS, severity="blocking"),
        _case("unsupported", _ADVICE, severity="blocking"),
        _case("contradictory", _TRY_ADVICE),
        _case("analysed", _TRY_ADVICE),
        Case(references=_NAMES["harmless"], reason=LEVELS["harmless"]),
        Case(references=_NAMES["deprecated"], reason=LEVELS["deprecated"]),
    ),
)
