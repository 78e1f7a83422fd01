"""The purpose of an input pipeline: training, or evaluation and prediction."""

import ast
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from jumar.porting.rewriting import Confidence, View
from jumar.porting.script.expressions import last_name, names_within
from jumar.porting.script.nodes import walk

_TRAIN = frozenset("train training trainer trainset traindata trn".split())  # noqa: SIM905
_OTHER = frozenset(
    "eval evaluate evaluation evaluator test testing val valid validate validation dev infer "  # noqa: SIM905
    "inference predict prediction predictions serving serve export valset valdata validset "
    "testset testdata devset evalset".split()
)
_FLAGS = frozenset({"is_training", "is_train", "training", "train", "istrain", "istraining"})
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_TRAINS = frozenset({"minimize", "compute_gradients", "apply_gradients"})
_TRAINING_WORDS = _TRAIN | frozenset({"minimize", "gradients", "optimizer", "optimize", "optim"})

Purpose = Literal["train", "other", "both", "unknown"]


@dataclass(frozen=True, kw_only=True)
class Use:
    """The purpose of a pipeline.

    Args:
        purpose: What its data is used for.
        confidence: How certain the purpose is.
        test: For `both`, an expression that is true in training.
    """

    purpose: Purpose
    confidence: Confidence = "likely"
    test: str = ""


def purpose_of(call: ast.Call, view: View) -> Use:
    """The purpose of the data set that a call returns.

    The closest evidence decides: a branch on `is_training`, the data set's variable name, an
    argument of the function, the function's name, whether it reads all of the data itself, names in
    the call, the function's callers, and finally the script.
    """
    return (
        _of_branch(call, view)
        or _of_target(call, view)
        or _of_argument(call, view)
        or _of_function(call, view)
        or _of_full_read(call, view)
        or _of_chain(call)
        or _of_callers(call, view)
        or _of_script(view)
        or Use(purpose="unknown", confidence="unsure")
    )


def named_purpose(names: Iterable[str]) -> Purpose | None:
    """The purpose that names such as `train_ds` suggest; None if they suggest neither or both."""
    words = {word.lower() for name in names for word in _WORD.findall(name)}
    trains, evaluates = bool(words & _TRAIN), bool(words & _OTHER)
    if trains == evaluates:
        return None
    return "train" if trains else "other"


def _of_branch(node: ast.AST, view: View) -> Use | None:
    child: ast.AST = node
    for enclosing in view.module.scopes.ancestors(node):
        if isinstance(enclosing, ast.If | ast.IfExp):
            meaning = _meaning(enclosing.test, view)
            body = enclosing.body if isinstance(enclosing.body, list) else [enclosing.body]
            orelse = enclosing.orelse if isinstance(enclosing.orelse, list) else [enclosing.orelse]
            if meaning is not None and child in body:
                return Use(purpose="train" if meaning else "other", confidence="certain")
            # The `else` of a test for evaluation may be training or prediction.
            if meaning is True and child in orelse:
                return Use(purpose="other", confidence="certain")
            if meaning is False and child in orelse and _is_negated(enclosing.test):
                return Use(purpose="train", confidence="certain")
        child = enclosing
    return None


def _is_negated(test: ast.expr) -> bool:
    return isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not)


def _meaning(test: ast.expr, view: View) -> bool | None:
    """Whether a test is true in training (True) or otherwise (False); None if it is unrelated."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        inner = _meaning(test.operand, view)
        return None if inner is None else not inner
    if isinstance(test, ast.Name | ast.Attribute):
        name = last_name(test)
        if name.lower() in _FLAGS:
            return True
        words = {word.lower() for word in _WORD.findall(name)}
        return False if words & _OTHER and {"is", "do"} & words else None
    if isinstance(test, ast.Compare) and len(test.ops) == 1:
        purpose = _value_purpose(test.comparators[0])
        if purpose is None:
            return None
        if isinstance(test.ops[0], ast.Eq | ast.Is):
            return purpose == "train"
        return None if purpose == "other" else False
    return None


def _value_purpose(value: ast.expr) -> Purpose | None:
    """The purpose of a value that a mode is compared with."""
    if isinstance(value, ast.Constant) and isinstance(value.value, str):
        return named_purpose([value.value])
    if isinstance(value, ast.Attribute) and value.attr.isupper():
        return named_purpose([value.attr.lower()])
    return None


def _of_target(call: ast.Call, view: View) -> Use | None:
    statement = view.module.statement(call)
    if not isinstance(statement, ast.Assign):
        return None
    purpose = named_purpose(map(last_name, statement.targets))
    return Use(purpose=purpose) if purpose else None


def _functions(node: ast.AST, view: View) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
    return [
        enclosing
        for enclosing in view.module.scopes.ancestors(node)
        if isinstance(enclosing, ast.FunctionDef | ast.AsyncFunctionDef)
    ]


def _of_argument(call: ast.Call, view: View) -> Use | None:
    for function in _functions(call, view):
        arguments = [*function.args.args, *function.args.kwonlyargs]
        for argument in arguments:
            if argument.arg.lower() in _FLAGS:
                return Use(purpose="both", confidence="certain", test=argument.arg)
        test = _mode_test(function, {argument.arg for argument in arguments}, view)
        if test:
            return Use(purpose="both", confidence="certain", test=test)
        if arguments and arguments[0].arg == "self":
            flag = _flag_of_self(function, view)
            if flag:
                return Use(purpose="both", test=f"self.{flag}")
    return None


def _mode_test(function: ast.AST, arguments: set[str], view: View) -> str | None:
    """The test `mode == tf.estimator.ModeKeys.TRAIN`, as it is written in the function."""
    for node in walk(function):
        if (
            isinstance(node, ast.Compare)
            and isinstance(node.left, ast.Name)
            and node.left.id in arguments
            and len(node.ops) == 1
            and isinstance(node.ops[0], ast.Eq)
            and _value_purpose(node.comparators[0]) == "train"
        ):
            return view.module.source(node)
    if "mode" in arguments:
        for node in view.module.scopes.nodes:
            if isinstance(node, ast.Attribute) and node.attr == "TRAIN":
                name = view.module.name_of(node) or ""
                if name.endswith("ModeKeys.TRAIN"):
                    return f"mode == {view.module.source(node)}"
    return None


def _flag_of_self(function: ast.AST, view: View) -> str | None:
    class_node = view.module.class_of(function)
    if class_node is None:
        return None
    for node in walk(class_node):
        if (
            isinstance(node, ast.Attribute)
            and isinstance(node.ctx, ast.Store)
            and isinstance(node.value, ast.Name)
            and node.value.id == "self"
            and node.attr.lower() in _FLAGS
        ):
            parent = view.module.parent(node)
            # `self.train = tf.data...` is a pipeline, not a flag.
            if isinstance(parent, ast.Assign) and isinstance(
                parent.value, ast.Name | ast.Constant | ast.Attribute | ast.Compare
            ):
                return node.attr
    return None


def _of_function(call: ast.Call, view: View) -> Use | None:
    for function in _functions(call, view):
        purpose = named_purpose([function.name])
        if purpose:
            return Use(purpose=purpose)
    class_node = view.module.class_of(call)
    purpose = named_purpose([class_node.name]) if class_node else None
    return Use(purpose=purpose) if purpose else None


def _of_full_read(call: ast.Call, view: View) -> Use | None:
    """Unknown for a function that reads a data set to its end without training.

    It may need every sample, to compute a mean or a count of the training data, or to copy it.
    """
    for function in _functions(call, view):
        names = names_within(function)
        words = {word.lower() for name in names for word in _WORD.findall(name)}
        if "OutOfRangeError" in names and not words & _TRAINING_WORDS:
            return Use(purpose="unknown", confidence="unsure")
    return None


def _of_chain(call: ast.Call) -> Use | None:
    """The purpose that names suggest, as in `tf.data.TFRecordDataset(train_files).batch(8)`."""
    purpose = named_purpose(name for name in names_within(call) if name != "FLAGS")
    return Use(purpose=purpose) if purpose else None


def _of_callers(call: ast.Call, view: View) -> Use | None:
    functions = _functions(call, view)
    if not functions:
        return None
    function = functions[-1]
    references = view.module.scopes.module.references.get(function.name, [])
    callers = [view.module.parent(reference) for reference in references]
    purposes: set[Purpose | None] = {
        _of_caller(caller, view) for caller in callers if isinstance(caller, ast.Call)
    }
    if len(purposes) == 1:
        purpose = purposes.pop()
        return Use(purpose=purpose) if purpose else None
    return None if not purposes else Use(purpose="unknown", confidence="unsure")


def _of_caller(caller: ast.Call, view: View) -> Purpose | None:
    use = (
        _of_branch(caller, view)
        or _of_target(caller, view)
        or _of_function(caller, view)
        or _of_chain(caller)
    )
    return use.purpose if use else None


def _of_script(view: View) -> Use | None:
    """Training if the script trains and has only one pipeline; otherwise by the script's name."""
    batches = 0
    trains = False
    for node in view.module.calls:
        if isinstance(node.func, ast.Attribute):
            batches += node.func.attr in ("batch", "padded_batch") and (
                view.kinds.of(node.func.value) == "Dataset"
            )
            batches += (
                view.module.name_of(node.func) == "tensorflow.data.experimental.map_and_batch"
            )
            trains = trains or node.func.attr in _TRAINS
            trains = trains or (
                node.func.attr == "fit" and view.kinds.of(node.func.value) == "KerasModel"
            )
    if trains and batches <= 1:
        return Use(purpose="train")
    file = view.module.path.rpartition("/")[2]
    purpose = named_purpose([file.removesuffix(".py")])
    if purpose == "other" and not trains:
        return Use(purpose="other")
    return Use(purpose="train") if purpose == "train" else None
