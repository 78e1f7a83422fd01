"""Where a script creates its optimizers, and where they have to be wrapped."""

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from jumar.porting.rewriting import Replacement, View
from jumar.porting.rewriting.editing import insert_before
from jumar.porting.rewriting.editing import wrap as wrapped
from jumar.porting.rules.tensorflow.optimizer_lives import (
    Life,
    first_use,
    is_followed,
    lives,
    may_follow,
    mentions,
)
from jumar.porting.script.expressions import argument_values
from jumar.porting.script.nodes import walk
from jumar.porting.script.scopes import Scope

NPU = "npu_bridge.npu_init."
LOSS_SCALED = frozenset({f"{NPU}NPULossScaleOptimizer", f"{NPU}NPUOptimizer"})
OTHER_LOSS_SCALES = frozenset(
    {
        "tensorflow.contrib.mixed_precision.LossScaleOptimizer",
        "tensorflow.train.experimental.MixedPrecisionLossScaleOptimizer",
        "tensorflow.train.experimental.enable_mixed_precision_graph_rewrite",
    }
)
DISTRIBUTED = frozenset(
    {
        f"{NPU}NPUDistributedOptimizer",
        f"{NPU}npu_distributed_optimizer_wrapper",
        f"{NPU}npu_tf_optimizer",
        f"{NPU}NPUOptimizer",
        "horovod.tensorflow.DistributedOptimizer",
        "horovod.tensorflow.keras.DistributedOptimizer",
        "horovod.keras.DistributedOptimizer",
    }
)
_OF_OPTIMIZERS = frozenset(
    "minimize compute_gradients apply_gradients get_slot get_slot_names get_name variables".split()  # noqa: SIM905
)
_COMPUTING = frozenset({"minimize", "compute_gradients"})
_WITH_OWN_GRAPH = ("Estimator", "RunConfig")


@dataclass(frozen=True, kw_only=True)
class Site:
    """A place at which one optimizer can be wrapped.

    Args:
        node: The expression to wrap, or the statement before which a line wraps `name`.
        name: The variable that is wrapped; empty if an expression is.
        creations: The expressions that create the optimizer.
        members: Attributes of the optimizer that the script uses and not all optimizers have.
        in_estimator: Whether it is passed to an Estimator, which builds its own graph.
    """

    node: ast.expr | ast.stmt
    name: str
    creations: tuple[ast.expr, ...]
    members: frozenset[str] = frozenset()
    in_estimator: bool = False

    def replacements(
        self, view: View, before: str, after: str, *, outside: bool = False
    ) -> tuple[Replacement, ...]:
        """Return the replacements that wrap the optimizer; `outside` also other wrappers."""
        if isinstance(self.node, ast.stmt):
            line = f"{self.name} = {before}{self.name}{after}"
            return (insert_before(view.module, self.node, line),)
        changes = wrapped(view.module, self.node, before, after)
        return tuple(replace(change, width=change.width + outside) for change in changes)


@dataclass(frozen=True, kw_only=True)
class _Wrappers:
    """The wrappers that are looked for, and those that stay around them."""

    names: frozenset[str]
    outside: frozenset[str]


def sites(
    view: View, wrappers: frozenset[str], *, outside: frozenset[str] = frozenset()
) -> Iterator[Site]:
    """Find the optimizers that compute gradients and are not yet wrapped.

    An optimizer that only applies gradients computed by `tf.gradients` is skipped: wrappers act in
    `compute_gradients`.

    Args:
        view: The module.
        wrappers: Qualified names of the wrappers to look for.
        outside: Qualified names of wrappers that stay around the new one.
    """
    visited: set[tuple[Scope | ast.ClassDef, str]] = set()
    looked = _Wrappers(names=wrappers, outside=outside)
    for call in optimizers(view):
        if (
            view.module.name_of(call.func) in outside
            or _is_inner(call, view, outside)
            or _is_wrapped(call, view, wrappers)
        ):
            continue
        variable = _variable(call, view)
        if variable is None:
            yield from _unnamed(call, view)
            continue
        if variable in visited:
            continue
        visited.add(variable)
        home_scope, name = variable
        if isinstance(home_scope, ast.ClassDef):
            yield from _of_attribute(home_scope, name, view, looked)
        else:
            yield from _of_name(home_scope, name, view, looked)


def creates_optimizer(call: ast.Call, view: View) -> bool:
    """Whether a call creates a TensorFlow optimizer, or a wrapper around one."""
    name = view.module.name_of(call.func)
    if name is None:
        # A method's result is wrapped where it is created; a class in a variable is called here.
        return bool(view.kinds.possible_classes(call.func)) and view.kinds.of(call) == "Optimizer"
    if name.startswith("tree:"):
        module, node = view.module.definition(name)
        # The result of a function of the tree is wrapped where that function creates it.
        if module is None or not isinstance(node, ast.ClassDef):
            return False
    elif not any(word in name for word in ("ptimizer", "graph_rewrite")):
        return False
    return view.kinds.of(call) == "Optimizer"


def optimizers(view: View) -> list[ast.Call]:
    """All calls that create an optimizer, outside classes that are optimizers themselves."""
    return [
        call
        for call in view.module.calls
        if creates_optimizer(call, view) and not _within_optimizer(call, view)
    ]


def unreached_classes(view: View) -> Iterator[ast.expr]:
    """References to optimizer classes that no call in the module instantiates.

    They are in tables, arguments or attributes, and called elsewhere.
    """
    called_classes = {
        class_node
        for call in optimizers(view)
        if view.module.name_of(call.func) is None
        for _, class_node in view.kinds.possible_classes(call.func)
    }
    for node in view.module.scopes.nodes:
        if not isinstance(node, ast.Attribute | ast.Name) or not isinstance(node.ctx, ast.Load):
            continue
        name = view.module.name_of(node) or ""
        if not (
            name.startswith(("tensorflow.train.", "tensorflow.contrib.opt."))
            and name.endswith("Optimizer")
            and name != "tensorflow.train.Optimizer"
        ):
            continue
        tables = ast.Dict | ast.List | ast.Assign | ast.Return | ast.IfExp | ast.keyword
        if isinstance(view.module.parent(node), tables) and node not in called_classes:
            yield node


def _is_wrapped(call: ast.Call, view: View, wrappers: frozenset[str]) -> bool:
    """Whether an optimizer, or one that it wraps, is created by one of the wrappers."""
    current: ast.expr = call
    for _ in range(10):
        if not isinstance(current, ast.Call):
            return False
        if view.module.name_of(current.func) in wrappers:
            return True
        inner = [value for value in argument_values(current) if view.kinds.of(value) == "Optimizer"]
        if not inner:
            return False
        current = inner[0]
    return False


def _within_optimizer(call: ast.Call, view: View) -> bool:
    """Whether a call is in a class that is itself an optimizer, which is wrapped as a whole."""
    class_node = view.module.class_of(call)
    return class_node is not None and any(
        name.startswith(("tensorflow.train.", "tensorflow.contrib.opt."))
        and name.endswith("Optimizer")
        for base in class_node.bases
        for name in view.module.lineage(view.module.name_of(base) or "")
    )


def _is_inner(call: ast.Call, view: View, outside: frozenset[str]) -> bool:
    """Whether an optimizer is passed directly to a wrapper, which is wrapped instead."""
    outer = view.module.passed_to(call)
    return outer is not None and _is_wrapper(outer, view, outside)


def values_of(optimizer: ast.expr, view: View) -> list[ast.expr]:
    """An expression and, if it is a name, the values assigned to it."""
    bindings = view.module.bindings(optimizer) if isinstance(optimizer, ast.Name) else []
    return [optimizer, *(binding.value for binding in bindings if binding.value is not None)]


def is_distributed(node: ast.AST, view: View) -> bool:
    """Whether a node creates an optimizer that averages its gradients over the ranks."""
    return isinstance(node, ast.Call) and view.module.name_of(node.func) in DISTRIBUTED


def _is_wrapper(call: ast.Call, view: View, outside: frozenset[str]) -> bool:
    return view.kinds.of(call) == "Optimizer" and view.module.name_of(call.func) not in outside


def _variable(call: ast.Call, view: View) -> tuple[Scope | ast.ClassDef, str] | None:
    """The variable that an optimizer is assigned to."""
    value: ast.AST = call
    parent = view.module.parent(value)
    while isinstance(parent, ast.IfExp) and value is not parent.test:
        value, parent = parent, view.module.parent(parent)
    if not isinstance(parent, ast.Assign) or len(parent.targets) != 1:
        return None
    target = parent.targets[0]
    if isinstance(target, ast.Name):
        home_scope, _ = view.module.scopes.lookup(target)
        return (home_scope, target.id) if home_scope is not None else None
    if (
        isinstance(target, ast.Attribute)
        and isinstance(target.value, ast.Name)
        and target.value.id == "self"
    ):
        class_node = view.module.class_of(call)
        return (class_node, target.attr) if class_node is not None else None
    return None


def _unnamed(call: ast.Call, view: View) -> Iterator[Site]:
    """The site of an optimizer without a name: `tf.train.AdamOptimizer(lr).minimize(loss)`."""
    parent = view.module.parent(call)
    if isinstance(parent, ast.Attribute):
        if parent.attr in ("minimize", "compute_gradients"):
            yield Site(node=call, name="", creations=(call,))
        return
    in_estimator = view.kinds.of(view.module.passed_to(call)) in _WITH_OWN_GRAPH
    yield Site(node=call, name="", creations=(call,), in_estimator=in_estimator)


def _of_attribute(
    class_node: ast.ClassDef, name: str, view: View, wrappers: _Wrappers
) -> Iterator[Site]:
    """The sites of an optimizer in `self.name`."""
    values: list[ast.expr] = []
    uses: list[ast.expr] = []
    for node in walk(class_node):
        if not (
            isinstance(node, ast.Attribute)
            and node.attr == name
            and isinstance(node.value, ast.Name)
            and node.value.id == "self"
        ):
            continue
        parent = view.module.parent(node)
        if isinstance(parent, ast.Assign) and node in parent.targets:
            values.append(parent.value)
        else:
            uses.append(node)
    home = view.module.function(values[0]) or class_node
    for life in lives(values, uses, home, view):
        members = _members(life.uses, view)
        if "apply_gradients" in members and not members & _COMPUTING:
            continue
        calls = [
            call
            for call in _creations(life.values, view, wrappers)
            if not _is_inner(call, view, wrappers.outside)
        ]
        for call in _to_wrap(calls, life, home, view, wrappers):
            yield Site(node=call, name="", creations=(call,), members=members - _OF_OPTIMIZERS)


def _of_name(home_scope: Scope, name: str, view: View, wrappers: _Wrappers) -> Iterator[Site]:
    """The sites of an optimizer in a variable: its creations, or a line before its first use."""
    values = [binding.value for binding in home_scope.bindings[name] if binding.value is not None]
    references = home_scope.references.get(name, [])
    for life in lives(values, references, home_scope.node, view):
        calls = _creations(life.values, view, wrappers)
        rewraps = [call for call in calls if mentions(call, life.uses)]
        uses = [use for use in life.uses if not any(use in walk(call) for call in rewraps)]
        passed_to = [outer for use in uses if (outer := view.module.passed_to(use)) is not None]
        if any(_is_wrapper(outer, view, wrappers.outside) for outer in passed_to):
            # It is passed to a wrapper with its own name.
            continue
        members = _members(uses, view)
        if "apply_gradients" in members and not members & _COMPUTING:
            continue
        in_estimator = any(view.kinds.of(outer) in _WITH_OWN_GRAPH for outer in passed_to)
        own_members = members - _OF_OPTIMIZERS
        to_wrap = _to_wrap(calls, life, home_scope.node, view, wrappers)
        is_bare = not any(_is_wrapped(call, view, wrappers.names) for call in calls)
        first = first_use(home_scope.node, calls, uses, view)
        if first is not None and is_bare and (rewraps or len(calls) > 1):
            yield Site(
                node=first,
                name=name,
                creations=tuple(calls),
                members=own_members,
                in_estimator=in_estimator,
            )
            continue
        for call in to_wrap:
            yield Site(
                node=call,
                name="",
                creations=(call,),
                members=own_members,
                in_estimator=in_estimator,
            )


def _to_wrap(
    calls: list[ast.Call], life: Life, home: ast.AST, view: View, wrappers: _Wrappers
) -> list[ast.Call]:
    """The creations that have to be wrapped so that whatever the variable holds is wrapped."""
    rewraps = [call for call in calls if mentions(call, life.uses)]
    wrapped = [call for call in calls if _is_wrapped(call, view, wrappers.names)]
    statement = view.module.statement
    if wrapped:
        return [
            call
            for call in calls
            if call not in wrapped
            and call not in rewraps
            and not any(
                may_follow(statement(call), statement(around), home, view)
                for around in wrapped
                if around in rewraps
            )
        ]
    if not rewraps:
        return calls
    is_one_after_another = all(
        is_followed(statement(call), statement(rewraps[-1]), home, view) for call in rewraps[:-1]
    )
    return rewraps[-1:] if is_one_after_another else rewraps


def _creations(values: Sequence[ast.expr], view: View, wrappers: _Wrappers) -> list[ast.Call]:
    """The calls that may create the values, without the wrappers that stay outside."""
    return [
        call
        for value in values
        for call in _possible_calls(value)
        if creates_optimizer(call, view) and view.module.name_of(call.func) not in wrappers.outside
    ]


def _possible_calls(value: ast.expr) -> list[ast.Call]:
    if isinstance(value, ast.IfExp):
        return _possible_calls(value.body) + _possible_calls(value.orelse)
    return [value] if isinstance(value, ast.Call) else []


def _members(uses: Sequence[ast.expr], view: View) -> frozenset[str]:
    parents = [view.module.parent(use) for use in uses]
    return frozenset(parent.attr for parent in parents if isinstance(parent, ast.Attribute))
