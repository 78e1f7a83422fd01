"""Hooks of an evaluation stay."""

import ast
from collections.abc import Iterator

from jumar.porting.edits import Text
from jumar.porting.rewriting.changes import Change, Leave
from jumar.porting.rewriting.registry import rule
from jumar.porting.rewriting.view import View

_EVAL = Text(
    en="evaluation restores a checkpoint: a broadcast there would wait for devices that do not "
    "evaluate",
    zh="评估从 checkpoint 恢复变量：此处广播会等待未参与评估的设备",
)


@rule(
    "evaluation-hooks",
    title=Text(en="Hooks of an evaluation stay", zh="评估 hook 保持不变"),
    source="npu_hook.py of Ascend/tensorflow",
    calls=("tensorflow.estimator.EvalSpec",),
)
def evaluation_hooks(call: ast.Call, view: View) -> Iterator[Change]:
    """Count what is left on purpose."""
    if view.options.distributed:
        yield Leave(node=call, reason=_EVAL)
