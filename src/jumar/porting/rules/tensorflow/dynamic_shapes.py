"""Placeholders whose shape changes from step to step."""

import ast

from jumar.porting.rewriting import Change, Changes, Leave, Remark, Text, View, rule
from jumar.porting.rewriting.editing import argument, literal
from jumar.porting.script.expressions import is_none
from jumar.porting.script.nodes import walk

_OPEN = Remark(
    en="{what} of this placeholder {is_open}: the NPU compiles a graph for fixed shapes, and again "
    "for every new shape",
    zh="该占位符{what}：NPU 按固定 shape 编译计算图，每出现一种新 shape 都会重新编译",
    todo_en="specify the sizes and feed only those (drop the last, smaller batch); for sizes that "
    "have to vary, set dynamic_input, dynamic_graph_execute_mode and dynamic_inputs_shape_range, "
    "and evaluate in a separate session and graph",
    todo_zh="写明各维大小并只输入该大小（丢弃最后不足一个 batch 的数据）；必须变化时设置 "
    "dynamic_input、dynamic_graph_execute_mode 与 dynamic_inputs_shape_range，"
    "并在独立的会话与图中评估",
    severity="speed",
)
_TRAINING = Remark(
    en="a placeholder decides whether the graph trains or evaluates: on the device, both are one "
    "graph with a branch",
    zh="用占位符区分训练与评估：两者在设备上是同一张带分支的图",
    todo_en="build separate graphs for training and evaluation with a Python bool, each with its "
    "own session; transfer the weights through a checkpoint",
    todo_zh="分别用 Python 布尔值构建训练图与评估图，各自使用一个会话，权重通过 checkpoint 传递",
    confidence="likely",
)
_HOST = Text(
    en="strings, and the inputs of an exported model, are not part of the training graph",
    zh="字符串以及导出模型的输入不属于训练图",
)
_SCALARS = (
    "rate",
    "lr",
    "prob",
    "keep",
    "phase",
    "step",
    "epoch",
    "decay",
    "scale",
    "train",
    "size",
)


@rule(
    "dynamic-shapes",
    title=Text(
        en="Placeholders without a fixed shape are reported", zh="指出 shape 不固定的占位符"
    ),
    source="ModelZoo-TensorFlow, ViDeNN_ID1146; npu_attrs.cc of Ascend/tensorflow",
    calls=("tensorflow.placeholder", "tensorflow.placeholder_with_default"),
)
def dynamic_shapes(call: ast.Call, view: View) -> Changes:
    """Report dimensions that are None, and placeholders that switch training on and off."""
    name = view.kinds.called(call) or ""
    with_default = name.endswith("with_default")
    shape = argument(call, "shape", 1)
    if _is_text(call, view) or _is_serving_input(call, view):
        yield Leave(node=call, reason=_HOST)
        return
    if _is_switch(call, with_default, view):
        yield view.notice(call, _TRAINING)
        return
    if shape is None or is_none(shape):
        if not _is_scalar_by_name(call, view):
            yield _notice(call, "the shape", "没有 shape", "is not set", view)
        return
    unknown = _unknown_dimensions(shape, view)
    if unknown == [0]:
        yield _notice(call, "the first dimension", "第一维为 None", "is None", view)
    elif unknown:
        dimensions = ", ".join(str(dimension) for dimension in unknown)
        english = f"dimension {dimensions}" if len(unknown) == 1 else f"dimensions {dimensions}"
        is_open = "is None" if len(unknown) == 1 else "are None"
        yield _notice(call, english, f"第 {dimensions} 维为 None", is_open, view)


def _notice(call: ast.Call, english: str, chinese: str, is_open: str, view: View) -> Change:
    remark = _OPEN.filled(what=Text(en=english, zh=chinese), is_open=is_open)
    return view.notice(call, remark)


def _is_text(call: ast.Call, view: View) -> bool:
    kind = argument(call, "dtype", 0)
    return kind is not None and view.module.name_of(kind) == "tensorflow.string"


def _is_serving_input(call: ast.Call, view: View) -> bool:
    """Whether a placeholder is in a function that receives requests for an exported model."""
    function = view.module.function(call)
    return function is not None and any(
        isinstance(node, ast.Attribute | ast.Name)
        and (view.module.name_of(node) or "").rpartition(".")[2]
        in ("ServingInputReceiver", "TensorServingInputReceiver")
        for node in walk(function)
    )


def _unknown_dimensions(shape: ast.expr, view: View) -> list[int]:
    """The dimensions that are None, counted from 0."""
    if isinstance(shape, ast.Call) and shape.args:
        name = view.module.name_of(shape.func)
        return _unknown_dimensions(shape.args[0], view) if name == "tensorflow.TensorShape" else []
    if isinstance(shape, ast.Name):
        value = view.module.assigned_value(shape)
        return _unknown_dimensions(value, view) if isinstance(value, ast.List | ast.Tuple) else []
    if not isinstance(shape, ast.List | ast.Tuple):
        return []
    return [index for index, size in enumerate(shape.elts) if is_none(size)]


def _is_switch(call: ast.Call, with_default: bool, view: View) -> bool:
    """Whether a placeholder is a bool, and so decides whether the graph trains."""
    if with_default:
        return (
            bool(call.args)
            and isinstance(call.args[0], ast.Constant)
            and (isinstance(call.args[0].value, bool))
        )
    kind = argument(call, "dtype", 0)
    return kind is not None and view.module.name_of(kind) == "tensorflow.bool"


def _is_scalar_by_name(call: ast.Call, view: View) -> bool:
    """Whether a placeholder without a shape has the name of a scalar, such as a learning rate."""
    name = literal(argument(call, "name", 2))
    names = [name] if isinstance(name, str) else []
    parent = view.module.parent(call)
    if isinstance(parent, ast.Assign):
        names += [view.module.source(target) for target in parent.targets]
    return any(scalar in name.lower() for name in names for scalar in _SCALARS)
