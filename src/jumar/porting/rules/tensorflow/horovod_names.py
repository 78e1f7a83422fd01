"""The names in Horovod's three modules."""

import ast

from jumar.porting.rewriting import View

ROOTS = ("horovod.tensorflow.keras.", "horovod.tensorflow.", "horovod.keras.")
SOURCE = (
    "npu_optimizer.py, npu_hook.py and hccl_ops.py of Ascend/tensorflow; API support list of "
    "convert_tf2npu, December 2023"
)


def horovod(*names: str) -> tuple[str, ...]:
    """The qualified names of Horovod functions in all of its modules."""
    return tuple(f"{root}{name}" for root in ROOTS for name in names)


def member(name: str | None) -> str | None:
    """A qualified name without Horovod's module, such as `callbacks.MetricAverageCallback`."""
    for root in ROOTS:
        if name is not None and name.startswith(root):
            return name[len(root) :]
    return None


def called_member(call: ast.Call, view: View) -> str | None:
    """The Horovod function that is called."""
    return member(view.module.name_of(call.func))
