"""The kind of an expression's value: a tf.data dataset, a session, an optimizer.

Rules act on a method (`x.batch(8)`, `model.fit(...)`) only if the kind of `x` is known to be the
one they are written for; a method of the same name in another library is never touched.
"""

import ast

from jumar.porting.script.constructors import DATASET_METHODS, Kind, kind_of_call
from jumar.porting.script.expressions import is_none, method_name
from jumar.porting.script.module import Module
from jumar.porting.script.nodes import walk
from jumar.porting.script.scopes import Binding

_WRAPPER = "npu_bridge.npu_init.npu_distributed_optimizer_wrapper"
"""Accepts TensorFlow optimizers, Keras optimizers, and names of Keras optimizers."""
_METHODS: dict[tuple[str, str], str] = {
    ("Supervisor", "managed_session"): "Session",
    ("Supervisor", "prepare_or_wait_for_session"): "Session",
    ("RunConfig", "replace"): "RunConfig",
    ("Session", "as_default"): "Session",
    ("Session", "__enter__"): "Session",
}
_MAX_DEPTH = 40
"""Maximum number of steps from one expression to another: longer chains are loops."""
_UNKNOWN = ""
_UNDECIDED = "undecided"
"""The kind of None, and of an expression that is still being computed: compatible with any."""


class Kinds:
    """The kinds of a module's expressions.

    Args:
        module: The module.
        others: The kinds of the modules that it imports, by path.
    """

    def __init__(self, module: Module, others: "dict[str, Kinds] | None" = None) -> None:
        self.module = module
        self._others: dict[str, Kinds] = {} if others is None else others
        self._others[module.path] = self
        self._known: dict[ast.AST, str] = {}
        self._attributes: dict[ast.ClassDef, dict[str, list[ast.expr]]] = {}
        self._returns: dict[str, str] = {}

    def of(self, node: ast.expr | None) -> Kind | None:
        """The kind of an expression's value, or None if it is unknown."""
        kind = self._of(node, 0) if node is not None else _UNKNOWN
        return kind if kind not in (_UNKNOWN, _UNDECIDED) else None  # pyright: ignore[reportReturnType]

    def defines(self, call: ast.Call) -> bool:
        """Whether the called method is known to be defined in the tree."""
        return isinstance(call.func, ast.Attribute) and any(
            isinstance(part, ast.FunctionDef) and part.name == call.func.attr
            for _, class_node in self._instance(call.func.value, 0)
            for part in class_node.body
        )

    def called(self, call: ast.Call) -> str | None:
        """The qualified name of the called function or, for a class of the tree, its library class.

        A call of `class MySession(tf.Session)` counts as one of `tf.Session`, unless MySession has
        its own `__init__`.
        """
        name = self.module.name_of(call.func)
        if name is None or not name.startswith("tree:"):
            return name
        for ancestor in self.module.lineage(name):
            if not ancestor.startswith("tree:"):
                return ancestor
            module, node = self.module.definition(ancestor)
            if module is None or not isinstance(node, ast.ClassDef) or _has_init(node):
                return name
        return name

    def possible_classes(self, node: ast.expr) -> list[tuple[Module, ast.expr]]:
        """The classes that a call of an expression without a qualified name may instantiate.

        `self.optimizer(lr)` calls the class assigned in `self.optimizer = tf.train.AdamOptimizer`,
        `OPTIMIZERS[name](lr)` a class from a table.

        Returns:
            The expressions that name the classes, with their modules; empty if there may be others.
        """
        return self._classes_of(node, 0) or []

    def _classes_of(self, node: ast.expr, depth: int) -> list[tuple[Module, ast.expr]] | None:
        if depth > _MAX_DEPTH:
            return None
        if self.module.name_of(node) is not None:
            return [(self.module, node)]
        if isinstance(node, ast.IfExp):
            return self._classes_of_all([node.body, node.orelse], depth)
        if isinstance(node, ast.Dict):
            return self._classes_of_all(node.values, depth)
        if isinstance(node, ast.Subscript):
            table = self._table(node.value)
            return self._classes_of_all(table.values, depth) if table is not None else None
        if isinstance(node, ast.Name):
            bindings = self.module.bindings(node)
            if any(binding.kind != "assignment" or binding.value is None for binding in bindings):
                return None
            values = [binding.value for binding in bindings if binding.value is not None]
            # `optimizer = optimizer(lr)` calls the class assigned before.
            return self._classes_of_all(
                [value for value in values if not _calls(value, node.id)], depth
            )
        if isinstance(node, ast.Attribute):
            for module, class_node in self._instance(node.value, depth):
                kinds = self._in(module)
                if values := kinds._values(class_node, node.attr):
                    return kinds._classes_of_all(values, depth)
        return None

    def _classes_of_all(
        self, values: list[ast.expr], depth: int
    ) -> list[tuple[Module, ast.expr]] | None:
        classes: list[tuple[Module, ast.expr]] = []
        for value in values:
            value_classes = self._classes_of(value, depth + 1)
            if value_classes is None:
                return None
            classes += value_classes
        return classes

    def _table(self, node: ast.expr) -> ast.Dict | None:
        """The dictionary that a name refers to, unless entries are added to it."""
        if isinstance(node, ast.Dict):
            return node
        if not isinstance(node, ast.Name):
            return None
        value = self.module.assigned_value(node)
        uses = [self.module.parent(use) for use in self.module.uses(node)]
        if any(
            (isinstance(use, ast.Subscript) and not isinstance(use.ctx, ast.Load))
            or (isinstance(use, ast.Attribute) and use.attr in ("update", "setdefault"))
            for use in uses
        ):
            return None
        return value if isinstance(value, ast.Dict) else None

    def _of(self, node: ast.expr, depth: int) -> str:
        if node in self._known:
            return self._known[node]
        if depth > _MAX_DEPTH:
            return _UNKNOWN
        self._known[node] = _UNDECIDED
        kind = self._compute(node, depth + 1)
        # A kind that depends on itself is still undecided, but may be known later.
        if kind == _UNDECIDED:
            del self._known[node]
        else:
            self._known[node] = kind
        return kind

    def _compute(self, node: ast.expr, depth: int) -> str:
        if isinstance(node, ast.Call):
            return self._call(node, depth)
        if isinstance(node, ast.Name):
            return self._common_kind(
                [self._bound(binding, depth) for binding in self.module.bindings(node)]
            )
        if isinstance(node, ast.Attribute):
            return self._attribute(node, depth)
        if isinstance(node, ast.IfExp):
            return self._common_kind([self._of(node.body, depth), self._of(node.orelse, depth)])
        if isinstance(node, ast.BoolOp):
            return self._of(node.values[-1], depth)
        return _UNKNOWN

    def _call(self, node: ast.Call, depth: int) -> str:
        name = self.module.name_of(node.func)
        if name is not None:
            for ancestor in self.module.lineage(name):
                kind = kind_of_call(ancestor)
                if kind:
                    return kind
            if name == _WRAPPER:
                return self._wrapped(node, depth)
            if name.startswith("tree:"):
                return self._returned(name, depth)
        elif class_nodes := self._classes_of(node.func, depth):
            return self._common_kind(
                [
                    kind_of_call(module.name_of(class_node) or "") or _UNKNOWN
                    for module, class_node in class_nodes
                ]
            )
        if isinstance(node.func, ast.Attribute):
            kind = self._of(node.func.value, depth)
            if kind == "Dataset":
                return kind if node.func.attr in DATASET_METHODS else _UNKNOWN
            if kind == _UNDECIDED:
                return _UNDECIDED
            method_kind = _METHODS.get((kind, node.func.attr))
            return method_kind or self._method(node, depth)
        return _UNKNOWN

    def _wrapped(self, call: ast.Call, depth: int) -> str:
        """The kind of the optimizer that a wrapper returns."""
        by_name = [passed.value for passed in call.keywords if passed.arg in ("optimizer", None)]
        inner = (call.args or by_name or [None])[0]
        if isinstance(inner, ast.Constant) and isinstance(inner.value, str):
            return "KerasOptimizer"
        kind = self._of(inner, depth) if inner is not None else _UNKNOWN
        if kind == _UNKNOWN and not self._compiles(call):
            return "Optimizer"
        return kind

    def _compiles(self, node: ast.expr) -> bool:
        """Whether an expression is passed to `model.compile(...)`, which accepts any optimizer."""
        outer = self.module.parent(node)
        if isinstance(outer, ast.Assign) and isinstance(outer.targets[0], ast.Name):
            return any(self._compiles(use) for use in self.module.uses(outer.targets[0]))
        return method_name(self.module.passed_to(node)) == "compile"

    def _returned(self, name: str, depth: int) -> str:
        """The kind of the value that a function of the tree returns, if all its returns agree."""
        if name not in self._returns:
            # Undecided while it is being resolved: otherwise a function that returns itself in many
            # places would be followed in every order.
            self._returns[name] = _UNDECIDED
            kind = self._compute_returned(name, depth)
            if kind == _UNDECIDED:
                del self._returns[name]
                return kind
            self._returns[name] = kind
        return self._returns[name]

    def _compute_returned(self, name: str, depth: int) -> str:
        module, node = self.module.definition(name)
        if module is None or not isinstance(node, ast.FunctionDef):
            return _UNKNOWN
        return self._in(module)._result(node, depth)

    def _in(self, module: Module) -> "Kinds":
        """The kinds of another module of the tree."""
        if module is self.module:
            return self
        kinds = self._others.get(module.path)
        return kinds if kinds and kinds.module is module else Kinds(module, self._others)

    def _result(self, function: ast.FunctionDef, depth: int) -> str:
        """The kind of the value that a function of this module returns."""
        returned_values = [
            inner.value
            for inner in walk(function)
            if isinstance(inner, ast.Return)
            and inner.value is not None
            and self.module.function(inner) is function
        ]
        return self._common_kind([self._of(value, depth) for value in returned_values])

    def _method(self, call: ast.Call, depth: int) -> str:
        """The kind of the value that a method of a class of the tree returns."""
        assert isinstance(call.func, ast.Attribute)
        for module, class_node in self._instance(call.func.value, depth):
            for part in class_node.body:
                if isinstance(part, ast.FunctionDef) and part.name == call.func.attr:
                    return self._in(module)._result(part, depth)
        return _UNKNOWN

    def _instance(self, node: ast.expr, depth: int) -> list[tuple[Module, ast.ClassDef]]:
        """The class that an expression is an instance of, and its ancestors within the tree."""
        if depth > _MAX_DEPTH:
            return []
        if isinstance(node, ast.Name):
            if node.id == "self":
                class_node = self.module.class_of(node)
                if class_node is None:
                    return []
                return [(self.module, class_node), *self._ancestors(class_node)]
            value = self.module.assigned_value(node)
            if value is not None:
                return self._instance(value, depth + 1)
        if isinstance(node, ast.Call):
            return self._classes(self.module.name_of(node.func) or "")
        return []

    def _classes(self, name: str) -> list[tuple[Module, ast.ClassDef]]:
        definitions = [self.module.definition(ancestor) for ancestor in self.module.lineage(name)]
        return [
            (module, node)
            for module, node in definitions
            if module is not None and isinstance(node, ast.ClassDef)
        ]

    def _ancestors(self, class_node: ast.ClassDef) -> list[tuple[Module, ast.ClassDef]]:
        return [
            definition
            for base in class_node.bases
            for definition in self._classes(self.module.name_of(base) or "")
        ]

    def _bound(self, binding: Binding, depth: int) -> str:
        if binding.kind == "argument":
            return self._argument(binding.node, depth)
        if binding.value is None or binding.kind == "loop":
            return _UNKNOWN
        if is_none(binding.value):
            return _UNDECIDED
        return self._of(binding.value, depth)

    def _argument(self, node: ast.AST, depth: int) -> str:
        """The kind of a function's argument, if all calls within the module pass the same."""
        function = self.module.parent(self.module.parent(node) or node)
        if not isinstance(function, ast.FunctionDef) or not isinstance(node, ast.arg):
            return _UNKNOWN
        if node.annotation is not None:
            kind = kind_of_call(self.module.name_of(node.annotation) or "")
            if kind:
                return kind
        names = [argument.arg for argument in function.args.args]
        scope = self.module.scopes.scope_of(self.module.parent(function) or function)
        kinds: list[str] = []
        for reference in scope.references.get(function.name, []):
            call = self.module.parent(reference)
            if not isinstance(call, ast.Call) or call.func is not reference:
                return _UNKNOWN
            passed_values = {passed.arg: passed.value for passed in call.keywords}
            passed_values |= dict(zip(names, call.args, strict=False))
            if node.arg in passed_values:
                kinds.append(self._of(passed_values[node.arg], depth))
        return self._common_kind(kinds)

    def _attribute(self, node: ast.Attribute, depth: int) -> str:
        """The kind of `self.name` or `thing.name`, if all assignments in the class agree."""
        for module, class_node in self._instance(node.value, depth):
            kind = self._in(module)._assigned(class_node, node.attr, depth)
            if kind != _UNKNOWN:
                return kind
        return _UNKNOWN

    def _assigned(self, class_node: ast.ClassDef, name: str, depth: int) -> str:
        return self._common_kind(
            [self._of(value, depth) for value in self._values(class_node, name)]
        )

    def _values(self, class_node: ast.ClassDef, name: str) -> list[ast.expr]:
        """The values that a class assigns to an attribute, besides None."""
        if class_node not in self._attributes:
            assigned_values: dict[str, list[ast.expr]] = {}
            for inner in walk(class_node):
                if isinstance(inner, ast.Assign):
                    for target in inner.targets:
                        if isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name):
                            assigned_values.setdefault(target.attr, []).append(inner.value)
            self._attributes[class_node] = assigned_values
        return [value for value in self._attributes[class_node].get(name, []) if not is_none(value)]

    def _common_kind(self, kinds: list[str]) -> str:
        known_kinds = {kind for kind in kinds if kind != _UNDECIDED}
        if len(known_kinds) == 1:
            return known_kinds.pop()
        return _UNKNOWN if known_kinds or not kinds else _UNDECIDED


def _calls(value: ast.expr, name: str) -> bool:
    return (
        isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id == name
    )


def _has_init(node: ast.ClassDef) -> bool:
    return any(isinstance(part, ast.FunctionDef) and part.name == "__init__" for part in node.body)
