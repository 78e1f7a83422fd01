"""Subclasses of Estimator pass a configuration for the NPU to their base class."""

import ast

from jumar.porting.rewriting import Changes, Text, View, rule
from jumar.porting.rules.tensorflow.estimator import with_minimal_config
from jumar.porting.rules.tensorflow.estimator_plan import CANNED, ESTIMATOR

_POSITIONS = {**CANNED, ESTIMATOR: 2}


@rule(
    "estimator-subclass",
    title=Text(
        en="Subclasses of Estimator get a configuration for the NPU",
        zh="Estimator 的子类向父类传递 NPU 运行配置",
    ),
    source="npu_init.py of Ascend/tensorflow",
    nodes=(ast.Call,),
)
def estimator_subclass(call: ast.Call, view: View) -> Changes:
    """Wrap the configuration that a class passes to its Estimator base class."""
    func = call.func
    if not isinstance(func, ast.Attribute) or func.attr != "__init__":
        return
    class_node = view.module.class_of(call)
    if class_node is None:
        return
    parents = [
        ancestor
        for base in class_node.bases
        for ancestor in view.module.lineage(view.module.name_of(base) or "")
        if not ancestor.startswith("tree:")
    ]
    library = next((parent for parent in parents if parent in _POSITIONS), None)
    if library is None:
        return
    if isinstance(func.value, ast.Call):
        is_super = view.module.name_of(func.value.func) == "builtins.super"
        explicit = 0
    else:
        base_name = view.module.name_of(func.value)
        is_super = base_name is not None and base_name in map(view.module.name_of, class_node.bases)
        explicit = 1
    if not is_super:
        return
    yield from with_minimal_config(call, _POSITIONS[library] + explicit, view)
