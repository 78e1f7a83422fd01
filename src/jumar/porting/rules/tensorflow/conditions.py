"""Conditions under which rules report a node."""

import ast
import re

from jumar.porting.rewriting import View
from jumar.porting.rewriting.editing import argument, literal
from jumar.porting.rules.tensorflow.concerned import uses_tensorflow
from jumar.porting.rules.tensorflow.cross_shard_optimizer import tests_for_tpu
from jumar.porting.rules.tensorflow.host_sessions import is_host_only
from jumar.porting.rules.tensorflow.training_scripts import trains
from jumar.porting.script.expressions import (
    argument_values,
    is_none,
    last_name,
    method_name,
    names_within,
)
from jumar.porting.script.nodes import walk

_MAPS = ("map", "flat_map", "interleave", "apply", "filter", "map_with_legacy_function")
_TRAINING = ("minimize", "apply_gradients", "compute_gradients")
_SESSIONS = ("tensorflow.Session", "tensorflow.InteractiveSession")
_PADDED_WITHOUT_REST = "tensorflow.contrib.data.padded_batch_and_drop_remainder"
_MAX_CALLERS = 4
_RANK_WORDS = ("rank", "chief", "master", "hvd", "is_main")
_QUEUES = re.compile(r"\bstart_queue_runners\b|\bQueueRunner\b|enqueue")
_CLASS_TESTS = ("builtins.isinstance", "builtins.issubclass", "builtins.print")


def has_devices(_: ast.AST, view: View) -> bool:
    """Whether the port is for several devices."""
    return view.options.distributed


def has_loss_scale(_: ast.AST, view: View) -> bool:
    """Whether the port adds a loss scale."""
    return view.options.loss_scale is not None


def has_profiling(_: ast.AST, view: View) -> bool:
    """Whether the port enables the NPU's profiler."""
    return view.options.profiling


def is_in_tensorflow_script(_: ast.AST, view: View) -> bool:
    """Whether the script uses TensorFlow at all."""
    return uses_tensorflow(view)


def is_called_directly(call: ast.Call, view: View) -> bool:
    """Whether a call names the library's class itself, not a subclass in the tree."""
    return view.kinds.called(call) == view.module.name_of(call.func)


def is_mapped(node: ast.AST, view: View) -> bool:
    """Whether a node is in a function that is mapped over a data set of the module.

    That is a lambda within the call, or a function whose name is passed to it.
    """
    functions: list[ast.FunctionDef | ast.AsyncFunctionDef] = []
    child: ast.AST = node
    for enclosing in view.module.scopes.ancestors(node):
        # The receiver of a method call is not an argument.
        if (
            isinstance(enclosing, ast.Call)
            and child is not enclosing.func
            and _maps(enclosing, view)
        ):
            return True
        child = enclosing
        if isinstance(enclosing, ast.FunctionDef | ast.AsyncFunctionDef):
            functions.append(enclosing)
    names = {function.name for function in functions}
    return any(
        not names.isdisjoint(names_within(value))
        for call in view.module.calls
        if _maps(call, view)
        for value in argument_values(call)
    )


def fills_a_queue(call: ast.Call, view: View) -> bool:
    """Whether a thread runs a function that enqueues elements in the graph."""
    target = argument(call, "target", 1)
    if target is None:
        return False
    name = last_name(target)
    bodies = [target] if isinstance(target, ast.Lambda) else _functions_named(name, view)
    return any("enqueue" in view.module.source(body) for body in bodies)


def _functions_named(name: str, view: View) -> list[ast.AST]:
    """The functions and methods of the module with a name."""
    return [
        node
        for node in view.module.scopes.nodes
        if isinstance(node, ast.FunctionDef) and node.name == name
    ]


def has_queues(_: ast.AST, view: View) -> bool:
    """Whether a script fills queues of the graph, or starts threads that do."""
    return bool(_QUEUES.search(view.module.text))


def is_in_graph(node: ast.AST, view: View) -> bool:
    """Whether a node is not in a function that is mapped over a data set."""
    return not is_mapped(node, view)


def creates_estimator(call: ast.Call, view: View) -> bool:
    """Whether a call of tf.contrib.learn creates or trains an estimator."""
    names = ("Estimator", "Classifier", "Regressor", "Experiment", "learn_runner.run")
    return (view.kinds.called(call) or "").endswith(names)


def is_cudnn_only(call: ast.Call, view: View) -> bool:
    """Whether a cuDNN layer is not one of the variants that run on any device."""
    name = (view.kinds.called(call) or "").rpartition(".")[2]
    return not name.startswith("CudnnCompatible")


def is_class(call: ast.Call, view: View) -> bool:
    """Whether the callee has the name of a class."""
    return (view.kinds.called(call) or "").rpartition(".")[2][:1].isupper()


def is_full_trace(call: ast.Call, view: View) -> bool:
    """Whether the options of a run request a full trace."""
    return "FULL_TRACE" in view.module.source(call)


def is_time_major(call: ast.Call, _: View) -> bool:
    """Whether the first axis of a recurrent network's input is time."""
    return literal(argument(call, "time_major")) is True


def is_not_for_cpus(call: ast.Call, _: View) -> bool:
    """Whether a device query is not limited to CPUs."""
    return not call.args or literal(call.args[0]) != "CPU"


def is_only_for_tpus(call: ast.Call, view: View) -> bool:
    """Whether a script reaches a call only if it is to use a TPU."""
    return any(tests_for_tpu(enclosing) for enclosing in view.module.scopes.ancestors(call))


def is_not_tool(_: ast.AST, view: View) -> bool:
    """Whether a script trains or opens no session: a tool opens one and does not train."""
    return trains(view) or not any(
        view.kinds.called(call) in _SESSIONS for call in view.module.calls
    )


def is_for_one_rank(call: ast.Call, view: View) -> bool:
    """Whether a call is guarded by a test of the rank, or all calls of its function are."""
    return _is_for_one_rank(call, view, 0)


def _is_for_one_rank(node: ast.AST, view: View, depth: int) -> bool:
    child = node
    for enclosing in view.module.scopes.ancestors(node):
        if isinstance(enclosing, ast.If) and _tests_rank(enclosing, view):
            return True
        body: object = getattr(enclosing, "body", None)
        if isinstance(body, list) and child in body:
            # Guarded by an earlier `if rank != 0: return`.
            for earlier in body[: body.index(child)]:  # pyright: ignore[reportArgumentType]
                if (
                    isinstance(earlier, ast.If)
                    and isinstance(earlier.body[-1], ast.Return | ast.Continue)
                    and _tests_rank(earlier, view)
                ):
                    return True
        child = enclosing
    function = view.module.function(node)
    if function is None or depth > _MAX_CALLERS:
        return False
    callers = [call for call in view.module.calls if last_name(call.func) == function.name]
    return bool(callers) and all(_is_for_one_rank(call, view, depth + 1) for call in callers)


def _tests_rank(test: ast.If, view: View) -> bool:
    return any(word in view.module.source(test.test).lower() for word in _RANK_WORDS)


def is_passed_on(node: ast.Name | ast.Attribute, view: View) -> bool:
    """Whether a class is passed as an argument, returned, or an element of a table."""
    call = view.module.passed_to(node)
    if call is not None:
        return view.module.name_of(call.func) not in _CLASS_TESTS
    return isinstance(view.module.parent(node), ast.Return | ast.IfExp | ast.Dict | ast.List)


def trains_in_branch(call: ast.Call, view: View) -> bool:
    """Whether a branch of a conditional (a lambda or a function of the module) trains."""
    nodes: list[ast.AST] = [*argument_values(call)]
    for branch in list(nodes):
        if isinstance(branch, ast.Name):
            nodes += [
                binding.node
                for binding in view.module.bindings(branch)
                if binding.kind == "function"
            ]
    return any(method_name(inner) in _TRAINING for node in nodes for inner in walk(node))


def is_padded_batch(call: ast.Call, view: View) -> bool:
    """Whether a call pads the batches of a data set."""
    if view.module.name_of(call.func) == _PADDED_WITHOUT_REST:
        return True
    if not isinstance(call.func, ast.Attribute) or call.func.attr != "padded_batch":
        return False
    kind = view.kinds.of(call.func.value)
    return kind == "Dataset" or (kind is None and view.module.imports("tensorflow"))


def pads_to_contents(call: ast.Call, view: View) -> bool:
    """Whether the shapes of padded batches depend on their contents."""
    shapes = _padded_shapes(call, view)
    return shapes is None or any(
        is_none(node) or (isinstance(node, ast.Attribute) and node.attr == "output_shapes")
        for node in walk(shapes)
    )


def pads_to_named_shapes(call: ast.Call, view: View) -> bool:
    """Whether the shapes of padded batches are given by a name whose value is not visible."""
    return isinstance(_padded_shapes(call, view), ast.Name | ast.Attribute)


def _padded_shapes(call: ast.Call, view: View) -> ast.expr | None:
    """The shapes to which batches are padded; for a name, its value if it is bound only once."""
    shapes = argument(call, "padded_shapes", 1)
    if isinstance(shapes, ast.Name):
        value = view.module.assigned_value(shapes)
        if isinstance(value, ast.Tuple | ast.List | ast.Dict):
            return value
    return shapes


def stays_open(call: ast.Call, view: View) -> bool:
    """Whether a session is assigned to a variable, and neither closed nor passed on."""
    statement = view.module.parent(call)
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        return False
    target = statement.targets[0]
    if not isinstance(target, ast.Name) or is_host_only(call, view):
        return False
    scope, _ = view.module.scopes.lookup(target)
    return scope is not None and not any(
        _closes(reference, view) for reference in scope.references.get(target.id, [])
    )


def _closes(reference: ast.Name, view: View) -> bool:
    """Whether a use of a session closes it, passes it on, or stores it."""
    parent = view.module.parent(reference)
    if isinstance(parent, ast.Attribute):
        return parent.attr in ("close", "__exit__", "__enter__")
    return isinstance(
        parent, ast.withitem | ast.Return | ast.Yield | ast.Assign | ast.Tuple | ast.List | ast.Dict
    )


def _maps(call: ast.Call, view: View) -> bool:
    """Whether a call maps, or may map, functions over a data set."""
    name = view.module.name_of(call.func) or ""
    if name.startswith(("tensorflow.data.experimental.", "tensorflow.contrib.data.")):
        return True
    return (
        isinstance(call.func, ast.Attribute)
        and call.func.attr in _MAPS
        # The kind of a function's parameter is unknown.
        and view.kinds.of(call.func.value) in ("Dataset", None)
        and not name.startswith("tensorflow.")
    ) or name == "tensorflow.data.Dataset.from_generator"
