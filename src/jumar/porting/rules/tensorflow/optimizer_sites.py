"""Where a script creates its optimizers, and where they have to be wrapped."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass, replace

from jumar.porting.rewriting import Replacement, View
from jumar.porting.rewriting.editing import insert_before
from jumar.porting.rewriting.editing import wrap as wrapped
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


def sites(view: View, wrappers: frozenset[str]) -> Iterator[Site]:
    """Find the optimizers that compute gradients and are not yet wrapped.

    An optimizer that only applies gradients computed by `tf.gradients` is skipped: wrappers act in
    `compute_gradients`.

    Args:
        view: The module.
        wrappers: Qualified names of the wrappers to look for.
    """
    visited: set[tuple[Scope | ast.ClassDef, str]] = set()
    for call in optimizers(view):
        if _is_inner(call, view) or _is_wrapped(call, view, wrappers):
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
            yield from _of_attribute(home_scope, name, view, wrappers)
        else:
            yield from _of_name(home_scope, name, view, wrappers)


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


def method_calls(scope: Scope, name: str, view: View) -> dict[str, list[ast.Call]]:
    """The calls of a variable's methods: `opt.minimize(...)`."""
    calls: dict[str, list[ast.Call]] = {}
    for reference in scope.references.get(name, []):
        attribute = view.module.parent(reference)
        if isinstance(attribute, ast.Attribute):
            call = view.module.parent(attribute)
            if isinstance(call, ast.Call) and call.func is attribute:
                calls.setdefault(attribute.attr, []).append(call)
    return calls


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


def _is_inner(call: ast.Call, view: View) -> bool:
    """Whether an optimizer is passed directly to a wrapper, which is wrapped instead."""
    outer = view.module.passed_to(call)
    return outer is not None and _is_optimizer(outer, view)


def values_of(optimizer: ast.expr, view: View) -> list[ast.expr]:
    """An expression and, if it is a name, the values assigned to it."""
    bindings = view.module.bindings(optimizer) if isinstance(optimizer, ast.Name) else []
    return [optimizer, *(binding.value for binding in bindings if binding.value is not None)]


def is_distributed(node: ast.AST, view: View) -> bool:
    """Whether a node creates an optimizer that averages its gradients over the ranks."""
    return isinstance(node, ast.Call) and view.module.name_of(node.func) in DISTRIBUTED


def _is_optimizer(call: ast.expr, view: View) -> bool:
    return isinstance(call, ast.Call) and view.kinds.of(call) == "Optimizer"


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
    class_node: ast.ClassDef, name: str, view: View, wrappers: frozenset[str]
) -> Iterator[Site]:
    """The sites of an optimizer in `self.name`."""
    calls: list[ast.Call] = []
    members: set[str] = set()
    applies = computes = False
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
            calls += [call for call in _creations(parent.value) if creates_optimizer(call, view)]
        elif isinstance(parent, ast.Attribute):
            members.add(parent.attr)
            applies = applies or parent.attr == "apply_gradients"
            computes = computes or parent.attr in ("minimize", "compute_gradients")
    if applies and not computes:
        return
    outermost = [call for call in calls if not _is_inner(call, view)]
    if any(_is_wrapped(call, view, wrappers) for call in outermost):
        return
    rewraps = [call for call in outermost if _mentions_attribute(call, name)]
    own_members = frozenset(members - _OF_OPTIMIZERS)
    for call in rewraps or outermost:
        yield Site(node=call, name="", creations=(call,), members=own_members)


def _of_name(home_scope: Scope, name: str, view: View, wrappers: frozenset[str]) -> Iterator[Site]:
    """The sites of an optimizer in a variable: its creations, or a line before its first use."""
    values = [
        call
        for binding in home_scope.bindings[name]
        if binding.value is not None
        for call in _creations(binding.value)
        if creates_optimizer(call, view)
    ]
    if any(_is_wrapped(call, view, wrappers) for call in values):
        return
    rewraps = [call for call in values if _mentions(call, name)]
    uses = [
        use
        for use in home_scope.references.get(name, [])
        if not any(use in walk(call) for call in rewraps)
    ]
    passed_to = [outer for use in uses if (outer := view.module.passed_to(use)) is not None]
    if any(_is_optimizer(outer, view) for outer in passed_to):
        # It is passed to a wrapper with its own name.
        return
    methods = set(method_calls(home_scope, name, view))
    if "apply_gradients" in methods and not methods & {"minimize", "compute_gradients"}:
        return
    in_estimator = any(view.kinds.of(outer) in _WITH_OWN_GRAPH for outer in passed_to)
    members = frozenset(_members(uses, view) - _OF_OPTIMIZERS)
    first = _first_use(home_scope, values, uses, view)
    if first is not None and (rewraps or len(values) > 1):
        yield Site(
            node=first,
            name=name,
            creations=tuple(values),
            members=members,
            in_estimator=in_estimator,
        )
        return
    for call in rewraps[-1:] or values:
        yield Site(
            node=call, name="", creations=(call,), members=members, in_estimator=in_estimator
        )


def _creations(value: ast.expr) -> list[ast.Call]:
    """The calls that may create an expression's value."""
    if isinstance(value, ast.IfExp):
        return _creations(value.body) + _creations(value.orelse)
    return [value] if isinstance(value, ast.Call) else []


def _mentions(call: ast.Call, name: str) -> bool:
    return any(isinstance(node, ast.Name) and node.id == name for node in walk(call))


def _mentions_attribute(call: ast.Call, name: str) -> bool:
    return any(isinstance(node, ast.Attribute) and node.attr == name for node in walk(call))


def _members(uses: list[ast.Name], view: View) -> set[str]:
    parents = [view.module.parent(use) for use in uses]
    return {parent.attr for parent in parents if isinstance(parent, ast.Attribute)}


def _first_use(
    home_scope: Scope, values: list[ast.Call], uses: list[ast.Name], view: View
) -> ast.stmt | None:
    """The statement that first uses an optimizer, if a single line before it is sufficient.

    This is the case if it follows every creation of the optimizer, is not in a loop, and is in the
    block of all other uses or in one around it.
    """
    statements = [view.module.statement(use) for use in uses]
    if not statements or not values:
        return None
    statements.sort(key=lambda statement: view.module.span(statement)[0])
    creations = [view.module.statement(call) for call in values]
    creation_end = max(view.module.span(statement)[1] for statement in creations)
    blocks = _blocks(creations[0], home_scope, view)
    for statement in creations[1:]:
        other_blocks = _blocks(statement, home_scope, view)
        blocks = [block for block in blocks if block in other_blocks]
    if not blocks:
        return None
    # The innermost block that contains all creations, and the first use in it.
    owner, part = blocks[0]
    for statement in getattr(owner, part):
        start, end = view.module.span(statement)
        if start >= creation_end and any(start <= view.module.span(use)[0] < end for use in uses):
            is_first = all(view.module.span(use)[0] >= start for use in uses)
            loops = any(isinstance(enclosing, ast.For | ast.While) for enclosing, _ in blocks)
            return statement if is_first and not loops else None
    return None


def _blocks(statement: ast.stmt, home_scope: Scope, view: View) -> list[tuple[ast.AST, str]]:
    """The blocks around a statement within its function, the innermost first."""
    blocks: list[tuple[ast.AST, str]] = []
    current: ast.AST = statement
    while current is not home_scope.node:
        parent = view.module.parent(current)
        if parent is None:
            break
        for part in ("body", "orelse", "finalbody"):
            block = getattr(parent, part, None)
            if isinstance(block, list) and current in block:
                blocks.append((parent, part))
        current = parent
    return blocks
