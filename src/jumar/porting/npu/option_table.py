"""The options of NpuOptimizer and the parameters of NPURunConfig: names, defaults, what they take.

`since` is a release in which the option is known to be there already; releases before it were not
looked at. It is empty where that is not known.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, get_args

from jumar.porting.edits import Language, Severity, Text
from jumar.porting.options import PrecisionMode

Field = Literal["b", "i", "s"]
Status = Literal["current", "deprecated", "not read"]


@dataclass(frozen=True, kw_only=True)
class NpuOption:
    """One key of `parameter_map`.

    Args:
        key: The key.
        field: In which field of the value the adapter looks: `b`, `i` or `s`.
        default: What holds when it is not set; None for nothing.
        allowed: The only values, as text; empty for any.
        minimum: Of a number.
        maximum: Of a number.
        pattern: Regular expression that a text matches wholly.
        example: A text that the pattern takes.
        status: Whether the adapter of today reads it.
        since: A release that reads it.
        note: What to do about it.
    """

    key: str
    field: Field
    default: bool | int | str | None = None
    allowed: tuple[str, ...] = ()
    minimum: int | None = None
    maximum: int | None = None
    pattern: str = ""
    example: str = ""
    status: Status = "current"
    since: str = ""
    note: Text | None = None

    def takes(self, language: Language) -> str:
        """What values there are, in words."""
        if self.allowed:
            return ", ".join(self.allowed)
        if self.pattern:
            return f"如 {self.example}" if language == "zh" else f"text such as {self.example}"
        if self.minimum is not None and self.maximum is not None:
            return f"{self.minimum}..{self.maximum}"
        if self.minimum is not None:
            return f">= {self.minimum}"
        return {"b": "bool", "i": "int", "s": "bytes"}[self.field]


@dataclass(frozen=True, kw_only=True)
class Condition:
    """That a key is set, or set to one of some values; values as text."""

    key: str
    values: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Combination:
    """What one option forbids or needs.

    Args:
        rule: Id of the finding.
        when: On what it depends.
        needs: One of these has to hold.
        excludes: This must not hold.
        above: With `excludes`: only numbers above it are forbidden.
        severity: What happens otherwise.
        reason: Why.
        todo: What to do.
    """

    rule: str
    when: Condition
    needs: tuple[Condition, ...] = ()
    excludes: Condition | None = None
    above: int | None = None
    severity: Severity = "blocking"
    reason: Text
    todo: Text


_FIRST = "r1.1.1"
_EARLY = "r1.5.0"
_TUNE = Text(
    en="Use aoe_mode and work_path: the tuning engine AOE replaced it.",
    zh="请改用 aoe_mode 与 work_path：已由 AOE 调优取代。",
)
_DYNAMIC = Text(
    en="Give fixed shapes where that is possible; every new shape is compiled again.",
    zh="请尽量使用固定 shape；每个新 shape 都会重新编译。",
)
_IMPLMODE = Text(
    en="Use op_precision_mode, a file that names the mode of each operator.",
    zh="请改用 op_precision_mode（按算子指定精度模式的 .ini 文件）。",
)
_NO_EFFECT = Text(en="It has no effect; leave it out.", zh="没有任何效果，请删除。")
_LEAVE_OUT = Text(
    en="Leave it out; a later release may drop it.", zh="请删除；后续版本可能不再支持。"
)
_SHAPES = r"\w+:-?\d+(,-?\d+)*(;\w+:-?\d+(,-?\d+)*)*"
_DIMS = r"\d+(,\d+)*(;\d+(,\d+)*)*"

MIXED_MODES = ("allow_mix_precision", "allow_mix_precision_fp16", "allow_mix_precision_bf16")
MIXED_MODES_V2 = ("mixed_float16", "mixed_bfloat16")

_PRECISION = (
    NpuOption(key="precision_mode", field="s", allowed=get_args(PrecisionMode), since=_FIRST),
    NpuOption(
        key="precision_mode_v2",
        field="s",
        allowed=("fp16", "origin", "cube_fp16in_fp32out", *MIXED_MODES_V2),
    ),
    NpuOption(key="modify_mixlist", field="s"),
    NpuOption(key="op_precision_mode", field="s"),
    NpuOption(
        key="op_select_implmode",
        field="s",
        allowed=(
            "high_precision",
            "high_performance",
            "high_precision_for_all",
            "high_performance_for_all",
        ),
        status="deprecated",
        since=_EARLY,
        note=_IMPLMODE,
    ),
    NpuOption(key="optypelist_for_implmode", field="s", since=_EARLY),
    NpuOption(key="customize_dtypes", field="s"),
    NpuOption(key="deterministic", field="i", default=0),
)
_RUN = (
    NpuOption(key="use_off_line", field="b", default=True, since=_FIRST),
    NpuOption(
        key="enable_data_pre_proc",
        field="b",
        default=False,
        status="deprecated",
        since=_FIRST,
        note=_LEAVE_OUT,
    ),
    NpuOption(key="mix_compile_mode", field="b", default=False, since=_FIRST),
    NpuOption(key="iterations_per_loop", field="i", default=1, minimum=1, since=_FIRST),
    NpuOption(key="lower_functional_ops", field="b", default=False, since=_EARLY),
    NpuOption(key="graph_run_mode", field="i", default=1, minimum=-1, maximum=1, since=_EARLY),
    NpuOption(key="jit_compile", field="s", default="auto", allowed=("true", "false", "auto")),
    NpuOption(
        key="dynamic_input",
        field="b",
        default=False,
        status="deprecated",
        since=_EARLY,
        note=_DYNAMIC,
    ),
    NpuOption(
        key="dynamic_graph_execute_mode",
        field="s",
        default="dynamic_execute",
        allowed=("dynamic_execute", "lazy_recompile"),
        status="deprecated",
        since=_EARLY,
        note=_DYNAMIC,
    ),
    NpuOption(
        key="dynamic_inputs_shape_range",
        field="s",
        status="deprecated",
        since=_EARLY,
        note=_DYNAMIC,
    ),
    NpuOption(
        key="input_shape",
        field="s",
        pattern=_SHAPES,
        example="data:1,1,40,-1;label:1,-1",
        since=_EARLY,
    ),
    NpuOption(key="dynamic_dims", field="s", pattern=_DIMS, example="20,20;40,40", since=_EARLY),
    NpuOption(key="dynamic_node_type", field="i", minimum=0, maximum=1, since=_EARLY),
    NpuOption(key="in_out_pair_flag", field="b", default=True),
    NpuOption(key="in_out_pair", field="s"),
    NpuOption(key="const_input", field="s"),
    NpuOption(key="frozen_variable", field="b", default=False),
    NpuOption(key="variable_placement", field="s", default="Device", allowed=("Device", "Host")),
    NpuOption(key="external_weight", field="b", default=False),
    NpuOption(key="graph_exec_timeout", field="i", default=600_000),
    NpuOption(key="stream_sync_timeout", field="i", default=-1),
    NpuOption(key="event_sync_timeout", field="i", default=-1),
    NpuOption(key="op_wait_timeout", field="i"),
    NpuOption(key="op_execute_timeout", field="i"),
    NpuOption(key="topo_sorting_mode", field="i"),
    NpuOption(key="insert_op_file", field="s"),
)
_MEMORY = (
    NpuOption(key="graph_memory_max_size", field="s", since=_FIRST),
    NpuOption(key="variable_memory_max_size", field="s", since=_FIRST),
    NpuOption(key="atomic_clean_policy", field="i", default=0),
    NpuOption(key="static_memory_policy", field="i", default=0),
    NpuOption(key="memory_optimization_policy", field="s"),
    NpuOption(key="graph_slice", field="s", allowed=("auto", "manual")),
    NpuOption(
        key="variable_format_optimize",
        field="b",
        status="deprecated",
        since=_EARLY,
        note=_LEAVE_OUT,
    ),
)
_CLUSTER = (
    NpuOption(key="session_device_id", field="i", minimum=0, since=_EARLY),
    NpuOption(key="local_rank_id", field="i", minimum=0, maximum=7, since=_EARLY),
    NpuOption(
        key="local_device_list",
        field="s",
        pattern=r"\d+(,\d+)*",
        example="1,2,3",
        since=_EARLY,
    ),
    NpuOption(key="hcom_parallel", field="b", default=True, since=_FIRST),
    NpuOption(key="hcom_multi_mode", field="b", default=False, since=_EARLY),
    NpuOption(key="hccl_timeout", field="i"),
    NpuOption(key="HCCL_algorithm", field="s"),
    NpuOption(key="is_tailing_optimization", field="b", default=False, since=_EARLY),
    NpuOption(key="job", field="s", default="localhost", since=_EARLY),
    NpuOption(key="task_index", field="i", default=0, minimum=0, since=_EARLY),
    NpuOption(key="device_type", field="s", default="default_device_type"),
    NpuOption(key="soc_config", field="s"),
    NpuOption(key="es_cluster_config", field="s"),
    NpuOption(key="stream_max_parallel_num", field="s", since=_EARLY),
    NpuOption(key="ac_parallel_enable", field="s"),
)
_DUMP = (
    NpuOption(key="enable_dump", field="b", default=False, since=_FIRST),
    NpuOption(key="enable_dump_debug", field="b", default=False, since=_FIRST),
    NpuOption(key="dump_path", field="s", since=_FIRST),
    NpuOption(
        key="dump_step",
        field="s",
        pattern=r"\d+(-\d+)?(\|\d+(-\d+)?)*",
        example="0|5|10-20",
        since=_FIRST,
    ),
    NpuOption(
        key="dump_mode",
        field="s",
        default="output",
        allowed=("input", "output", "all"),
        since=_FIRST,
    ),
    NpuOption(
        key="dump_debug_mode",
        field="s",
        default="all",
        allowed=("aicore_overflow", "atomic_overflow", "all"),
        since=_FIRST,
    ),
    NpuOption(key="dump_data", field="s", default="tensor", allowed=("tensor", "stats")),
    NpuOption(key="dump_layer", field="s"),
    NpuOption(
        key="enable_exception_dump", field="i", default=2, minimum=0, maximum=2, since=_EARLY
    ),
    NpuOption(key="op_debug_level", field="i", status="deprecated", since=_EARLY, note=_LEAVE_OUT),
    NpuOption(key="op_debug_config", field="s"),
    NpuOption(key="debug_dir", field="s", since=_EARLY),
)
_PROFILING = (
    NpuOption(key="profiling_mode", field="b", default=False, since=_FIRST),
    NpuOption(
        key="profiling_options",
        field="s",
        default=(
            '{"output":"./","training_trace":"on","task_trace":"on","hccl":"on","aicpu":"on",'
            '"aic_metrics":"PipeUtilization","msproftx":"off"}'
        ),
        since=_FIRST,
    ),
)
_COMPILING = (
    NpuOption(key="auto_tune_mode", field="s", status="deprecated", since=_EARLY, note=_TUNE),
    NpuOption(key="aoe_mode", field="s", allowed=("1", "2", "4", "mdat")),
    NpuOption(key="work_path", field="s", default="./", since=_EARLY),
    NpuOption(key="distribute_config", field="s"),
    NpuOption(key="aoe_config_file", field="s"),
    NpuOption(key="enable_scope_fusion_passes", field="s", since=_EARLY),
    NpuOption(key="fusion_switch_file", field="s", since=_EARLY),
    NpuOption(
        key="buffer_optimize",
        field="s",
        default="l2_optimize",
        allowed=("l2_optimize", "off_optimize"),
        since=_EARLY,
    ),
    NpuOption(key="enable_small_channel", field="i", default=0, since=_EARLY),
    NpuOption(key="enable_compress_weight", field="b", default=False, since=_EARLY),
    NpuOption(key="compress_weight_conf", field="s", since=_EARLY),
    NpuOption(key="op_compiler_cache_mode", field="s", since=_EARLY),
    NpuOption(key="op_compiler_cache_dir", field="s", since=_EARLY),
    NpuOption(key="graph_compiler_cache_dir", field="s"),
)
_EXPERIMENTAL = (
    NpuOption(key="experimental_logical_device_cluster_deploy_mode", field="s", default="LB"),
    NpuOption(key="experimental_logical_device_id", field="s"),
    NpuOption(key="experimental_accelerate_train_mode", field="s"),
    NpuOption(key="experimental_model_deploy_mode", field="s"),
    NpuOption(key="experimental_model_deploy_devicelist", field="s"),
    NpuOption(key="resource_config_path", field="s"),
    NpuOption(key="graph_parallel_option_path", field="s"),
    NpuOption(key="enable_graph_parallel", field="b"),
)
_NOT_READ = (
    NpuOption(key="min_group_size", field="i", status="not read", note=_NO_EFFECT),
    NpuOption(key="master_slave_mode", field="b", status="not read", note=_NO_EFFECT),
    NpuOption(key="enable_reduce_precision", field="b", status="not read", note=_NO_EFFECT),
    NpuOption(
        key="enable_auto_mix_precision",
        field="b",
        status="not read",
        note=Text(
            en='Mixed precision is precision_mode: parameter_map["precision_mode"].s = '
            'b"allow_mix_precision".',
            zh='混合精度由 precision_mode 开启：parameter_map["precision_mode"].s = '
            'b"allow_mix_precision"。',
        ),
    ),
    NpuOption(key="mstune_mode", field="s", status="not read", note=_TUNE),
)


def _by_key(*groups: Iterable[NpuOption]) -> dict[str, NpuOption]:
    return {option.key: option for group in groups for option in group}


ADAPTER_OPTIONS = _by_key(
    _PRECISION,
    _RUN,
    _MEMORY,
    _CLUSTER,
    _DUMP,
    _PROFILING,
    _COMPILING,
    _EXPERIMENTAL,
)
"""What the adapter reads."""

NPU_OPTIONS = ADAPTER_OPTIONS | _by_key(_NOT_READ)
"""What the adapter reads, and what scripts set although it does not."""
