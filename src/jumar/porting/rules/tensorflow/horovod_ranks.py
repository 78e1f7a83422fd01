"""Replace Horovod's ranks with the environment's; remove its init and GPU pinning."""

import ast

from jumar.porting.rewriting import Changes, Remark, Text, View, rule
from jumar.porting.rewriting.editing import delete, remove_arguments, replace
from jumar.porting.rules.tensorflow.horovod_names import SOURCE, called_member, horovod
from jumar.porting.rules.tensorflow.ranks import RANK_IMPORTS, local_rank_id, rank_id, rank_size

_RANKS = Text(
    en="ranks come from variables that the launch script sets; without them, there is one rank",
    zh="rank 取自启动脚本设置的环境变量；未设置时即单 rank",
)
_LOCAL_SIZE = Remark(
    en="no environment variable contains the number of ranks per server; on a single server, it is "
    "the total",
    zh="环境变量中没有本机 rank 数；单机时等于总数",
    todo_en="with several servers, replace RANK_SIZE by the number of devices per server",
    todo_zh="多机时把 RANK_SIZE 换成每台服务器的设备数",
    confidence="likely",
)
_INIT = Text(
    en="HCCL is initialised by the first session with NpuOptimizer, and closed with it",
    zh="HCCL 由首个带 NpuOptimizer 的会话打开，并随会话关闭",
)
_PIN = Text(
    en="the environment variable DEVICE_ID selects the device of a process: no pinning is needed",
    zh="进程所用设备由环境变量 DEVICE_ID 决定，无需再绑定",
)


@rule(
    "horovod-ranks",
    title=Text(en="Horovod's ranks come from the environment", zh="Horovod 的 rank 取自环境变量"),
    source=SOURCE,
    calls=horovod("init", "shutdown", "rank", "size", "local_rank", "local_size"),
)
def horovod_ranks(call: ast.Call, view: View) -> Changes:
    """Replace a rank by its expression, or remove a statement that is not needed."""
    name = called_member(call, view)
    statement = view.module.statement(call)
    if name in ("init", "shutdown"):
        if isinstance(statement, ast.Expr) and statement.value is call:
            yield view.rewrite(statement, delete(view.module, statement), reason=_INIT)
        else:
            yield view.rewrite(call, replace(view.module, call, "None"), reason=_INIT)
        return
    if name in ("local_rank", "rank") and _pins(statement, view):
        yield view.rewrite(statement, delete(view.module, statement), reason=_PIN)
        return
    pinning = _pinning_argument(call, view)
    if pinning is not None:
        outer, passed = pinning
        yield view.rewrite(outer, *remove_arguments(view.module, outer, {passed}), reason=_PIN)
        return
    if name == "local_size":
        yield view.notice(call, _LOCAL_SIZE)
    text = {"rank": rank_id, "local_rank": local_rank_id}.get(name or "", rank_size)(view)
    yield view.rewrite(call, replace(view.module, call, text), reason=_RANKS, imports=RANK_IMPORTS)


def _pins(statement: ast.stmt, view: View) -> bool:
    """Whether a statement selects the GPU of a process."""
    if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
        target = statement.targets[0]
        if isinstance(target, ast.Attribute):
            return target.attr == "visible_device_list"
        if isinstance(target, ast.Subscript):
            return (
                isinstance(target.slice, ast.Constant)
                and target.slice.value == "CUDA_VISIBLE_DEVICES"
            )
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        name = view.module.name_of(statement.value.func) or ""
        return name.startswith("tensorflow.config.") and name.endswith("set_visible_devices")
    return False


def _pinning_argument(call: ast.Call, view: View) -> tuple[ast.Call, ast.keyword] | None:
    for enclosing in view.module.scopes.ancestors(call):
        if isinstance(enclosing, ast.stmt):
            return None
        if isinstance(enclosing, ast.keyword) and enclosing.arg == "visible_device_list":
            outer = view.module.parent(enclosing)
            return (outer, enclosing) if isinstance(outer, ast.Call) else None
    return None
