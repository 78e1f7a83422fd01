"""Decide which estimators of a module become NPUEstimator, and which configurations NPURunConfig.

NPUEstimator only accepts an NPURunConfig. So the two change together, and only if every
configuration that can reach an estimator is visible in the module. Otherwise the estimator keeps
its class, and its configuration is passed through `npu_run_config_init`, which is always correct.
"""

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from weakref import WeakKeyDictionary

from jumar.porting.rewriting import NPU_INIT, Replacement, View
from jumar.porting.rewriting.editing import add_argument, argument, is_open, replace, wrap
from jumar.porting.rules.tensorflow.session_config import has_npu_config
from jumar.porting.script.expressions import is_none
from jumar.porting.script.nodes import walk

ESTIMATOR = "tensorflow.estimator.Estimator"
RUN_CONFIG = "tensorflow.estimator.RunConfig"
NPU_ESTIMATOR = f"{NPU_INIT}.NPUEstimator"
NPU_RUN_CONFIG = f"{NPU_INIT}.NPURunConfig"
MODEL_TO_ESTIMATOR = "tensorflow.keras.estimator.model_to_estimator"
MODEL_TO_NPU_ESTIMATOR = f"{NPU_INIT}.keras_to_npu.model_to_npu_estimator"
TPU_ESTIMATOR = "tensorflow.contrib.tpu.TPUEstimator"
TPU_RUN_CONFIG = "tensorflow.contrib.tpu.RunConfig"
CANNED = {
    "tensorflow.estimator.BaselineClassifier": 5,
    "tensorflow.estimator.BaselineEstimator": 3,
    "tensorflow.estimator.BaselineRegressor": 4,
    "tensorflow.estimator.BoostedTreesClassifier": 13,
    "tensorflow.estimator.BoostedTreesEstimator": 12,
    "tensorflow.estimator.BoostedTreesRegressor": 12,
    "tensorflow.estimator.DNNClassifier": 10,
    "tensorflow.estimator.DNNEstimator": 8,
    "tensorflow.estimator.DNNLinearCombinedClassifier": 12,
    "tensorflow.estimator.DNNLinearCombinedEstimator": 10,
    "tensorflow.estimator.DNNLinearCombinedRegressor": 11,
    "tensorflow.estimator.DNNRegressor": 9,
    "tensorflow.estimator.LinearClassifier": 6,
    "tensorflow.estimator.LinearEstimator": 4,
    "tensorflow.estimator.LinearRegressor": 5,
    "tensorflow.contrib.estimator.RNNClassifier": 12,
    "tensorflow.contrib.estimator.RNNEstimator": 10,
}
"""TensorFlow's canned estimators, with the position of `config` in their signatures of 1.15."""
_CONFIG_POSITION = {
    ESTIMATOR: 2,
    NPU_ESTIMATOR: 2,
    TPU_ESTIMATOR: 2,
    MODEL_TO_ESTIMATOR: 4,
    MODEL_TO_NPU_ESTIMATOR: 5,
    **CANNED,
}
_FULL = (ESTIMATOR, NPU_ESTIMATOR, MODEL_TO_ESTIMATOR, MODEL_TO_NPU_ESTIMATOR)


@dataclass(frozen=True)
class EstimatorPlan:
    """The calls that create, or will create, instances of the NPU's classes."""

    estimators: frozenset[ast.Call]
    configs: frozenset[ast.Call]


@dataclass
class _Origins:
    """The calls that may create an expression's value; `known` if there can be no others."""

    calls: set[ast.Call] = field(default_factory=set[ast.Call])
    known: bool = True


_PLANS: WeakKeyDictionary[View, EstimatorPlan] = WeakKeyDictionary()


def estimator_plan(view: View) -> EstimatorPlan:
    """Decide for a whole module; the result is cached for other rules."""
    if view not in _PLANS:
        _PLANS[view] = _plan(view)
    return _PLANS[view]


def is_npu_run_config(config: ast.expr, view: View) -> bool:
    """Whether a RunConfig is, or becomes, an NPURunConfig, which has its own options."""
    origins = _Origins()
    _resolve(config, view, origins, set())
    npu_configs = estimator_plan(view).configs
    return any(
        call in npu_configs or view.module.name_of(call.func) == NPU_RUN_CONFIG
        for call in origins.calls
    )


def minimal_config(
    call: ast.Call, position: int, view: View
) -> tuple[tuple[Replacement, ...], tuple[str, ...], tuple[str, ...]] | None:
    """Pass an estimator's configuration through `npu_run_config_init`.

    Returns:
        Replacements, imports and functions of a `Rewrite`; None if the configuration already is
        the NPU's, or if `**kwargs` may contain one.
    """
    config = argument(call, "config", position)
    initializer = view.npu("npu_run_config_init")
    if config is None or is_none(config):
        if config is None and is_open(call):
            return None
        inner, imports, functions = _default_config(call, view)
        text = f"{initializer}({inner})"
        change = (
            add_argument(view.module, call, f"config={text}")
            if config is None
            else replace(view.module, config, text)
        )
        return (change,), ("npu_run_config_init", *imports), functions
    if has_npu_config(config, view):
        return None
    change = wrap(view.module, config, f"{initializer}(run_config=", ")")
    return change, ("npu_run_config_init",), ()


def session_config_of(call: ast.Call, position: int, view: View) -> tuple[Replacement, ...] | None:
    """A RunConfig's `session_config` with the options of the port; None if it has them."""
    function, _, _ = view.session_config()
    config = argument(call, "session_config", position)
    if config is None:
        if is_open(call):
            return None
        return (add_argument(view.module, call, f"session_config={function}()"),)
    if has_npu_config(config, view):
        return None
    if isinstance(config, ast.Constant):
        return (replace(view.module, config, f"{function}()"),)
    return wrap(view.module, config, f"{function}(", ")")


def library_prefix(call: ast.Call, view: View) -> str:
    """The prefix of the class in a call: `tf.estimator.` of `tf.estimator.Estimator()`."""
    name = view.module.name_of(call.func) or ""
    if isinstance(call.func, ast.Attribute) and not name.startswith("tree:"):
        return f"{view.module.source(call.func.value)}."
    return ""


def _default_config(call: ast.Call, view: View) -> tuple[str, tuple[str, ...], tuple[str, ...]]:
    """The argument of `npu_run_config_init` if the script has no RunConfig."""
    if not view.options.has_session_options:
        return "", (), ()
    function, imports, functions = view.session_config()
    name = view.module.name_of(call.func) or ""
    prefix = library_prefix(call, view) if name.startswith("tensorflow.estimator.") else ""
    if not prefix:
        imports = (*imports, "tensorflow.estimator:RunConfig")
    return f"run_config={prefix}RunConfig(session_config={function}())", imports, functions


def _plan(view: View) -> EstimatorPlan:
    if view.options.minimal:
        return EstimatorPlan(frozenset(), frozenset())
    consumers: dict[ast.Call, set[ast.Call]] = {}
    reaching: dict[ast.Call, set[ast.Call]] = {}
    convertible: set[ast.Call] = set()
    for call, name in _estimator_calls(view):
        origins = _Origins()
        config = argument(call, "config", _CONFIG_POSITION[name])
        if config is not None and not is_none(config):
            _resolve(config, view, origins, set())
        if origins.known and view.module.name_of(call.func) in _FULL and not is_open(call):
            convertible.add(call)
        reaching[call] = origins.calls
        for config_call in origins.calls:
            consumers.setdefault(config_call, set()).add(call)
    while True:
        configs = {config_call for config_call, users in consumers.items() if users <= convertible}
        remaining = {call for call in convertible if reaching[call] <= configs}
        if remaining == convertible:
            return EstimatorPlan(frozenset(convertible), frozenset(configs))
        convertible = remaining


def _estimator_calls(view: View) -> Iterator[tuple[ast.Call, str]]:
    for call in view.module.calls:
        name = view.kinds.called(call)
        if name in _CONFIG_POSITION:
            yield call, name


def _resolve(node: ast.expr, view: View, origins: _Origins, visited: set[ast.AST]) -> None:
    """Collect the constructor calls that an expression's value may come from."""
    if node in visited:
        return
    visited.add(node)
    if isinstance(node, ast.IfExp):
        _resolve(node.body, view, origins, visited)
        _resolve(node.orelse, view, origins, visited)
    elif isinstance(node, ast.Name):
        bindings = view.module.bindings(node)
        assigned_values = [binding.value for binding in bindings if binding.kind == "assignment"]
        origins.known = origins.known and bool(bindings) and len(assigned_values) == len(bindings)
        _resolve_all(assigned_values, view, origins, visited)
    elif isinstance(node, ast.Attribute):
        values = list(_assigned_to_self(node, view))
        origins.known = origins.known and bool(values)
        _resolve_all(values, view, origins, visited)
    elif isinstance(node, ast.Call):
        _resolve_call(node, view, origins, visited)
    else:
        origins.known = False


def _resolve_all(
    values: Iterable[ast.expr | None], view: View, origins: _Origins, visited: set[ast.AST]
) -> None:
    for value in values:
        if value is None:
            origins.known = False
        else:
            _resolve(value, view, origins, visited)


def _resolve_call(node: ast.Call, view: View, origins: _Origins, visited: set[ast.AST]) -> None:
    name = view.module.name_of(node.func) or ""
    if name in (RUN_CONFIG, NPU_RUN_CONFIG):
        origins.calls.add(node)
        origins.known = origins.known and not is_open(node)
        return
    if isinstance(node.func, ast.Attribute) and node.func.attr == "replace":
        _resolve(node.func.value, view, origins, visited)
        return
    module, definition = view.module.definition(name)
    if module is not view.module or not isinstance(definition, ast.FunctionDef):
        origins.known = False
        return
    returned_values = [
        inner.value
        for inner in walk(definition)
        if isinstance(inner, ast.Return) and view.module.function(inner) is definition
    ]
    origins.known = origins.known and bool(returned_values)
    _resolve_all(returned_values, view, origins, visited)


def _assigned_to_self(node: ast.Attribute, view: View) -> Iterator[ast.expr]:
    class_node = view.module.class_of(node)
    if class_node is None or not isinstance(node.value, ast.Name) or node.value.id != "self":
        return
    for inner in walk(class_node):
        if isinstance(inner, ast.Assign) and any(
            isinstance(target, ast.Attribute)
            and isinstance(target.value, ast.Name)
            and (target.value.id, target.attr) == ("self", node.attr)
            for target in inner.targets
        ):
            yield inner.value
