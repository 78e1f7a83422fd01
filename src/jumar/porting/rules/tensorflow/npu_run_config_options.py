"""A hand-written NPURunConfig gets the options of the port."""

import ast

from jumar.porting.npu.session_options import run_config_imports
from jumar.porting.rewriting import Changes, Text, View, rule
from jumar.porting.rewriting.editing import add_argument, is_open
from jumar.porting.rewriting.prelude import RUN_CONFIG as RUN_CONFIG_FUNCTIONS
from jumar.porting.rules.tensorflow.estimator_plan import NPU_RUN_CONFIG
from jumar.porting.rules.tensorflow.run_config import npu_run_config_arguments

_OPTIONS = Text(
    en="an NPURunConfig contains the options of the port", zh="NPURunConfig 携带本次移植的选项"
)


@rule(
    "npu-run-config-options",
    title=Text(en="NPURunConfig contains the port's options", zh="NPURunConfig 携带移植选项"),
    source="npu_config.py of Ascend/tensorflow",
    calls=(NPU_RUN_CONFIG,),
)
def npu_run_config_options(call: ast.Call, view: View) -> Changes:
    """Add the options that a hand-written NPURunConfig does not set itself."""
    if is_open(call) or call.args:
        return
    options = npu_run_config_arguments(call, view)
    if options:
        yield view.rewrite(
            call,
            add_argument(view.module, call, *options),
            reason=_OPTIONS,
            imports=run_config_imports(view.options),
            functions=(RUN_CONFIG_FUNCTIONS,),
        )
