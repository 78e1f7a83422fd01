"""Horovod's collective operations become those of HCCL if there are several ranks."""

import ast

from jumar.porting.rewriting import Changes, Remark, Replacement, Text, View, rule
from jumar.porting.rewriting.editing import argument, is_open, replace
from jumar.porting.rules.tensorflow.horovod_names import SOURCE, called_member, horovod, member
from jumar.porting.rules.tensorflow.ranks import RANK_IMPORTS, rank_size, several_ranks

_REASON = Text(
    en="HCCL's operation replaces Horovod's; a single rank keeps the value itself, so that its "
    "graph has no HCCL operations",
    zh="改用 HCCL 算子；单 rank 时直接取原值，否则单 rank 的图中也会有 HCCL 算子",
)
_UNREAD = Remark(
    en="it is unclear how the values are reduced",
    zh="此处无法判断规约方式",
    todo_en='if RANK_SIZE is above 1, use npu_allreduce(value, reduction="mean"), or sum, max, '
    "min or prod",
    todo_zh='RANK_SIZE 大于 1 时写 npu_allreduce(value, reduction="mean")，或 sum、max、min、prod',
    severity="blocking",
)
_REDUCTIONS = {"Average": "mean", "Sum": "sum", "Min": "min", "Max": "max", "Product": "prod"}


@rule(
    "horovod-collectives",
    title=Text(en="Horovod's operations become HCCL's", zh="Horovod 的集合通信改为 HCCL"),
    source=SOURCE,
    calls=horovod("allreduce", "allgather", "broadcast"),
)
def horovod_collectives(call: ast.Call, view: View) -> Changes:
    """Replace the called function, and keep its first argument."""
    name = called_member(call, view)
    value = call.args[0] if call.args else argument(call, "tensor")
    if value is None or is_open(call):
        yield view.notice(call, _UNREAD)
        return
    if name == "allreduce":
        reduction = _reduction(call, view)
        if reduction is None:
            yield view.notice(call, _UNREAD)
            return
        import_name = "npu_allreduce"
        text = f"{view.npu(import_name)}(value, reduction={reduction})"
    elif name == "allgather":
        import_name = "hccl_ops"
        text = f"{view.npu(import_name)}.allgather(value, {rank_size(view)})"
    else:
        import_name = "hccl_ops"
        root = argument(call, "root_rank", 1)
        root_text = "0" if root is None else view.module.source(root)
        text = f"{view.npu(import_name)}.broadcast([value], {root_text})[0]"
    start, end = view.module.span(value)
    _, call_end = view.module.span(call)
    yield view.rewrite(
        call,
        replace(
            view.module, call.func, f"(lambda value: {text} if {several_ranks(view)} else value)"
        ),
        Replacement(start=view.module.span(call.func)[1], end=start, text="("),
        Replacement(start=end, end=call_end, text=")"),
        reason=_REASON,
        imports=(import_name, *RANK_IMPORTS),
    )


def _reduction(call: ast.Call, view: View) -> str | None:
    """The reduction of an `allreduce` as an expression."""
    op = argument(call, "op")
    if op is not None:
        reduction = _REDUCTIONS.get(member(view.module.name_of(op)) or "")
        return f'"{reduction}"' if reduction else None
    average = argument(call, "average", 1)
    if average is None or (isinstance(average, ast.Constant) and average.value in (None, True)):
        return '"mean"'
    if isinstance(average, ast.Constant):
        return '"sum"'
    return f'"mean" if {view.module.source(average)} else "sum"'
