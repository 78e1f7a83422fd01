"""Whether a script trains, even with an optimizer from another module."""

import ast
import re

from jumar.porting.rewriting import View
from jumar.porting.rules.tensorflow.input_purpose import named_purpose
from jumar.porting.rules.tensorflow.optimizer_sites import optimizers
from jumar.porting.script.expressions import names_within
from jumar.porting.script.module import Module

_CREATES_OPTIMIZER = re.compile(
    r"\b\w*Optimizer\s*\(|\.minimize\s*\(|\.apply_gradients\s*\(|create_train_op\s*\("
)
_APPLIES = re.compile(r"\.apply_gradients\s*\(|create_train_op\s*\(")
_TRAIN_OP = re.compile(
    r"(?i)(?:^|_)(?:train|training|optim|optimi[sz]er?|opt|solver|update)(?:_|$)|train_?op"
)
_MAX_MODULES = 30
"""Maximum number of modules that are searched for an optimizer."""


def trains(view: View) -> bool:
    """Whether a script trains: it creates or applies an optimizer, or runs an imported one.

    A script that saves variables without a visible optimizer converts or exports them.
    """
    if optimizers(view) or _APPLIES.search(view.module.text):
        return True
    calls = [node for node in view.module.scopes.nodes if isinstance(node, ast.Call)]
    if any(runs_train_op(call) for call in calls):
        return True
    return any(saves(call, view) for call in calls) and _imports_optimizer(view.module, set())


def saves(call: ast.Call, view: View) -> bool:
    """Whether a call saves a checkpoint."""
    return (
        isinstance(call.func, ast.Attribute)
        and call.func.attr == "save"
        and view.kinds.of(call.func.value) == "Saver"
    )


def evaluates(call: ast.Call, view: View) -> bool:
    """Whether a call is in a function that tests a model, for which ranks need not be equal."""
    function, class_node = view.module.function(call), view.module.class_of(call)
    names = [part.name for part in (function, class_node) if part is not None]
    return named_purpose(names) == "other"


def is_run(call: ast.Call) -> bool:
    """Whether a call may run a session."""
    return isinstance(call.func, ast.Attribute) and call.func.attr == "run" and bool(call.args)


def runs_train_op(call: ast.Call) -> bool:
    """Whether a fetch has the name of a training operation: `session.run([train_op, loss])`."""
    return is_run(call) and any(map(_TRAIN_OP.search, names_within(call.args[0])))


def _imports_optimizer(module: Module, visited: set[str]) -> bool:
    visited.add(module.path)
    return any(
        _CREATES_OPTIMIZER.search(inner.text) is not None or _imports_optimizer(inner, visited)
        for path in module.imported_paths()
        if path not in visited and len(visited) < _MAX_MODULES
        for inner in [module.project.module(path)]
        if inner is not None
    )
