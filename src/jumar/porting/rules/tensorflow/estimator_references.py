"""Estimator handed on as a class: `partial(tf.estimator.Estimator, ...)`."""

import ast
from collections.abc import Iterator

from jumar.porting.edits import Text
from jumar.porting.rewriting.changes import Change
from jumar.porting.rewriting.registry import rule
from jumar.porting.rewriting.view import View
from jumar.porting.rules.tensorflow.estimator_plan import CANNED, ESTIMATOR, TPU_ESTIMATOR

_HANDED = Text(
    en="an estimator's class is handed on here, so where it gets its configuration cannot be read",
    zh="此处传递的是 Estimator 类，无法判断其运行配置在何处传入",
)
_HANDED_TODO = Text(
    en="see that whatever calls it passes config=npu_run_config_init(run_config=...)",
    zh="请确认调用处传入 config=npu_run_config_init(run_config=...)",
)
_TESTS = ("builtins.isinstance", "builtins.issubclass", "builtins.print")


@rule(
    "estimator-references",
    title=Text(
        en="Estimator classes that are handed on are pointed out",
        zh="指出被传递的 Estimator 类",
    ),
    source="npu_init.py of Ascend/tensorflow",
    references=(ESTIMATOR, TPU_ESTIMATOR, *CANNED),
)
def estimator_references(node: ast.Name | ast.Attribute, view: View) -> Iterator[Change]:
    """Tell of a class that is an argument, a return value or one of several."""
    parent = view.module.parent(node)
    if isinstance(parent, ast.keyword):
        parent = view.module.parent(parent)
    handed = isinstance(parent, ast.Call) and parent.func is not node
    if handed and isinstance(parent, ast.Call):
        handed = view.module.name_of(parent.func) not in _TESTS
    if handed or isinstance(parent, ast.Return | ast.IfExp | ast.Dict | ast.List):
        yield view.notice(node, reason=_HANDED, todo=_HANDED_TODO, confidence="likely")
