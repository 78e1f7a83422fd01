"""Constraints between options of NpuOptimizer, and the parameters of NPURunConfig."""

from jumar.porting.edits import Severity, Text
from jumar.porting.npu.option_table import NPU_OPTIONS, Combination, Condition
from jumar.porting.standin import standin_data

_ON = ("True", "1")


def _excludes(
    when: Condition, excluded: Condition, *, above: int | None = None, todo: Text
) -> Combination:
    return Combination(
        rule="lint-option-conflict",
        when=when,
        excludes=excluded,
        above=above,
        en=f"{when.key} and {excluded.key} are mutually exclusive: the session fails",
        zh=f"{when.key} 与 {excluded.key} 互斥，会话会报错",
        todo_en=todo.en,
        todo_zh=todo.zh,
    )


def _needs(
    when: Condition,
    *needed: Condition,
    todo: Text,
    severity: Severity = "blocking",
) -> Combination:
    names = " / ".join(dict.fromkeys(condition.key for condition in needed))
    is_blocking = severity == "blocking"
    return Combination(
        rule="lint-option-needs" if is_blocking else "lint-option-unused",
        when=when,
        needs=needed,
        severity=severity,
        en=f"{when.key} without {names}: the session fails"
        if is_blocking
        else f"{when.key} is only read together with {names}",
        zh=f"{when.key} 缺少 {names}，会话会报错"
        if is_blocking
        else f"只有同时设置 {names} 时才读取 {when.key}",
        todo_en=todo.en,
        todo_zh=todo.zh,
    )


_KEEP_ONE = Text(en="Keep only one of the two.", zh="只保留其中一个。")
_DUMP_PATH = Text(
    en="Set dump_path to an existing folder that is readable and writable.",
    zh="请设置 dump_path，其目录须已存在且可读写。",
)
_TOGETHER = Text(
    en="Set input_shape, dynamic_dims and dynamic_node_type together, or none of them.",
    zh="input_shape、dynamic_dims、dynamic_node_type 须同时设置或都不设置。",
)
_HARMLESS = ("dump_path", "dump_mode")
"""Options that scripts often keep although their switch is off; not worth a finding."""
_SWITCH = Text(en="Enable that switch, or remove this option.", zh="请打开对应开关，或删除该选项。")

COMBINATIONS = (
    _excludes(Condition(key="precision_mode"), Condition(key="precision_mode_v2"), todo=_KEEP_ONE),
    _excludes(
        Condition(key="enable_compress_weight"),
        Condition(key="compress_weight_conf"),
        todo=_KEEP_ONE,
    ),
    _excludes(
        Condition(key="mix_compile_mode", values=_ON),
        Condition(key="iterations_per_loop"),
        above=1,
        todo=Text(
            en="Set iterations_per_loop to 1, or mix_compile_mode to False.",
            zh="请将 iterations_per_loop 设为 1，或将 mix_compile_mode 设为 False。",
        ),
    ),
    _needs(
        Condition(key="modify_mixlist"),
        *(
            Condition(key=key, values=option.mixed)
            for key, option in NPU_OPTIONS.items()
            if option.mixed
        ),
        todo=Text(
            en="Set precision_mode to allow_mix_precision in the same block.",
            zh="请在同一个选项块中将 precision_mode 设为 allow_mix_precision。",
        ),
    ),
    _needs(Condition(key="enable_dump", values=_ON), Condition(key="dump_path"), todo=_DUMP_PATH),
    _needs(
        Condition(key="enable_dump_debug", values=_ON),
        Condition(key="dump_path"),
        todo=_DUMP_PATH,
    ),
    _needs(
        Condition(key="optypelist_for_implmode"),
        Condition(key="op_select_implmode"),
        todo=Text(en="Set op_select_implmode too.", zh="请同时设置 op_select_implmode。"),
    ),
    _needs(Condition(key="input_shape"), Condition(key="dynamic_dims"), todo=_TOGETHER),
    _needs(Condition(key="dynamic_dims"), Condition(key="dynamic_node_type"), todo=_TOGETHER),
    _needs(Condition(key="dynamic_node_type"), Condition(key="input_shape"), todo=_TOGETHER),
    *(
        _needs(Condition(key=key), Condition(key=switch), todo=_SWITCH, severity="look")
        for key, option in NPU_OPTIONS.items()
        for switch in option.read_with
        if key not in _HARMLESS
    ),
    Combination(
        rule="lint-option-needs",
        when=Condition(key="profiling_mode", values=_ON),
        needs=(Condition(key="profiling_options"),),
        severity="look",
        en="profiling_mode without profiling_options: old releases of the adapter fail, "
        "newer ones write to the working directory",
        zh="profiling_mode 未配 profiling_options：旧版适配器会报错退出，新版写入当前目录",
        todo_en="Set profiling_options, with an existing output folder.",
        todo_zh="请设置 profiling_options，其 output 目录须已存在。",
    ),
)
"""Constraints within one block of NpuOptimizer, or the arguments of one NPURunConfig."""

_CLASSES: dict[str, dict[str, object]] = {
    name: {parameter[0]: parameter[-1] for parameter in parameters}
    for name, parameters in standin_data("signatures")[
        "npu_bridge.estimator.npu.npu_config"
    ].items()
}

RUN_CONFIG_PARAMETERS = _CLASSES["NPURunConfig"]
"""The parameters of NPURunConfig with their defaults, branch master of December 2023."""

RUN_CONFIG_POSITIONAL = tuple(RUN_CONFIG_PARAMETERS)[:11]
"""The parameters that have the same position in all releases."""

RUN_CONFIG_MISSING = frozenset(
    {
        "device_fn",
        "protocol",
        "session_creation_timeout_secs",
        "experimental_max_worker_delay_secs",
        "experimental_distribute",
    }
)
"""Parameters of tf.estimator.RunConfig that NPURunConfig lacks."""

_OPTION_OF_PARAMETER = {"enable_profiling": "profiling_mode"}
PART_PARAMETERS = {
    part: {name: _OPTION_OF_PARAMETER.get(name, name) for name in _CLASSES[part]}
    for part in ("DumpConfig", "ProfilingConfig", "MemoryConfig", "DynamicInputConfig")
}
"""The parts of NPURunConfig: their parameters in order, and the option that each sets."""

PROFILING_KEYS: dict[str, tuple[str, ...]] = {
    "output": (),
    "storage_limit": (),
    "training_trace": ("on", "off"),
    "task_trace": ("on", "off"),
    "hccl": ("on", "off"),
    "aicpu": ("on", "off"),
    "l2": ("on", "off"),
    "fp_point": (),
    "bp_point": (),
    "aic_metrics": (
        "PipeUtilization",
        "ArithmeticUtilization",
        "Memory",
        "MemoryL0",
        "MemoryUB",
        "ResourceConflictRatio",
        "L2Cache",
        "MemoryAccess",
        "PipelineExecuteUtilization",
    ),
    "msproftx": ("on", "off"),
}
"""The keys of the JSON in profiling_options, with their allowed values; empty if all are."""

ALWAYS_WRITTEN = (
    "iterations_per_loop",
    "mix_compile_mode",
    "hcom_parallel",
    "graph_run_mode",
    "enable_dump",
    "enable_dump_debug",
)
"""Options that NPUEstimator always writes into its own block, overriding the session's values."""
