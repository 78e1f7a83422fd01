"""Whether a script trains, even with an optimizer from another module."""

import ast
import re
from itertools import islice

from jumar.porting.rewriting import View
from jumar.porting.rules.tensorflow.input_purpose import named_purpose
from jumar.porting.rules.tensorflow.optimizer_sites import optimizers
from jumar.porting.script.expressions import method_name, names_within

_CREATES_OPTIMIZER = re.compile(
    r"\b\w*Optimizer\s*\(|\.minimize\s*\(|\.apply_gradients\s*\(|create_train_op\s*\("
)
_APPLIES = re.compile(r"\.apply_gradients\s*\(|create_train_op\s*\(")
_TRAIN_OP = re.compile(
    r"(?i)(?:^|_)(?:train|training|optim|optimi[sz]er?|opt|solver|update)(?:_|$)|train_?op"
)


def trains(view: View) -> bool:
    """Whether a script trains: it creates or applies an optimizer, or runs an imported one.

    A script that saves variables without a visible optimizer converts or exports them.
    """
    if optimizers(view) or _APPLIES.search(view.module.text):
        return True
    if any(runs_train_op(call) for call in view.module.calls):
        return True
    imported = islice(view.module.with_imported(), 1, None)
    return any(saves(call, view) for call in view.module.calls) and any(
        _CREATES_OPTIMIZER.search(module.text) for module in imported
    )


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
    return method_name(call) == "run" and bool(call.args)


def runs_train_op(call: ast.Call) -> bool:
    """Whether a fetch has the name of a training operation: `session.run([train_op, loss])`."""
    return is_run(call) and any(map(_TRAIN_OP.search, names_within(call.args[0])))
