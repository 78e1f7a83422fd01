"""APIs that the adapter's own table lists as unsupported."""

from jumar.porting.npu.api_support import LEVELS, Level, names_of, release
from jumar.porting.rewriting import Case, Severity, Text, report

_ADVICE = Text(
    en="replace it if it is part of the training step; code that runs on the host, such as "
    "tf.data input, may stay",
    zh="若属于训练步请替换；在主机上执行的部分（如 tf.data 输入）可保留",
)
_TPU_ADVICE = Text(
    en="remove it: it is for TPUs; the port's options set precision and distribution",
    zh="请删除：仅用于 TPU；精度与分布式由移植选项设置",
)
_EAGER_ADVICE = Text(
    en="the NPU only supports graph mode; the branch for eager mode can be removed",
    zh="NPU 只支持图模式；可删除 eager 分支",
)
_TRY_ADVICE = Text(
    en="run the first step of the script on the NPU; if it fails, check this code first",
    zh="请在 NPU 上运行到第一步；若失败，先检查此处",
)
_REPORTED_ELSEWHERE = frozenset(
    {
        # Other rules report these, with their replacements.
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
_EAGER_QUERIES = ("tensorflow.executing_eagerly",)
_NAMES = {
    level: tuple(name for name in names_of(level) if name not in _REPORTED_ELSEWHERE)
    for level in LEVELS
}
_FOR_TPUS = tuple(name for name in _NAMES["unsupported"] if ".tpu." in name)


def _case(
    level: Level, todo: Text, *, names: tuple[str, ...] = (), severity: Severity = "look"
) -> Case:
    return Case(
        references=names or _NAMES[level],
        en=f"{{name}}: {LEVELS[level].en} (API list of the adapter for TensorFlow 1.15, "
        f"{release()})",
        zh=f"{{name}}：{LEVELS[level].zh}（TensorFlow 1.15 适配层 API 清单，{release()}）",
        todo_en=todo.en,
        todo_zh=todo.zh,
        severity=severity,
        confidence="certain" if level == "unsupported" else "unsure",
    )


report(
    "unsupported-api",
    title=Text(en="APIs that the adapter does not support", zh="适配层不支持的 API"),
    source="tf1.15_api_support_list.xlsx of Ascend/tensorflow, December 2023",
    cases=(
        _case("unsupported", _EAGER_ADVICE, names=_EAGER_QUERIES),
        _case("unsupported", _TPU_ADVICE, names=_FOR_TPUS, severity="blocking"),
        _case("unsupported", _ADVICE, severity="blocking"),
        _case("contradictory", _TRY_ADVICE),
        _case("analysed", _TRY_ADVICE),
        *(
            Case(references=_NAMES[level], en=LEVELS[level].en, zh=LEVELS[level].zh)
            for level in ("harmless", "deprecated")
        ),
    ),
)
