"""Python functions in the graph of a step are said; in a data set they run on the host anyway."""

import ast
from collections.abc import Iterator

from jumar.porting.edits import Text
from jumar.porting.rewriting.changes import Change, Leave
from jumar.porting.rewriting.registry import rule
from jumar.porting.rewriting.view import View

_REASON = Text(
    en="a Python function runs on the host, and the step of the graph on the device",
    zh="Python 函数在主机上执行，而训练步的图在设备上执行",
)
_TODO = Text(
    en="move it into the map of the tf.data input, write it with operators, or put it under "
    "npu_scope.without_npu_compile_scope() with mix_compile_mode",
    zh="移到 tf.data 的 map 中，或改用算子实现，或放在 npu_scope.without_npu_compile_scope() "
    "下并开启 mix_compile_mode",
)
_MAPPED = Text(
    en="it belongs to a data set, whose functions run on the host",
    zh="属于 tf.data，函数在主机上执行",
)
_NAMES = (
    "tensorflow.py_func",
    "tensorflow.py_function",
    "tensorflow.numpy_function",
    "tensorflow.contrib.eager.py_func",
    "tensorflow.contrib.framework.py_func",
)
_MAPS = ("map", "flat_map", "interleave", "apply", "filter", "map_with_legacy_function")


@rule(
    "py-func",
    title=Text(en="Python functions in the graph", zh="图中的 Python 函数"),
    source="TensorFlow 1.15 migration guide of CANN; npu_scope.py of Ascend/tensorflow",
    calls=_NAMES,
)
def py_func(call: ast.Call, view: View) -> Iterator[Change]:
    """A finding outside of data sets."""
    if mapped(call, view):
        yield Leave(node=call, reason=_MAPPED)
    else:
        yield view.notice(
            call, reason=_REASON, todo=_TODO, severity="blocking", confidence="likely"
        )


def mapped(node: ast.AST, view: View) -> bool:
    """Whether a node stands in a function that a data set of the module maps.

    That is a lambda within the call, or a function that is named in one.
    """
    functions: list[ast.FunctionDef | ast.AsyncFunctionDef] = []
    child: ast.AST = node
    for around in view.module.scopes.ancestors(node):
        # What the method is called on is no argument of it.
        if isinstance(around, ast.Call) and child is not around.func and _maps(around, view):
            return True
        child = around
        if isinstance(around, ast.FunctionDef | ast.AsyncFunctionDef):
            functions.append(around)
    names = {function.name for function in functions}
    if not names:
        return False
    for call in view.module.scopes.nodes:
        if isinstance(call, ast.Call) and _maps(call, view):
            inside = [*call.args, *(word.value for word in call.keywords)]
            for value in inside:
                for part in ast.walk(value):
                    if isinstance(part, ast.Name) and part.id in names:
                        return True
                    if isinstance(part, ast.Attribute) and part.attr in names:
                        return True
    return False


def _maps(call: ast.Call, view: View) -> bool:
    """Whether a call hands functions to a data set, or may do so."""
    name = view.module.name_of(call.func) or ""
    if name.startswith(("tensorflow.data.experimental.", "tensorflow.contrib.data.")):
        return True
    return (
        isinstance(call.func, ast.Attribute)
        and call.func.attr in _MAPS
        # The argument of a function is of no known kind.
        and view.kinds.of(call.func.value) in ("Dataset", None)
        and not name.startswith("tensorflow.")
    ) or name == "tensorflow.data.Dataset.from_generator"
