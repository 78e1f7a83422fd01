"""TPUEstimator runs without a TPU, with a configuration for the NPU."""

import ast

from jumar.porting.rewriting import Changes, Leave, Remark, Replacement, Text, View, rule
from jumar.porting.rewriting.editing import add_argument, argument, is_open, replace
from jumar.porting.rules.tensorflow.estimator import loop_notice
from jumar.porting.rules.tensorflow.estimator_plan import TPU_ESTIMATOR, minimal_config

_FLAGS = {"use_tpu": 4, "eval_on_tpu": 9, "export_to_tpu": 10}
_OFF = Text(
    en="with these flags, TPUEstimator is an Estimator that still passes params['batch_size'] to "
    "the input function; npu_run_config_init adds NpuOptimizer to its configuration",
    zh="关闭这些开关后 TPUEstimator 等同于 Estimator，且仍向输入函数提供 params['batch_size']；"
    "npu_run_config_init 在其配置中加入 NpuOptimizer",
)
_DONE = Text(en="it already runs without a TPU", zh="已关闭 TPU")
_STARRED = Remark(
    en="arguments are passed with * or **: they are not visible here",
    zh="参数由 * 或 ** 传入，此处无法判断",
    todo_en="pass use_tpu=False, eval_on_tpu=False, export_to_tpu=False and "
    "config=npu_run_config_init(run_config=...) where the arguments are created",
    todo_zh="在构造参数的位置传入 use_tpu=False、eval_on_tpu=False、export_to_tpu=False 以及 "
    "config=npu_run_config_init(run_config=...)",
    severity="blocking",
    confidence="likely",
)


@rule(
    "tpu-estimator",
    title=Text(
        en="TPUEstimator runs without a TPU, with NpuOptimizer",
        zh="TPUEstimator 关闭 TPU 并加入 NpuOptimizer",
    ),
    source="ModelZoo-TensorFlow, BertBase_Google_ID0631; tpu_estimator.py of TensorFlow 1.15",
    calls=(TPU_ESTIMATOR,),
)
def tpu_estimator(call: ast.Call, view: View) -> Changes:
    """Disable the three flags, and wrap the configuration in `npu_run_config_init`."""
    if is_open(call):
        yield view.notice(call, _STARRED)
        return
    changes: list[Replacement] = []
    new_arguments: list[str] = []
    for name, position in _FLAGS.items():
        value = argument(call, name, position)
        if value is None:
            new_arguments.append(f"{name}=False")
        elif not (isinstance(value, ast.Constant) and value.value is False):
            changes.append(replace(view.module, value, "False"))
    config = minimal_config(call, 2, view)
    imports: tuple[str, ...] = ()
    functions: tuple[str, ...] = ()
    if config is not None:
        replacements, imports, functions = config
        changes += replacements
    if new_arguments:
        changes.append(add_argument(view.module, call, *new_arguments))
    if not changes:
        yield Leave(node=call, reason=_DONE)
        return
    yield from loop_notice(call, view)
    yield view.rewrite(call, *changes, reason=_OFF, imports=imports, functions=functions)
