"""Scopes, bindings and parents of a parsed script."""

import ast
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

from jumar.porting.script.nodes import children

BindingKind = Literal[
    "import", "assignment", "class", "function", "argument", "with", "loop", "other"
]
ScopeNode = (
    ast.Module
    | ast.FunctionDef
    | ast.AsyncFunctionDef
    | ast.Lambda
    | ast.ClassDef
    | ast.ListComp
    | ast.SetComp
    | ast.DictComp
    | ast.GeneratorExp
)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_OPENING = (*_FUNCTIONS, ast.Lambda, ast.ClassDef, *_COMPREHENSIONS)
_BINDING = (ast.Name, ast.Import, ast.ImportFrom, ast.Global, ast.Nonlocal, ast.ExceptHandler)


@dataclass(frozen=True, eq=False)
class Binding:
    """A place that binds a name.

    Args:
        kind: How it binds the name.
        node: The statement or argument.
        value: The expression that is assigned, entered by `with`, or looped over; None if there is
            no single one.
        module: For an import, the module with its leading dots, `..models`.
        member: For `from module import member`; empty for `import module`.
    """

    kind: BindingKind
    node: ast.AST
    value: ast.expr | None = None
    module: str = ""
    member: str = ""


@dataclass(eq=False)
class Scope:
    """The bindings of a function, class, comprehension or module.

    `elsewhere` maps names that are declared `global` or `nonlocal` to the scopes that bind them.
    """

    node: ScopeNode
    parent: "Scope | None"
    bindings: dict[str, list[Binding]] = field(default_factory=lambda: defaultdict(list))
    elsewhere: dict[str, "Scope"] = field(default_factory=lambda: {})
    stars: list[str] = field(default_factory=lambda: [])
    references: dict[str, list[ast.Name]] = field(default_factory=lambda: defaultdict(list))

    @property
    def is_class(self) -> bool:
        return isinstance(self.node, ast.ClassDef)


class Scopes:
    """The scopes of a module, and the parent of every node.

    Args:
        tree: The parsed script.
    """

    def __init__(self, tree: ast.Module) -> None:
        self.tree = tree
        self.module = Scope(tree, None)
        self.parents: dict[ast.AST, ast.AST] = {}
        self.nodes: list[ast.AST] = []
        self._scopes: dict[ast.AST, Scope] = {tree: self.module}
        self._names: dict[ast.Name, Scope] = {}
        self._fill()
        for name, scope in self._names.items():
            if isinstance(name.ctx, ast.Load):
                binding_scope = self._binding_scope(name.id, scope) or self.module
                binding_scope.references[name.id].append(name)

    def binds(self, name: str) -> bool:
        """Whether any scope of the module binds a name."""
        return any(name in scope.bindings for scope in self._scopes.values())

    def lookup(self, name: ast.Name) -> tuple[Scope | None, list[Binding]]:
        """The scope that binds a name at a position, and its bindings there."""
        binding_scope = self._binding_scope(name.id, self._names.get(name, self.module))
        return binding_scope, binding_scope.bindings[name.id] if binding_scope else []

    def scope_of(self, node: ast.AST) -> Scope:
        """The innermost scope around a node; for a function or class, the scope that it opens."""
        current: ast.AST | None = node
        while current is not None:
            if current in self._scopes:
                return self._scopes[current]
            current = self.parents.get(current)
        return self.module

    def ancestors(self, node: ast.AST) -> Iterator[ast.AST]:
        """The nodes around a node, the innermost first."""
        current = self.parents.get(node)
        while current is not None:
            yield current
            current = self.parents.get(current)

    def _binding_scope(self, name: str, scope: Scope) -> Scope | None:
        current: Scope | None = scope
        innermost = True
        while current is not None:
            if name in current.elsewhere:
                return current.elsewhere[name]
            # A method does not see the names of its class.
            if name in current.bindings and (innermost or not current.is_class):
                return current
            innermost = innermost and isinstance(current.node, _COMPREHENSIONS)
            current = current.parent
        return None

    def _fill(self) -> None:
        # An explicit stack: a generated script may nest deeper than Python's recursion limit.
        stack: list[tuple[ast.AST, Scope]] = [(self.tree, self.module)]
        while stack:
            node, scope = stack.pop()
            self.nodes.append(node)
            if isinstance(node, _BINDING):
                self._bind(node, scope)
            below = children(node)
            for child in below:
                self.parents[child] = node
            below.reverse()
            if isinstance(node, _OPENING):
                inner = self._open(node, scope)
                stack += [(child, _scope_of_child(node, child, scope, inner)) for child in below]
            else:
                stack += [(child, scope) for child in below]

    def _open(self, node: ScopeNode, parent: Scope) -> Scope:
        inner = Scope(node, parent)
        self._scopes[node] = inner
        if isinstance(node, (*_FUNCTIONS, ast.ClassDef)):
            kind = "class" if isinstance(node, ast.ClassDef) else "function"
            parent.bindings[node.name].append(Binding(kind, node))
        if isinstance(node, (*_FUNCTIONS, ast.Lambda)):
            self._arguments(node.args, inner)
        return inner

    def _arguments(self, arguments: ast.arguments, scope: Scope) -> None:
        parameters = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
        for argument in [*parameters, arguments.vararg, arguments.kwarg]:
            if argument is not None:
                scope.bindings[argument.arg].append(Binding("argument", argument))

    def _bind(self, node: ast.AST, scope: Scope) -> None:
        if isinstance(node, ast.Name):
            self._names[node] = scope
            if not isinstance(node.ctx, ast.Load):
                self._bind_name(node, scope)
        elif isinstance(node, ast.Import):
            for alias in node.names:
                name = alias.asname or alias.name.partition(".")[0]
                module = alias.name if alias.asname else name
                self._target(name, scope).bindings[name].append(
                    Binding("import", node, module=module)
                )
        elif isinstance(node, ast.ImportFrom):
            module = "." * node.level + (node.module or "")
            for alias in node.names:
                if alias.name == "*":
                    scope.stars.append(module)
                    continue
                name = alias.asname or alias.name
                self._target(name, scope).bindings[name].append(
                    Binding("import", node, module=module, member=alias.name)
                )
        elif isinstance(node, ast.Global | ast.Nonlocal):
            for name in node.names:
                scope.elsewhere[name] = (
                    self.module
                    if isinstance(node, ast.Global)
                    else (scope.parent and self._binding_scope(name, scope.parent)) or self.module
                )
        elif isinstance(node, ast.ExceptHandler) and node.name:
            scope.bindings[node.name].append(Binding("other", node))

    def _target(self, name: str, scope: Scope) -> Scope:
        return scope.elsewhere.get(name, scope)

    def _bind_name(self, name: ast.Name, scope: Scope) -> None:
        parent = self.parents.get(name)
        binding = Binding("other", name)
        if (isinstance(parent, ast.Assign) and name in parent.targets) or (
            isinstance(parent, ast.AnnAssign | ast.NamedExpr) and name is parent.target
        ):
            binding = Binding("assignment", parent, parent.value)
        if isinstance(parent, ast.NamedExpr):
            # `:=` in a comprehension binds in the function around it.
            while isinstance(scope.node, _COMPREHENSIONS) and scope.parent:
                scope = scope.parent
        elif isinstance(parent, ast.withitem):
            binding = Binding("with", parent, parent.context_expr)
        elif isinstance(parent, ast.For | ast.AsyncFor | ast.comprehension):
            binding = Binding("loop", parent, parent.iter)
        self._target(name.id, scope).bindings[name.id].append(binding)


def _scope_of_child(node: ast.AST, child: ast.AST, outer: Scope, inner: Scope) -> Scope:
    """The scope of a child of a node that opens a scope: arguments and decorators are outside."""
    if isinstance(node, (*_FUNCTIONS, ast.ClassDef)):
        return inner if child in node.body else outer
    if isinstance(node, ast.Lambda):
        return inner if child is node.body else outer
    return inner
