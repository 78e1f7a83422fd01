"""Profilers and debuggers of TensorFlow see the host only."""

import ast
from collections.abc import Iterator

from jumar.porting.edits import Text
from jumar.porting.rewriting.changes import Change
from jumar.porting.rewriting.registry import rule
from jumar.porting.rewriting.view import View

_PROFILERS = (
    "tensorflow.train.ProfilerHook",
    "tensorflow.estimator.ProfilerHook",
    "tensorflow.python.client.timeline.Timeline",
    "tensorflow.profiler.Profiler",
    "tensorflow.profiler.profile",
    "tensorflow.contrib.tfprof.ProfileContext",
    "tensorflow.profiler.ProfileContext",
)
_TRACE = "tensorflow.RunOptions"
_DEBUGGERS = "tensorflow.python.debug."
_PROFILER = Text(
    en="TensorFlow's profiler sees one operation where the NPU runs the whole graph",
    zh="TensorFlow 的 profiler 只能看到 NPU 整图执行的一个算子",
)
_PROFILER_TODO = Text(
    en="port it with --profiling, or set profiling_mode and profiling_options",
    zh="使用 --profiling 重新移植，或设置 profiling_mode 与 profiling_options",
)
_ASKED = Text(
    en="--profiling asks for the NPU's own profile; this one still shows the host",
    zh="--profiling 已开启 NPU 自身的 profiling；此处仅能反映主机侧",
)
_ASKED_TODO = Text(
    en="remove it, if the host's time is of no interest", zh="若不关心主机侧耗时可删除"
)
_TRACE_LEVEL = Text(
    en="a full trace slows every step and tells of the host only",
    zh="FULL_TRACE 会拖慢每一步，且只反映主机侧",
)
_DEBUGGER = Text(
    en="TensorFlow's debugger cannot look into a graph that runs as a whole on the device",
    zh="TensorFlow 调试器无法查看在设备上整图执行的计算图",
)
_DEBUGGER_TODO = Text(
    en="remove the wrapper; values of operators come from enable_dump, dump_path and dump_step, or "
    "DumpConfig with NPUEstimator",
    zh="去掉该封装；算子数值通过 enable_dump、dump_path、dump_step 获取，"
    "使用 NPUEstimator 时用 DumpConfig",
)


@rule(
    "profilers",
    title=Text(
        en="Profilers and debuggers of TensorFlow are pointed out",
        zh="指出 TensorFlow 的 profiler 与调试器",
    ),
    source="TensorFlow 1.15 migration guide of CANN",
    nodes=(ast.Call,),
)
def profilers(call: ast.Call, view: View) -> Iterator[Change]:
    """Tell of each, with what the NPU has instead."""
    name = view.module.name_of(call.func) or ""
    if name in _PROFILERS:
        asked = view.options.profiling
        yield view.notice(
            call,
            reason=_ASKED if asked else _PROFILER,
            todo=_ASKED_TODO if asked else _PROFILER_TODO,
        )
    elif name == _TRACE and "FULL_TRACE" in view.module.source(call):
        yield view.notice(call, reason=_TRACE_LEVEL, todo=_PROFILER_TODO, severity="speed")
    elif name.startswith(_DEBUGGERS) and name.rpartition(".")[2][:1].isupper():
        yield view.notice(call, reason=_DEBUGGER, todo=_DEBUGGER_TODO, severity="blocking")
