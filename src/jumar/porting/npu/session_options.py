"""The options of a port as code, for a script's session configuration or NPURunConfig.

Both set the same options. NPUEstimator appends its own block to that of the session; its values
win, and it requires the precision mode in the same block as the op list. So scripts with an
Estimator set their options as arguments of NPURunConfig, all others in their sessions.

The expressions only use functions defined by the code of this module, which import what they need,
so that they do not depend on what a script imports or shadows.
"""

from jumar.launching.ported import OVERFLOW_FOLDER, PROFILING_FOLDER, TUNING_FOLDER, literal
from jumar.porting.options import PortOptions, mixlist_name

FOLDER_FUNCTION = "npu_output_folder"
BESIDE_FUNCTION = "npu_file_beside"
PROFILING_FUNCTION = "npu_profiling_options"

_FUNCTIONS = {
    FOLDER_FUNCTION: (
        "def npu_output_folder(name):",
        '>"""Create a folder for output of the NPU; without it, the session would fail."""',
        ">import os",
        ">",
        ">path = os.path.abspath(name)",
        ">os.makedirs(path, exist_ok=True)",
        ">return path",
    ),
    BESIDE_FUNCTION: (
        "def npu_file_beside(name):",
        '>"""Return the path of a file next to this script."""',
        ">import os",
        ">",
        ">return os.path.join(os.path.dirname(os.path.abspath(__file__)), name)",
    ),
    PROFILING_FUNCTION: (
        "def npu_profiling_options():",
        '>"""Return the settings of the profiler, and create its output folder."""',
        ">import json",
        ">import os",
        ">",
        f'>path = os.path.abspath("{PROFILING_FOLDER}")',
        ">os.makedirs(path, exist_ok=True)",
        ">return json.dumps({",
        '>>"output": path,',
        '>>"training_trace": "on",',
        '>>"task_trace": "on",',
        '>>"hccl": "on",',
        '>>"aicpu": "on",',
        # Older releases, which cannot detect the two points themselves, fail without these keys.
        '>>"fp_point": "",',
        '>>"bp_point": "",',
        '>>"aic_metrics": "PipeUtilization",',
        ">})",
    ),
}


def session_options(
    options: PortOptions, *, mixlist_path: str | None = None
) -> list[tuple[str, str, str]]:
    """The entries of NpuOptimizer's `parameter_map`: key, field and Python expression.

    The expressions call functions that `session_config_function` defines before its own.

    Args:
        options: The options of the port.
        mixlist_path: The op list's path relative to the folder of the script, with forward slashes;
            by default, the list is in that folder.
    """
    block: list[tuple[str, str, str]] = []
    if options.precision:
        block.append(("precision_mode", "s", f"b{literal(options.precision)}"))
    if options.mixlist:
        block.append(
            ("modify_mixlist", "s", f"{_mixlist_expression(options, mixlist_path)}.encode()")
        )
    if options.iterations_per_loop > 1:
        block.append(("iterations_per_loop", "i", str(options.iterations_per_loop)))
    if options.distributed:
        # Off by default in old releases, on in newer ones.
        block.append(("hcom_parallel", "b", "True"))
    if options.profiling:
        block.append(("profiling_mode", "b", "True"))
        block.append(("profiling_options", "s", f"{PROFILING_FUNCTION}().encode()"))
    if options.overflow_dump:
        block.append(("enable_dump_debug", "b", "True"))
        block.append(("dump_path", "s", f"{_folder(OVERFLOW_FOLDER)}.encode()"))
        block.append(("dump_debug_mode", "s", 'b"all"'))
    if options.auto_tune:
        # "2" tunes single operators. Releases without aoe_mode have auto_tune_mode ("RL,GA"), which
        # newer ones do not accept in NPURunConfig.
        block.append(("aoe_mode", "s", 'b"2"'))
        block.append(("work_path", "s", f"{_folder(TUNING_FOLDER)}.encode()"))
    return block


def run_config_arguments(
    options: PortOptions, *, mixlist_path: str | None = None
) -> list[tuple[str, str]]:
    """The arguments of NPURunConfig: keyword and Python expression.

    The expressions name `run_config_imports` of npu_bridge and call the functions of
    `run_config_functions`.
    """
    arguments: list[tuple[str, str]] = []
    if options.precision:
        arguments.append(("precision_mode", literal(options.precision)))
    if options.mixlist:
        arguments.append(("modify_mixlist", _mixlist_expression(options, mixlist_path)))
    if options.iterations_per_loop > 1:
        arguments.append(("iterations_per_loop", str(options.iterations_per_loop)))
    if options.distributed:
        arguments.append(("hcom_parallel", "True"))
    if options.profiling:
        profiling = f"enable_profiling=True, profiling_options={PROFILING_FUNCTION}()"
        arguments.append(("profiling_config", f"ProfilingConfig({profiling})"))
    if options.overflow_dump:
        dump = (
            f'enable_dump_debug=True, dump_path={_folder(OVERFLOW_FOLDER)}, dump_debug_mode="all"'
        )
        arguments.append(("dump_config", f"DumpConfig({dump})"))
    if options.auto_tune:
        arguments += [("aoe_mode", '"2"'), ("work_path", _folder(TUNING_FOLDER))]
    return arguments


def run_config_imports(options: PortOptions) -> tuple[str, ...]:
    """The names of `npu_bridge.npu_init` that the values of `run_config_arguments` use."""
    names = [("ProfilingConfig", options.profiling), ("DumpConfig", options.overflow_dump)]
    return tuple(name for name, is_needed in names if is_needed)


def run_config_functions(options: PortOptions, *, indent: str = "    ", newline: str = "\n") -> str:
    """The functions that `run_config_arguments` calls, in Python 3.7; empty if it calls none.

    They must precede the first use of the arguments. The text of `session_config_function` for the
    same options already contains them.
    """
    return _functions_called(
        " ".join(value for _, value in run_config_arguments(options)), indent, newline
    )


def session_config_function(
    options: PortOptions,
    *,
    name: str,
    config_proto_name: str,
    indent: str = "    ",
    newline: str = "\n",
    mixlist_path: str | None = None,
) -> str:
    """The function that adds the options to a session's configuration, in Python 3.7.

    The functions that it calls precede it, separated by two blank lines.

    Args:
        options: The options of the port.
        name: Name of the function.
        config_proto_name: The script's name for `npu_config_proto`.
        indent: One level of the script's indentation.
        newline: The script's line ending.
        mixlist_path: As in `session_options`.
    """
    block = session_options(options, mixlist_path=mixlist_path)
    lines = [
        f"def {name}(config=None):",
        '>"""Session options for the NPU."""',
        f">config = {config_proto_name}(config_proto=config)",
    ]
    if block:
        lines += [
            ">for optimizer in config.graph_options.rewrite_options.custom_optimizers:",
            '>>if optimizer.name == "NpuOptimizer":',
        ]
    lines += [f'>>>optimizer.parameter_map["{key}"].{kind} = {value}' for key, kind, value in block]
    lines.append(">return config")
    called_functions = _functions_called(" ".join(value for _, _, value in block), indent, newline)
    return (called_functions + newline * 2 if called_functions else "") + _text(
        lines, indent, newline
    )


def _folder(name: str) -> str:
    return f'{FOLDER_FUNCTION}("{name}")'


def _mixlist_expression(options: PortOptions, path: str | None) -> str:
    return f"{BESIDE_FUNCTION}({literal(path or mixlist_name(options))})"


def _functions_called(expressions: str, indent: str, newline: str) -> str:
    """The definitions of the functions that expressions call."""
    texts = [
        _text(lines, indent, newline)
        for name, lines in _FUNCTIONS.items()
        if f"{name}(" in expressions
    ]
    return (newline * 2).join(texts)


def _text(lines: list[str] | tuple[str, ...], indent: str, newline: str) -> str:
    """Join lines, in which each leading `>` stands for one level of indentation."""
    code_lines: list[str] = []
    for line in lines:
        code = line.lstrip(">")
        code_lines.append(indent * (len(line) - len(code)) * bool(code) + code + newline)
    return "".join(code_lines)
