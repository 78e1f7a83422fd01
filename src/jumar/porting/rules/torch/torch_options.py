"""Options of a port that become advice for a PyTorch training script."""

import ast
from collections.abc import Iterator

from jumar.porting.options import MIXED_PRECISION_MODES, LossScale, PortOptions
from jumar.porting.rewriting import Changes, Leave, Remark, Text, View, rule
from jumar.porting.rewriting.editing import argument, literal
from jumar.porting.script.expressions import last_name, method_name
from jumar.porting.torch.scripts import uses_torch

_MIXED = Remark(
    en="{mode}: torch_npu has no precision mode; mixed precision is enabled with autocast",
    zh="{mode}：torch_npu 通过 autocast 实现混合精度，没有 precision_mode 可设",
    todo_en="compute model and loss under `with torch.autocast('npu', dtype=torch.{dtype}):`",
    todo_zh="在 `with torch.autocast('npu', dtype=torch.{dtype}):` 中计算模型与损失",
    severity="speed",
)
_MIXED_ALREADY = Text(
    en="the script already uses autocast with this dtype", zh="脚本已按该数据类型使用 autocast"
)
_OWN_DTYPE = Text(
    en="the script's autocast takes its dtype from {found}",
    zh="脚本中 autocast 的数据类型取自 {found}",
)
_SCALED_ALREADY = Text(
    en="the script's GradScaler begins with this scale; how it changes is up to its own settings",
    zh="脚本中 GradScaler 的初始值已是该值；其变化由自身设置决定",
)
_OTHER_DTYPE = Remark(
    en="{mode}: autocast computes in {found} here",
    zh="{mode}：此处 autocast 使用 {found}",
    todo_en="for the mode of the option, pass dtype=torch.{dtype}",
    todo_zh="若要采用该选项的模式，请传入 dtype=torch.{dtype}",
    severity="accuracy",
)
_KEEP = Remark(
    en="{mode}: by default, torch_npu keeps the script's dtypes, except for HF32 in convolutions",
    zh="{mode}：torch_npu 默认保持脚本中的数据类型，但卷积默认使用 HF32",
    todo_en="set torch_npu.npu.conv.allow_hf32 = False and do not use autocast",
    todo_zh="设置 torch_npu.npu.conv.allow_hf32 = False，且不使用 autocast",
    severity="accuracy",
)
_HALF = Remark(
    en="{mode}: in PyTorch, this means casting the model",
    zh="{mode}：在 PyTorch 中需转换模型的数据类型",
    todo_en="call model.half() and cast the inputs; keep float32 weights in the optimizer when "
    "training",
    todo_zh="调用 model.half() 并转换输入；训练时在优化器中保留 float32 权重",
    severity="speed",
)
_MIXLIST = Remark(
    en="eager PyTorch has no op list: autocast's lists are fixed",
    zh="PyTorch eager 模式没有 modify_mixlist：autocast 的算子名单是固定的",
    todo_en="disable it for single operators with `with torch.autocast('npu', enabled=False):`, "
    "and cast their inputs",
    todo_zh="对个别算子使用 `with torch.autocast('npu', enabled=False):` 并手工转换",
)
_PROFILE = Remark(
    en="the script itself has to start the profiler",
    zh="性能采集在脚本中启动",
    todo_en="wrap some steps in `with torch_npu.profiler.profile(on_trace_ready="
    "torch_npu.profiler.tensorboard_trace_handler('prof')) as prof:` and call prof.step() in each",
    todo_zh="用 `with torch_npu.profiler.profile(on_trace_ready="
    "torch_npu.profiler.tensorboard_trace_handler('prof')) as prof:` 包住若干步，"
    "每步调用 prof.step()",
)
_DUMP = Remark(
    en="overflows are dumped with msprobe",
    zh="溢出数据由 msprobe 采集",
    todo_en="use msprobe's PrecisionDebugger with the task overflow_check",
    todo_zh="使用 msprobe 的 PrecisionDebugger，task 设为 overflow_check",
)
_TO_SCALE = Remark(
    en="{kind}: the loss is scaled by torch.amp.GradScaler",
    zh="{kind}：损失缩放由 torch.amp.GradScaler 实现",
    todo_en="create scaler = torch.amp.GradScaler(device='npu', {settings}), and call "
    "scaler.scale(loss).backward(), scaler.step(optimizer), scaler.update()",
    todo_zh="创建 scaler = torch.amp.GradScaler(device='npu', {settings})，并调用 "
    "scaler.scale(loss).backward()、scaler.step(optimizer)、scaler.update()",
    severity="accuracy",
)
_SCALED = Remark(
    en="{kind}: a GradScaler already scales the loss, and its own settings decide",
    zh="{kind}：损失已由 GradScaler 缩放，以其自身设置为准",
    todo_en="for the scale of the option, create the GradScaler with {settings}",
    todo_zh="若要采用该选项的值，请以 {settings} 创建 GradScaler",
    severity="accuracy",
)
_AMP_MODULES = ("torch.amp", "torch.cuda.amp", "torch.npu.amp", "torch_npu.npu.amp")
_AUTOCASTS = frozenset(f"{module}.autocast" for module in _AMP_MODULES)
_SCALERS = frozenset(f"{module}.GradScaler" for module in _AMP_MODULES)
_DEVICES = Remark(
    en="the script initialises no process group, so it trains on one NPU",
    zh="脚本未初始化进程组，只会在单张 NPU 上训练",
    todo_en="call torch.distributed.init_process_group('hccl') and "
    "torch.npu.set_device(LOCAL_RANK), wrap the model in DistributedDataParallel, and start the "
    "script with torchrun --nproc_per_node {count}",
    todo_zh="调用 torch.distributed.init_process_group('hccl') 与 "
    "torch.npu.set_device(LOCAL_RANK)，使用 DistributedDataParallel，并用 torchrun "
    "--nproc_per_node {count} 启动",
)


@rule(
    "torch-options",
    title=Text(en="The port's options in PyTorch", zh="移植选项在 PyTorch 中的含义"),
    source="torch_npu (npu_config.py, amp, profiler) of Ascend/pytorch; msprobe",
    language="torch",
)
def torch_options(_tree: ast.Module, view: View) -> Changes:
    """Report the advice once per script, at the first backward pass or at what it is about."""
    if view.options == PortOptions(source="torch") or not uses_torch(view.module):
        return
    backward = next((call for call in view.module.calls if method_name(call) == "backward"), None)
    autocasts = [call for call in _calls(_AUTOCASTS, view) if _is_for_device(call, view)]
    if autocasts and _mixed_dtype(view.options.precision):
        yield from _of_autocasts(autocasts, view)
    elif backward is not None and view.options.precision is not None:
        yield view.notice(backward, _of_precision(view.options.precision))
    if view.options.loss_scale is not None:
        yield from _of_scale(view.options.loss_scale, backward, view)
    if backward is not None:
        for remark in _advice(view):
            yield view.notice(backward, remark)


def _advice(view: View) -> Iterator[Remark]:
    options = view.options
    if options.mixlist:
        yield _MIXLIST
    if options.profiling and "profiler" not in view.module.text:
        yield _PROFILE
    if options.overflow_dump:
        yield _DUMP
    if options.distributed and "init_process_group" not in view.module.text:
        yield _DEVICES.filled(count=options.devices)


def _calls(names: frozenset[str], view: View) -> list[ast.Call]:
    return [call for call in view.module.calls if view.kinds.called(call) in names]


def _mixed_dtype(mode: str | None) -> str:
    """The dtype of a mixed precision mode; empty for other modes."""
    if mode and mode in (*MIXED_PRECISION_MODES, "allow_fp32_to_fp16", "allow_fp32_to_bf16"):
        return "bfloat16" if mode.endswith("bf16") else "float16"
    return ""


def _of_precision(mode: str) -> Remark:
    dtype = _mixed_dtype(mode)
    if dtype:
        return _MIXED.filled(mode=mode, dtype=dtype)
    if mode == "force_fp16":
        return _HALF.filled(mode=mode)
    return _KEEP.filled(mode=mode)


def _is_for_device(autocast: ast.Call, view: View) -> bool:
    """Whether an autocast computes in low precision on the device: not off, not for the CPU."""
    is_generic = view.kinds.called(autocast) == "torch.amp.autocast"
    device = argument(autocast, "device_type", 0) if is_generic else None
    enabled = argument(autocast, "enabled", 2 if is_generic else 0)
    return literal(device) != "cpu" and literal(enabled) is not False


def _of_autocasts(autocasts: list[ast.Call], view: View) -> Changes:
    """Report those that compute in another dtype than the option asks for."""
    mode = view.options.precision or ""
    dtype = _mixed_dtype(mode)
    for call in autocasts:
        passed = argument(call, "dtype", 1)
        found = last_name(passed) if passed is not None else "float16"
        if found not in ("float16", "half", "bfloat16"):
            assert passed is not None
            yield Leave(node=call, reason=_OWN_DTYPE.filled(found=view.module.source(passed)))
        elif found.replace("half", "float16") != dtype:
            yield view.notice(call, _OTHER_DTYPE.filled(mode=mode, found=found, dtype=dtype))
        else:
            yield Leave(node=call, reason=_MIXED_ALREADY)


def _of_scale(scale: LossScale, backward: ast.Call | None, view: View) -> Changes:
    """Report at a GradScaler that its settings decide, or at the first backward to create one."""
    interval = scale.incr_every_n_steps if scale.kind == "exponential" else 2**31 - 1
    settings = f"init_scale={scale.init_loss_scale:g}, growth_interval={interval}"
    if scale.kind == "exponential":
        settings += f", backoff_factor={scale.decr_ratio:g}"
    scalers = _calls(_SCALERS, view)
    if scalers:
        position = int(view.kinds.called(scalers[0]) == "torch.amp.GradScaler")
        if literal(argument(scalers[0], "init_scale", position)) == scale.init_loss_scale:
            yield Leave(node=scalers[0], reason=_SCALED_ALREADY)
            return
        node, remark = scalers[0], _SCALED
    elif backward is None:
        return
    elif "GradScaler" in view.module.text or _is_scaled(backward):
        node, remark = backward, _SCALED
    else:
        node, remark = backward, _TO_SCALE
    yield view.notice(node, remark.filled(kind=scale.kind, settings=settings))


def _is_scaled(backward: ast.Call) -> bool:
    """Whether a backward pass is that of a scaled loss: `scaler.scale(loss).backward()`."""
    return isinstance(backward.func, ast.Attribute) and method_name(backward.func.value) == "scale"
