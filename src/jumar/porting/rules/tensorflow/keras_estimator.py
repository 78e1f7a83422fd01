"""Keras models that are converted to estimators."""

import ast

from jumar.porting.rewriting import Changes, Replacement, Text, View, rule
from jumar.porting.rewriting.editing import replace
from jumar.porting.rewriting.prelude import RUN_CONFIG as RUN_CONFIG_FUNCTIONS
from jumar.porting.rules.tensorflow.estimator import (
    added_config,
    config_imports,
    job_imports,
    job_line,
    with_minimal_config,
)
from jumar.porting.rules.tensorflow.estimator_plan import MODEL_TO_ESTIMATOR, estimator_plan

_CONVERTED = Text(
    en="model_to_npu_estimator converts the model to an NPUEstimator; it requires the environment "
    "variable JOB_ID, with any value",
    zh="model_to_npu_estimator 将模型转换为 NPUEstimator；环境变量 JOB_ID 必须存在，取值任意",
)


@rule(
    "keras-estimator",
    title=Text(
        en="model_to_estimator becomes model_to_npu_estimator",
        zh="model_to_estimator 替换为 model_to_npu_estimator",
    ),
    source="keras_to_npu.py of Ascend/tensorflow",
    calls=(MODEL_TO_ESTIMATOR,),
)
def keras_estimator(call: ast.Call, view: View) -> Changes:
    """Use the NPU's function if the configuration can be an NPURunConfig."""
    if call not in estimator_plan(view).estimators:
        yield from with_minimal_config(call, 4, view)
        return
    name = f"{view.npu('keras_to_npu')}.model_to_npu_estimator"
    changes = [
        replace(view.module, call.func, name),
        *job_line(call, view),
        *added_config(call, 4, view),
    ]
    # These two parameters are swapped in its signature.
    for value, parameter in zip(call.args[4:], ("config", "checkpoint_format"), strict=False):
        start, _ = view.module.span(value)
        changes.append(Replacement(start=start, end=start, text=f"{parameter}="))
    yield view.rewrite(
        call,
        *changes,
        reason=_CONVERTED,
        imports=("keras_to_npu", *job_imports(call, view), *config_imports(call, 4, view)),
        functions=(RUN_CONFIG_FUNCTIONS,),
    )
