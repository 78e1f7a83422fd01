"""GPU options have no effect on the NPU."""

import ast

from jumar.porting.rewriting import Changes, Confidence, Remark, Text, View, rule
from jumar.porting.rewriting.editing import delete, keyword, remove_arguments
from jumar.porting.rules.tensorflow.concerned import uses_tensorflow

_FIELDS = frozenset(
    (
        "allow_growth",
        "allocator_type",
        "deferred_deletion_bytes",
        "experimental",
        "force_gpu_compatible",
        "per_process_gpu_memory_fraction",
        "polling_active_delay_usecs",
        "polling_inactive_delay_msecs",
        "visible_device_list",
    )
)
_CALLS = (
    "tensorflow.config.experimental.set_memory_growth",
    "tensorflow.config.experimental.set_virtual_device_configuration",
    "tensorflow.config.gpu.set_per_process_memory_growth",
    "tensorflow.config.gpu.set_per_process_memory_fraction",
)
_NO_EFFECT = Text(
    en="GPU options have no effect on the NPU; its memory is set by graph_memory_max_size and "
    "variable_memory_max_size",
    zh="GPU 选项在 NPU 上无效；NPU 内存由 graph_memory_max_size 与 variable_memory_max_size 设置",
)
_COUNT = Remark(
    en="this limits the GPUs that a session uses; it does not keep the session off the NPU",
    zh="该设置只限制会话使用的 GPU 数量，不会阻止会话使用 NPU",
    todo_en="remove it; to compute on the host, use npu_scope.without_npu_compile_scope() with "
    "mix_compile_mode, or the original script",
    todo_zh="删除该设置；主机侧计算请使用 npu_scope.without_npu_compile_scope() 与 "
    "mix_compile_mode，或使用原脚本",
)
_UNUSED = Text(en="these GPU options are no longer used", zh="这些 GPU 选项已无处使用")


@rule(
    "gpu-options",
    title=Text(en="GPU options are removed", zh="删除 GPU 选项"),
    source="TensorFlow 1.15 migration guide of CANN; config.proto of TensorFlow 1.15",
    nodes=(ast.Assign, ast.Expr, ast.Call),
)
def gpu_options(node: ast.Assign | ast.Expr | ast.Call, view: View) -> Changes:
    """Delete assignments to fields of GPUOptions, arguments with GPUOptions, and unused ones."""
    if isinstance(node, ast.Call):
        yield from _argument(node, view)
    elif isinstance(node, ast.Expr):
        if isinstance(node.value, ast.Call) and _sets_gpus(node.value, view):
            yield view.rewrite(node, delete(view.module, node), reason=_NO_EFFECT)
    elif len(node.targets) == 1:
        yield from _assignment(node, view)


def _assignment(node: ast.Assign, view: View) -> Changes:
    target = node.targets[0]
    if isinstance(target, ast.Attribute):
        confidence = _is_gpu_field(target, view)
        if confidence is not None:
            yield view.rewrite(
                node, delete(view.module, node), reason=_NO_EFFECT, confidence=confidence
            )
    elif isinstance(target, ast.Name) and isinstance(node.value, ast.Call):
        if view.module.name_of(node.value.func) != "tensorflow.GPUOptions":
            return
        scope, _ = view.module.scopes.lookup(target)
        if scope is not None and not scope.references.get(target.id):
            is_exported = scope is view.module.scopes.module
            yield view.rewrite(
                node,
                delete(view.module, node),
                reason=_UNUSED,
                confidence="likely" if is_exported else "certain",
            )


def _is_gpu_field(target: ast.Attribute, view: View) -> Confidence | None:
    """How certain it is that an attribute is one of a session's GPU options."""
    chain: list[str] = []
    current: ast.expr = target
    while isinstance(current, ast.Attribute):
        chain.append(current.attr)
        if view.kinds.of(current.value) == "GPUOptions" and chain[-1] in _FIELDS:
            return "certain"
        if current.attr == "gpu_options" and len(chain) > 1 and chain[-2] in _FIELDS:
            if view.kinds.of(current.value) == "ConfigProto":
                return "certain"
            return "likely" if uses_tensorflow(view) else None
        current = current.value
    return None


def _argument(call: ast.Call, view: View) -> Changes:
    if view.module.name_of(call.func) != "tensorflow.ConfigProto":
        return
    counts = keyword(call, "device_count")
    if counts and _names_gpus(counts.value, view):
        yield view.notice(counts.value, _COUNT)
    options = keyword(call, "gpu_options")
    if options:
        changes = remove_arguments(view.module, call, {options})
        yield view.rewrite(call, *changes, reason=_NO_EFFECT)


def _names_gpus(counts: ast.expr, view: View) -> bool:
    """Whether a dictionary of device counts, or a name for one, contains GPUs."""
    if isinstance(counts, ast.Name):
        values = [
            binding.value for binding in view.module.bindings(counts) if binding.value is not None
        ]
        return any(not isinstance(value, ast.Name) and _names_gpus(value, view) for value in values)
    if isinstance(counts, ast.IfExp):
        return _names_gpus(counts.body, view) or _names_gpus(counts.orelse, view)
    if isinstance(counts, ast.Call):
        return any(passed.arg == "GPU" for passed in counts.keywords)
    return isinstance(counts, ast.Dict) and any(
        isinstance(key, ast.Constant) and key.value == "GPU" for key in counts.keys
    )


def _sets_gpus(call: ast.Call, view: View) -> bool:
    """Whether a call is `config.gpu_options.CopyFrom(...)`, or sets TensorFlow's GPU memory."""
    if view.module.name_of(call.func) in _CALLS:
        return True
    func = call.func
    return (
        isinstance(func, ast.Attribute)
        and func.attr in ("CopyFrom", "MergeFrom")
        and isinstance(func.value, ast.Attribute)
        and func.value.attr == "gpu_options"
        and uses_tensorflow(view)
    )
