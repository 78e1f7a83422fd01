"""Find the calls that train or run a Keras model, even if its origin is unknown."""

import ast
import re

from jumar.porting.rewriting import View
from jumar.porting.script.expressions import argument_values
from jumar.porting.script.module import Module
from jumar.porting.script.nodes import walk

_RUNS = frozenset(
    "fit evaluate predict fit_generator train_on_batch evaluate_generator test_on_batch "  # noqa: SIM905
    "predict_generator predict_on_batch".split()
)
_ONLY_KERAS = frozenset("fit_generator train_on_batch evaluate_generator predict_generator".split())  # noqa: SIM905
"""Methods that only Keras models have."""
_FIT_KEYWORDS = frozenset(
    "epochs validation_data validation_split steps_per_epoch callbacks initial_epoch".split()  # noqa: SIM905
)
_COMPILE_KEYWORDS = frozenset({"optimizer", "loss"})
_TEXT = re.compile(r"\.(?:fit|fit_generator|train_on_batch)\s*\(")
_COMPUTES = re.compile(r"\.(?:fit|predict|evaluate|train_on_batch|test_on_batch)\w*\s*\(")
_RIVALS = ("sklearn", "xgboost", "lightgbm", "statsmodels", "torch", "fastai", "mxnet", "tflearn")
_MAX_DEPTH = 5
"""Maximum number of nested calls that are followed to a function that runs a model."""


def runs_keras(call: ast.Call, view: View) -> bool:
    """Whether a call trains a Keras model, or computes with one.

    If the origin of the model is unknown (a tuple, a dictionary, or an argument from another
    module), the call has to be one that only Keras has, in a script that uses Keras.
    """
    if not isinstance(call.func, ast.Attribute) or call.func.attr not in _RUNS:
        return False
    kind = view.kinds.of(call.func.value)
    if kind is not None:
        return kind == "KerasModel"
    is_keras_only = call.func.attr in _ONLY_KERAS or (
        call.func.attr == "fit" and any(passed.arg in _FIT_KEYWORDS for passed in call.keywords)
    )
    return is_keras_only and _may_be_keras(call, view)


def passes_model(call: ast.Call, view: View) -> bool:
    """Whether a call passes a Keras model to a function of the tree whose module runs models."""
    name = view.module.name_of(call.func) or ""
    if not name.startswith("tree:"):
        return False
    if not any(view.kinds.of(value) == "KerasModel" for value in argument_values(call)):
        return False
    home_module, _ = view.module.definition(name)
    return home_module is not None and bool(_COMPUTES.search(home_module.text))


def compiles_keras(call: ast.Call, view: View) -> bool:
    """Whether a call is the method `compile` of a Keras model."""
    if not isinstance(call.func, ast.Attribute) or call.func.attr != "compile":
        return False
    kind = view.kinds.of(call.func.value)
    if kind is not None:
        return kind == "KerasModel"
    names = {passed.arg for passed in call.keywords}
    return names >= _COMPILE_KEYWORDS and _may_be_keras(call, view)


def reaches_keras(view: View) -> ast.Call | None:
    """The first call of a script through which functions of other modules train with Keras."""
    visited: set[ast.AST] = set()
    for call in view.module.calls:
        if passes_model(call, view) or _leads_to_run(call, view.module, view, visited, 0):
            return call
    return None


def uses_keras(module: Module) -> bool:
    """Whether a module, or one that it imports from the tree, imports Keras."""
    return any(
        inner.imports("keras")
        or inner.imports("tensorflow.keras")
        or (inner.imports("tensorflow") and ".keras." in inner.text)
        for inner in module.with_imported()
    )


def _may_be_keras(call: ast.Call, view: View) -> bool:
    assert isinstance(call.func, ast.Attribute)
    if view.module.name_of(call.func) is not None or view.kinds.defines(call):
        return False
    if any(view.module.imports(rival) for rival in _RIVALS):
        return False
    return uses_keras(view.module)


def _leads_to_run(
    call: ast.Call, module: Module, view: View, visited: set[ast.AST], depth: int
) -> bool:
    name = module.name_of(call.func) or ""
    home_module, node = module.definition(name)
    if home_module is None or node is None or node in visited or depth > _MAX_DEPTH:
        return False
    visited.add(node)
    if not isinstance(node, ast.FunctionDef | ast.ClassDef):
        return False
    home_view = View(home_module, view.options) if home_module is not view.module else view
    calls = [inner for inner in walk(node) if isinstance(inner, ast.Call)]
    if _TEXT.search(home_module.text) and any(runs_keras(inner, home_view) for inner in calls):
        return True
    return any(_leads_to_run(inner, home_module, view, visited, depth + 1) for inner in calls)
