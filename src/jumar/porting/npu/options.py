"""Checks of the options of NpuOptimizer and the arguments of NPURunConfig.

Sources: `tf_adapter/util/npu_attrs.cc` and `npu_bridge/estimator/npu/npu_config.py` in the
repository Ascend/tensorflow; TensorFlow 1.15 for the types that the fields of an option accept.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from jumar.ground.errors import nearest
from jumar.porting.edits import Remark, Text
from jumar.porting.npu.option_rules import (
    COMBINATIONS,
    PROFILING_KEYS,
    RUN_CONFIG_MISSING,
    RUN_CONFIG_PARAMETERS,
)
from jumar.porting.npu.option_table import NPU_OPTIONS, Combination, Condition, NpuOption

Plain = bool | int | float | str | bytes


@dataclass(frozen=True, kw_only=True)
class OptionValue:
    """The value that a script sets an option to, and the field that it sets.

    `field` is None for arguments of NPURunConfig, which have no fields; `value` is None if it is
    only known at run time, and bytes for `tf.compat.as_bytes("...")`.
    """

    field: str | None
    value: Plain | None


@dataclass(frozen=True, kw_only=True)
class OptionProblem(Remark):
    """A problem with an option or a combination of two; it is shown at the option `key`."""

    rule: str
    key: str = ""
    excluded: str = ""


def check_options(values: Mapping[str, OptionValue]) -> list[OptionProblem]:
    """Check a block of NpuOptimizer; problems are in the order of the keys.

    Args:
        values: Options by their key in `parameter_map`.
    """
    problems: list[OptionProblem] = []
    for key, setting in values.items():
        option = NPU_OPTIONS.get(key)
        if option is None:
            problems.append(_unknown_key(key))
        else:
            problems += check_option(option, setting)
    return problems + check_combinations(values)


def check_option(option: NpuOption, setting: OptionValue) -> list[OptionProblem]:
    """Check the status, field and value of one option of a block."""
    problems = [_outdated(option)] if option.status != "current" else []
    if option.status == "not read":
        return problems
    if setting.field is not None and setting.field != option.field:
        return [*problems, _wrong_field(option, setting.field)]
    type_problem = _wrong_type(option, setting) if setting.field else None
    if type_problem:
        return [*problems, type_problem]
    return problems + _wrong_value(option, setting.value)


def check_run_config(values: Mapping[str, OptionValue]) -> list[OptionProblem]:
    """Check the arguments of NPURunConfig."""
    problems: list[OptionProblem] = []
    for name, setting in values.items():
        if name in RUN_CONFIG_MISSING:
            problems.append(_missing_parameter(name))
        elif name not in RUN_CONFIG_PARAMETERS:
            problems.append(_unknown_parameter(name))
        elif name in NPU_OPTIONS:
            option = NPU_OPTIONS[name]
            # Dropping a deprecated option that is set to its default changes nothing.
            if option.status != "current" and setting.value != RUN_CONFIG_PARAMETERS[name]:
                problems.append(_outdated(option))
            problems += _wrong_value(option, setting.value)
    steps = values.get("save_checkpoints_steps")
    seconds = values.get("save_checkpoints_secs")
    if steps and seconds and steps.value is not None and seconds.value is not None:
        problems.append(
            OptionProblem(
                key="save_checkpoints_secs",
                rule="lint-option-conflict",
                severity="blocking",
                en="save_checkpoints_steps and save_checkpoints_secs are mutually exclusive",
                zh="save_checkpoints_steps 与 save_checkpoints_secs 互斥",
                todo_en="Keep only one of the two.",
                todo_zh="只保留其中一个。",
            )
        )
    return problems + check_combinations(values)


def check_combinations(values: Mapping[str, OptionValue]) -> list[OptionProblem]:
    """Check the constraints between options."""
    return [
        OptionProblem(
            key=combination.when.key,
            excluded=combination.excludes.key if combination.excludes else "",
            rule=combination.rule,
            severity=combination.severity,
            en=combination.en,
            zh=combination.zh,
            todo_en=combination.todo_en,
            todo_zh=combination.todo_zh,
        )
        for combination in COMBINATIONS
        if _is_violated(combination, values)
    ]


def check_profiling_options(settings: Mapping[str, object]) -> list[OptionProblem]:
    """Check the parsed JSON of `profiling_options`."""
    problems: list[OptionProblem] = []
    for key, value in settings.items():
        allowed = PROFILING_KEYS.get(key)
        if allowed is None:
            near = nearest(key, PROFILING_KEYS)
            problems.append(
                _profiling(
                    f"profiling_options has no key '{key}'; it is ignored",
                    f"profiling_options 没有键“{key}”，会被忽略",
                    _suggestion(near, PROFILING_KEYS),
                )
            )
        elif not isinstance(value, str) or (allowed and value not in allowed):
            choices = ", ".join(allowed) or "..."
            problems.append(
                _profiling(
                    f"{key} of profiling_options is {value!r}, not one of: {choices}",
                    f"profiling_options 的 {key} 为 {value!r}，应为字符串：{choices}",
                    Text(en=f"Use one of: {choices}.", zh=f"请改为其中之一：{choices}。"),
                )
            )
    if "output" not in settings:
        problems.append(
            _profiling(
                "profiling_options has no output",
                "profiling_options 中没有 output",
                Text(
                    en='Add "output" with a folder that exists when the session starts.',
                    zh="请加上 output，其目录须在会话启动前存在。",
                ),
            )
        )
    return problems


def _holds(condition: Condition, values: Mapping[str, OptionValue], *, unknown: bool) -> bool:
    """Whether an option is set as a condition requires; `unknown` if its value is not known."""
    setting = values.get(condition.key)
    if setting is None:
        return False
    if not condition.values:
        return True
    if setting.value is None:
        return unknown
    return _as_text(setting.value) in condition.values


def _is_violated(combination: Combination, values: Mapping[str, OptionValue]) -> bool:
    # An unknown value counts as correct: people disable a linter that complains about variables.
    if not _holds(combination.when, values, unknown=False):
        return False
    excluded = combination.excludes
    if excluded and _holds(excluded, values, unknown=False):
        value = values[excluded.key].value
        return combination.above is None or (isinstance(value, int) and value > combination.above)
    return bool(combination.needs) and not any(
        _holds(condition, values, unknown=True) for condition in combination.needs
    )


def _as_text(value: Plain) -> str:
    """A value in the form used in conditions: bytes as text, numbers and booleans as in Python."""
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def _unknown_key(key: str) -> OptionProblem:
    near = nearest(key, NPU_OPTIONS)
    todo = _suggestion(near, ())
    return OptionProblem(
        key=key,
        rule="lint-unknown-option",
        severity="accuracy" if near else "look",
        confidence="certain" if near else "likely",
        en=f"NpuOptimizer has no option '{key}'; the adapter silently ignores it",
        zh=f"NpuOptimizer 没有选项“{key}”，适配器会静默忽略它",
        todo_en=todo.en,
        todo_zh=todo.zh,
    )


def _unknown_parameter(name: str) -> OptionProblem:
    option = NPU_OPTIONS.get(name)
    if option and option.note:
        todo = option.note
    elif option:
        todo = Text(
            en=f"It is a session option: set parameter_map['{name}'] in session_config.",
            zh=f"它是会话选项：请在 session_config 的 parameter_map['{name}'] 中设置。",
        )
    else:
        todo = _suggestion(nearest(name, RUN_CONFIG_PARAMETERS), ())
    return OptionProblem(
        key=name,
        rule="lint-unknown-run-config",
        severity="blocking",
        # Releases differ: 31 parameters in the first, 76 in the last.
        confidence="likely",
        en=f"NPURunConfig has no parameter '{name}': creating it raises TypeError",
        zh=f"NPURunConfig 没有参数“{name}”：构造时抛出 TypeError",
        todo_en=todo.en,
        todo_zh=todo.zh,
    )


def _missing_parameter(name: str) -> OptionProblem:
    return OptionProblem(
        key=name,
        rule="lint-unknown-run-config",
        severity="blocking",
        en=f"NPURunConfig does not accept RunConfig's parameter '{name}'",
        zh=f"NPURunConfig 不支持 RunConfig 的“{name}”",
        todo_en="Remove it.",
        todo_zh="请删除该参数。",
    )


def _outdated(option: NpuOption) -> OptionProblem:
    is_deprecated = option.status == "deprecated"
    reason = (
        Text(en=f"'{option.key}' is deprecated", zh=f"“{option.key}”已废弃")
        if is_deprecated
        else Text(
            en=f"the adapter does not read '{option.key}'",
            zh=f"适配器不读取“{option.key}”",
        )
    )
    todo = option.note or Text(en="Remove it.", zh="请删除该选项。")
    return OptionProblem(
        key=option.key,
        rule="lint-deprecated-option" if is_deprecated else "lint-option-not-read",
        severity="look",
        en=reason.en,
        zh=reason.zh,
        todo_en=todo.en,
        todo_zh=todo.zh,
    )


_MEANING = {"b": "bool", "i": "int", "s": "bytes"}


def _wrong_field(option: NpuOption, field: str) -> OptionProblem:
    # An unset field of a protobuf oneof reads as zero; the adapter checks only jit_compile.
    is_checked = option.key == "jit_compile"
    value_read = {"b": "False", "i": "0", "s": "''"}[option.field]
    is_known_field = field in _MEANING
    return OptionProblem(
        key=option.key,
        rule="lint-option-field",
        severity="blocking" if is_checked or not is_known_field else "accuracy",
        en=f"'{option.key}' is set in field .{field}, but read from .{option.field}"
        + (": the session fails" if is_checked else f", where it is {value_read}"),
        zh=f"“{option.key}”写入了 .{field}，而适配器读取 .{option.field}"
        + ("：会话报错" if is_checked else f"，读到的是 {value_read}"),
        todo_en=f"Set .{option.field} to a value of type {_MEANING[option.field]}.",
        todo_zh=f"请改用 .{option.field}，值的类型为 {_MEANING[option.field]}。",
    )


def _wrong_type(option: NpuOption, setting: OptionValue) -> OptionProblem | None:
    """The problem with a value that its field rejects with TypeError in TensorFlow 1.15."""
    value = setting.value
    fits = {
        "b": isinstance(value, bool | int | float),
        "i": isinstance(value, int),
        "s": isinstance(value, bytes),
    }[option.field]
    if value is None or fits:
        return None
    is_text = option.field == "s" and isinstance(value, str)
    return OptionProblem(
        key=option.key,
        rule="lint-option-type",
        severity="blocking",
        en=f"field .{option.field} accepts {_MEANING[option.field]}, not {value!r}: TypeError",
        zh=f".{option.field} 只接受 {_MEANING[option.field]}，不接受 {value!r}：抛出 TypeError",
        todo_en="Wrap it in tf.compat.as_bytes(...)." if is_text else "Change the value.",
        todo_zh="请用 tf.compat.as_bytes(...) 转换。" if is_text else "请修改该值。",
    )


def _wrong_value(option: NpuOption, value: Plain | None) -> list[OptionProblem]:
    if value is None:
        return []
    text = _as_text(value)
    is_invalid = bool(option.allowed) and text not in option.allowed
    if isinstance(value, int) and option.field == "i":
        is_invalid |= option.minimum is not None and value < option.minimum
        is_invalid |= option.maximum is not None and value > option.maximum
    if option.pattern and option.field == "s":
        is_invalid |= re.fullmatch(option.pattern, text) is None or not _steps_ascend(option, text)
    if not is_invalid:
        return []
    near = nearest(text, option.allowed)
    meant = Text(en=f"Did you mean {near!r}? ", zh=f"是否想写 {near!r}？")
    allowed = Text(
        en=f"Allowed: {option.allowed_text('en')}.", zh=f"可取值：{option.allowed_text('zh')}。"
    )
    return [
        OptionProblem(
            key=option.key,
            rule="lint-option-value",
            severity="blocking",
            en=f"'{option.key}' is {text!r}, which is not allowed",
            zh=f"“{option.key}”的值为 {text!r}，不在可取值之内",
            todo_en=(meant.en if near else "") + allowed.en,
            todo_zh=(meant.zh if near else "") + allowed.zh,
        )
    ]


def _steps_ascend(option: NpuOption, text: str) -> bool:
    """Whether dump_step has at most 100 ranges, which ascend; True for other options."""
    if option.key != "dump_step":
        return True
    groups = text.split("|")
    ranges = [group.split("-") for group in groups if "-" in group]
    return len(groups) <= 100 and all(int(first) < int(last) for first, last in ranges)


def did_you_mean(name: str) -> Text:
    """The advice for a misspelt name."""
    return Text(en=f"Did you mean '{name}'?", zh=f"是否想写“{name}”？")


def _suggestion(near: str, names: Mapping[str, object] | tuple[str, ...]) -> Text:
    if near:
        return did_you_mean(near)
    if names:
        listing = ", ".join(names)
        return Text(en=f"Known keys: {listing}.", zh=f"可用的键：{listing}。")
    return Text(en="Check its name, or remove it.", zh="请核对名称，或删除。")


def _profiling(en: str, zh: str, todo: Text) -> OptionProblem:
    return OptionProblem(
        key="profiling_options",
        rule="lint-profiling-options",
        confidence="likely",
        en=en,
        zh=zh,
        todo_en=todo.en,
        todo_zh=todo.zh,
    )
