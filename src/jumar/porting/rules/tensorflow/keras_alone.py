"""Stand-alone Keras, the package `keras`, is kept."""

import ast

from jumar.porting.rewriting import Changes, Leave, Text, View, rule
from jumar.porting.script.expressions import imported_names

_STAYS = Text(
    en="stand-alone Keras (2.3.1 is the last for TensorFlow 1.15) runs in the TensorFlow session "
    "that the port sets, so its imports are kept; layers and file formats of tf.keras differ",
    zh="独立 Keras（2.3.1 是支持 TensorFlow 1.15 的最后版本）使用移植后设置的 TensorFlow 会话，"
    "因此保留其导入；tf.keras 的层与文件格式与其不同",
)


@rule(
    "keras-alone",
    title=Text(en="Stand-alone Keras is kept", zh="保留独立 Keras"),
    source="ModelZoo-TensorFlow: AUTOAUGMENT_ID0708 and AdvancedEast_ID0130, which change it; "
    "release notes of Keras 2.3",
    nodes=(ast.Import, ast.ImportFrom),
)
def keras_alone(node: ast.Import | ast.ImportFrom, _: View) -> Changes:
    """Report that imports of the package `keras` are deliberately kept."""
    if any(name.partition(".")[0] == "keras" for name in imported_names(node)):
        yield Leave(node=node, reason=_STAYS)
