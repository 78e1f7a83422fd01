"""With several devices, all ranks would save the same checkpoints."""

import ast
from collections.abc import Iterator

from jumar.porting.edits import Text
from jumar.porting.rewriting.changes import Change, Leave
from jumar.porting.rewriting.registry import rule
from jumar.porting.rewriting.view import View
from jumar.porting.rules.tensorflow.initial_broadcast import saves

_REASON = Text(
    en="every rank comes here: several processes write the same files",
    zh="每个 rank 都会执行到此处：多个进程写同一批文件",
)
_TODO = Text(
    en='let rank 0 save (if int(os.getenv("RANK_ID", "0")) == 0), or give each rank a folder of '
    "its own",
    zh='只由 rank 0 保存（if int(os.getenv("RANK_ID", "0")) == 0），或为每个 rank 使用单独目录',
)
_GUARDED = Text(en="only one rank comes here", zh="只有一个 rank 会执行到此处")


@rule(
    "rank-checkpoints",
    title=Text(en="Checkpoints that every rank writes", zh="每个 rank 都写 checkpoint"),
    source="TensorFlow 1.15 migration guide of CANN",
    nodes=(ast.Call,),
)
def rank_checkpoints(call: ast.Call, view: View) -> Iterator[Change]:
    """A finding, unless a test of the rank stands around it."""
    if not view.options.distributed or not saves(call, view):
        return
    for around in view.module.scopes.ancestors(call):
        if isinstance(around, ast.If):
            test = view.module.source(around.test).lower()
            if any(word in test for word in ("rank", "chief", "master", "hvd", "is_main")):
                yield Leave(node=call, reason=_GUARDED)
                return
    yield view.notice(call, reason=_REASON, todo=_TODO, severity="look")
