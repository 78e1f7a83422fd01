"""Summaries that are computed in every step."""

import ast

from jumar.porting.rewriting import Changes, Remark, Text, View, rule
from jumar.porting.script.expressions import argument_values

_SUMMARIES = frozenset(
    f"tensorflow.summary.{name}"
    for name in ("audio", "histogram", "image", "scalar", "tensor_summary", "text")
) | frozenset(
    (
        "tensorflow.contrib.layers.summarize_activation",
        "tensorflow.contrib.layers.summarize_activations",
        "tensorflow.contrib.layers.summarize_collection",
        "tensorflow.contrib.layers.summarize_tensor",
        "tensorflow.contrib.layers.summarize_tensors",
    )
)
_MERGES = ("tensorflow.summary.merge", "tensorflow.summary.merge_all")
_LOOPS = ("tensorflow.while_loop", "tensorflow.map_fn", "tensorflow.scan", "tensorflow.foldl")
_COST = Remark(
    en="summaries are host operations ({names}): a step that fetches them leaves the NPU's graph",
    zh="summary 属于主机侧算子（{names}）：获取它们的步骤会离开 NPU 计算图",
    todo_en="fetch the merged summary every hundred steps, not every step; with NPUEstimator set "
    "save_summary_steps, or use NPUEstimatorSpec(host_call=...)",
    todo_zh="不要每步都获取合并后的 summary，可每百步一次；使用 NPUEstimator 时设置 "
    "save_summary_steps，或使用 NPUEstimatorSpec(host_call=...)",
    severity="speed",
)
_INSIDE = Remark(
    en="a summary within a loop of the graph is a host operation that interrupts execution on the "
    "device",
    zh="图内循环中的 summary 是主机侧算子，会打断设备上的执行",
    todo_en="return the value from the loop, and summarise it outside",
    todo_zh="将该值从循环中返回，在循环外写 summary",
    severity="blocking",
)


@rule(
    "summaries",
    title=Text(en="Summaries within the step are reported", zh="指出训练步骤中的 summary"),
    source="ModelZoo-TensorFlow: FaceBoxes_ID1074, Transformer_ID2361, NIMA_ID0158",
)
def summaries(_: ast.Module, view: View) -> Changes:
    """Report summaries once per module, if possible where they are merged."""
    calls: list[tuple[ast.Call, str]] = []
    loop_functions: set[str] = set()
    merges: list[ast.Call] = []
    for node in view.module.calls:
        name = view.module.name_of(node.func) or ""
        if name in _SUMMARIES:
            calls.append((node, name))
        elif name in _MERGES:
            merges.append(node)
        elif name in _LOOPS:
            loop_functions |= {
                value.id for value in argument_values(node) if isinstance(value, ast.Name)
            }
    outside: list[tuple[ast.Call, str]] = []
    for call, name in calls:
        function = view.module.function(call)
        if function is not None and function.name in loop_functions:
            yield view.notice(call, _INSIDE)
        else:
            outside.append((call, name))
    if outside or merges:
        names_called = {f"tf.summary.{name.rpartition('.')[2]}" for _, name in outside}
        names = ", ".join(sorted(names_called)) or "tf.summary"
        node_shown = merges[0] if merges else outside[0][0]
        yield view.notice(node_shown, _COST.filled(names=names))
